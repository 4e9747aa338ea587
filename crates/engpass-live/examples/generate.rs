//! Writes the Python types of the probe's report, or checks that they are up to date.
//!
//! `cargo run -p engpass-live --example generate -- write|check`; `check` exits with 1 when they are stale.

#[path = "../../engpass-outcome/examples/generate/files.rs"]
mod files;

use std::process::ExitCode;

fn main() -> ExitCode {
    let about = "The types of what a probe reports: generated from `crates/engpass-live` by `make gen`.";
    let schema = engpass_live::probe::schema();
    let report = engpass_outcome::python::module(about, "", &schema, "Report", &[]);
    files::run(&[("python/engpass/types/probe.py", report)])
}
