//! Write the schema and the Python types of outcomes, or check that they are what the code says.
//!
//! `cargo run -p engpass-outcome --example generate -- write|check`; `check` exits with 1 when one is stale.

mod files;

use std::process::ExitCode;

fn main() -> ExitCode {
    files::run(&[
        ("schema/outcome.schema.json", format!("{:#}\n", engpass_outcome::schema())),
        ("python/engpass/types/outcome.py", engpass_outcome::python::classes()),
    ])
}
