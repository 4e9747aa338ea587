//! Writes the schema and the Python types of outcomes, or checks that they are up to date.
//!
//! `cargo run -p engpass-outcome --example generate -- write|check`; `check` exits with 1 if a file is stale.

mod files;

use std::process::ExitCode;

fn main() -> ExitCode {
    files::run(&[
        ("schema/outcome.schema.json", format!("{:#}\n", engpass_outcome::schema())),
        ("python/engpass/types/outcome.py", engpass_outcome::python::classes()),
        ("python/engpass/types/signals.py", engpass_outcome::python::signals()),
        ("docs/signals.md", engpass_outcome::python::signals_page()),
    ])
}
