//! Write the files under `schema/`, or check that they are what the code says.
//!
//! `cargo run -p engpass-testbed --example generate -- write|check`; `check` exits with 1 when one is stale.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mode = std::env::args().nth(1);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
    let mut stale = false;
    for (name, value) in
        [("testbed.schema.json", engpass_testbed::schema()), ("catalogue.json", engpass_testbed::catalogue())]
    {
        let text = format!("{value:#}\n");
        let file = folder.join(name);
        match mode.as_deref() {
            Some("write") => {
                let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, text));
                if let Err(error) = written {
                    eprintln!("cannot write {}: {error}", file.display());
                    return ExitCode::FAILURE;
                }
            }
            Some("check") => {
                if std::fs::read_to_string(&file).ok().as_deref() != Some(text.as_str()) {
                    eprintln!("schema/{name} is stale: run `make gen`");
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
