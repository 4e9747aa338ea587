//! Files that follow from types: written, or checked. The examples `generate` of several crates share it.

use std::path::Path;
use std::process::ExitCode;

/// Write files, named from the top of the checkout, or check that they have this text: as the first argument of the program says, `write` or `check`.
pub(crate) fn run(files: &[(&str, String)]) -> ExitCode {
    let mode = std::env::args().nth(1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut stale = false;
    for (name, text) in files {
        let file = root.join(name);
        match mode.as_deref() {
            Some("write") => {
                if let Err(error) = std::fs::write(&file, text) {
                    eprintln!("cannot write {}: {error}", file.display());
                    return ExitCode::FAILURE;
                }
            }
            Some("check") => {
                if std::fs::read_to_string(&file).ok().as_ref() != Some(text) {
                    eprintln!("{name} is stale: run `make gen`");
                    stale = true;
                }
            }
            _ => {
                eprintln!("say `write` or `check`");
                return ExitCode::from(2);
            }
        }
    }
    if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
