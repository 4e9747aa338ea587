//! The cases in `tests/cases/*.md`: a file, optional `--set` values, and the expected diagnostics.
//!
//! A section `## title` contains a block `toml` (a whole file) or `diff` (changes of `tests/files/kyoto.toml`). In a `diff`, a `-` line is replaced
//! by the `+` lines after it, and `+` lines without one are appended. The section may have a block `set` with one `PATH=VALUE` per line and a block
//! `points` with the number of points allowed. The block `text` holds the expected output, `fine` if there is none.
//!
//! `UPDATE=1 cargo test -p engpass-testbed --test cases` rewrites the `text` blocks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use engpass_testbed::codes::CODES;
use engpass_testbed::{Diagnostics, MAX_TEXT, Source, load};

const KYOTO: &str = include_str!("files/kyoto.toml");

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// One case. `answer` is the range of lines of the page with the expected output.
#[derive(Default)]
struct Case {
    title: String,
    file: String,
    set: Vec<(String, String)>,
    points: Option<u64>,
    answer: Option<(usize, usize)>,
}

fn cases(page: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let lines: Vec<&str> = page.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        if let Some(title) = lines[at].strip_prefix("## ") {
            cases.push(Case { title: title.into(), file: KYOTO.into(), ..Case::default() });
        } else if let Some(language) = lines[at].strip_prefix("```") {
            let end =
                at + 1 + lines[at + 1..].iter().position(|line| *line == "```").expect("a block is closed");
            let block = &lines[at + 1..end];
            let case = cases.last_mut().expect("a block stands below a title");
            match language {
                "toml" => case.file = block.iter().flat_map(|line| [line, "\n"]).collect(),
                "diff" => case.file = patched(block),
                "set" => {
                    let pair =
                        |line: &&str| line.split_once('=').map(|(path, value)| (path.into(), value.into()));
                    case.set = block.iter().map(|line| pair(line).expect("PATH=VALUE")).collect();
                }
                "points" => case.points = Some(block[0].parse().expect("a number of points")),
                "text" => case.answer = Some((at + 1, end)),
                other => panic!("unknown block `{other}`"),
            }
            at = end;
        }
        at += 1;
    }
    cases
}

fn patched(diff: &[&str]) -> String {
    let mut file: Vec<String> = KYOTO.lines().map(String::from).collect();
    let mut place = file.len();
    for line in diff {
        let (sign, text) = line.split_at(1);
        match sign {
            "-" => {
                place = file.iter().position(|old| old == text).unwrap_or_else(|| panic!("no line `{text}`"));
                file.remove(place);
            }
            _ => {
                file.insert(place.min(file.len()), text.into());
                place += 1;
            }
        }
    }
    file.join("\n") + "\n"
}

fn answer(case: &Case) -> String {
    let source = Source { name: "case.toml".into(), text: case.file.clone() };
    let said = match load(&source, &case.set, case.points) {
        Ok(campaign) => campaign.warnings().render(false),
        Err(found) => found.render(false),
    };
    if said.is_empty() { "fine\n".into() } else { said }
}

#[test]
fn diagnostics_match_the_text_of_every_case_page() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = String::new();
    for path in files() {
        let page = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = page.lines().collect();
        let mut renewed = String::new();
        let mut copied = 0;
        for case in cases(&page) {
            let (from, to) = case
                .answer
                .unwrap_or_else(|| panic!("{}: {} has no `text` block", path.display(), case.title));
            // Editors remove trailing blanks, so compare without them.
            let said: String = answer(&case).lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
            let expected: String = lines[from..to].iter().flat_map(|line| [line, "\n"]).collect();
            if said != expected {
                wrong += &format!(
                    "{}: {}\n--- expected\n{expected}--- said\n{said}\n",
                    path.display(),
                    case.title
                );
            }
            renewed.extend(lines[copied..from].iter().flat_map(|line| [line, "\n"]));
            renewed += &said;
            copied = to;
        }
        renewed.extend(lines[copied..].iter().flat_map(|line| [line, "\n"]));
        if update && renewed != page {
            std::fs::write(&path, renewed).unwrap();
        }
    }
    assert!(update || wrong.is_empty(), "{wrong}accept with UPDATE=1");
}

fn codes_of(found: &Diagnostics) -> Vec<&'static str> {
    found.list().iter().map(|found| found.code).collect()
}

#[test]
fn every_diagnostic_code_has_a_case() {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for path in files() {
        for case in cases(&std::fs::read_to_string(path).unwrap()) {
            let source = Source { name: "case.toml".into(), text: case.file.clone() };
            match load(&source, &case.set, case.points) {
                Ok(campaign) => seen.extend(codes_of(campaign.warnings())),
                Err(found) => seen.extend(codes_of(&found)),
            }
        }
    }
    // Codes that a page cannot trigger.
    let source = Source { name: "kyoto.toml".into(), text: KYOTO.into() };
    let unknown_variant = load(&source, &[], None).unwrap().point("frei", &[]).unwrap_err();
    seen.extend(codes_of(&unknown_variant));
    seen.extend(codes_of(&Source::from_bytes("x", b"\xff\xfe\x00").unwrap_err()));
    seen.extend(codes_of(&Source::from_bytes("x", &vec![b'#'; MAX_TEXT + 1]).unwrap_err()));
    let listed: BTreeSet<&str> = CODES.iter().map(|(code, _)| *code).collect();
    let without: Vec<&&str> = listed.difference(&seen).collect();
    assert!(without.is_empty(), "no case triggers {without:?}");
    assert!(seen.is_subset(&listed), "codes that are not listed: {:?}", seen.difference(&listed));
}
