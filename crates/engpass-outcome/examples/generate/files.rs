//! Writes or checks files that are generated from types. The `generate` examples of several crates share this module.

use std::path::Path;
use std::process::ExitCode;

/// Writes files or checks that they have this text, depending on the program's first argument: `write` or `check`. File names are relative
/// to the root of the repository.
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
                eprintln!("use `write` or `check`");
                return ExitCode::from(2);
            }
        }
    }
    if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
