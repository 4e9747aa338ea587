//! The table of counts and its update.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Mutex;

/// One workload.
pub(crate) struct Row {
    pub(crate) name: String,
    /// Packets sent. With `hops` this is the work of the run, no cost: if it changes, the run itself has changed.
    pub(crate) packets: u64,
    pub(crate) hops: u64,
    /// Costs.
    pub(crate) counts: Vec<u64>,
}

/// Lock of the file, because several tests write it.
static WRITING: Mutex<()> = Mutex::new(());

const HEAD: &str = "\
Work of the simulator, counted. Written by `UPDATE=1 cargo test -p engpass-simulate --test counts`; nothing here may rise.
";
const COUNTS: &str = "
counts: between two instants of the steady state. A hop is a cell or a frame that a transmitter sent or refused; blocks are
those that the heap was asked for.
";
const MEMORY: &str = "
memory: bytes of the heap that one flow more takes. An idle flow should take 1024.
";

impl Row {
    fn text(&self) -> String {
        match self.counts[..] {
            [events, blocks] => {
                let (packets, hops) = (self.packets, self.hops);
                let each = events as f64 / hops as f64;
                format!("{:<58} {packets:>8} {hops:>8} {events:>8} {each:>10.4} {blocks:>8}", self.name)
            }
            _ => format!("{:<58} {:>8}", self.name, self.counts[0]),
        }
    }

    /// Parses a line that [`text`](Self::text) wrote.
    fn parse(line: &str) -> Self {
        let (name, numbers) = line.split_at(58);
        let words: Vec<&str> = numbers.split_whitespace().collect();
        let number = |at: usize| words[at].parse().unwrap_or_else(|_| panic!("no number in `{line}`"));
        let name = name.trim_end().to_owned();
        match words.len() {
            5 => Self { name, packets: number(0), hops: number(1), counts: vec![number(2), number(4)] },
            _ => Self { name, packets: 0, hops: 0, counts: vec![number(0)] },
        }
    }

    /// Returns true if one of the counts per hop is higher than in `before`.
    fn rose(&self, before: &Self) -> bool {
        let per_hop = |count: u64, hops: u64| u128::from(count) * u128::from(hops.max(1));
        let pairs = self.counts.iter().zip(&before.counts);
        pairs.into_iter().any(|(&now, &then)| per_hop(now, before.hops) > per_hop(then, self.hops))
    }

    fn same(&self, other: &Self) -> bool {
        (self.packets, self.hops, &self.counts) == (other.packets, other.hops, &other.counts)
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/counts/table.txt")
}

fn head(section: &str) -> String {
    match section {
        "counts" => format!(
            "{COUNTS}{:<58} {:>8} {:>8} {:>8} {:>10} {:>8}\n",
            "", "packets", "hops", "events", "events/hop", "blocks"
        ),
        _ => format!("{MEMORY}{:<58} {:>8}\n", "", "bytes"),
    }
}

/// Returns the rows of a section of the file; none if it has no such section.
fn rows(text: &str, section: &str) -> Vec<Row> {
    let lines = text.lines().skip_while(|line| !line.starts_with(&format!("{section}: ")));
    // A line without a name is the header of the columns; explanations precede it.
    let rows = lines.skip_while(|line| !line.starts_with("   ")).skip(1).take_while(|line| !line.is_empty());
    rows.map(Row::parse).collect()
}

/// Compares with the table, or records counts that have not risen.
#[allow(clippy::disallowed_methods, reason = "asks whether to write the file, not how to run")]
pub(crate) fn check(section: &str, now: &[Row]) {
    let writing = WRITING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let before = rows(&text, section);
    let then = |row: &Row| before.iter().find(|before| before.name == row.name);
    let update = std::env::var_os("UPDATE").is_some();
    if update {
        let mut written = HEAD.to_owned();
        for part in ["counts", "memory"] {
            written += &head(part);
            // Counts that have risen stay unchanged.
            let kept = |row: &Row| then(row).filter(|before| row.rose(before)).unwrap_or(row).text();
            let lines: Vec<String> = if part == section {
                now.iter().map(kept).collect()
            } else {
                rows(&text, part).iter().map(Row::text).collect()
            };
            written.extend(lines.iter().map(|line| format!("{line}\n")));
        }
        std::fs::write(path(), written).expect("the table can be written");
    }
    drop(writing);
    let mut wrong = String::new();
    for row in now {
        let what = match then(row) {
            Some(before) if row.rose(before) => {
                "it rose: find out why; with a good reason write this row by hand, and the reason into the commit"
            }
            Some(before) if before.same(row) => continue,
            _ if update => continue,
            Some(before) if row.hops != before.hops || row.packets != before.packets => {
                "the run itself has changed: if it is meant to, write it down with UPDATE=1"
            }
            Some(_) => "it fell, well done: write it down with UPDATE=1",
            None => "it is new: write it down with UPDATE=1",
        };
        let before = then(row).map(|before| format!("before: {}\n", before.text())).unwrap_or_default();
        writeln!(wrong, "{what}\n{before}now:    {}", row.text()).expect("writing to a string cannot fail");
    }
    assert!(wrong.is_empty(), "in tests/counts/table.txt, {section}\n{wrong}");
}
