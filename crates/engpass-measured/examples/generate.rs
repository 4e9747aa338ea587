//! Writes the Python types of requests to agents, or checks that they are up to date.
//!
//! `cargo run -p engpass-measured --example generate -- write|check`; `check` exits with 1 when they are stale.

#[path = "../../engpass-outcome/examples/generate/files.rs"]
mod files;

use std::process::ExitCode;

fn main() -> ExitCode {
    let about = "The types of requests to agents: generated from `crates/engpass-measured` by `make gen`.";
    let module = engpass_outcome::python::module(about, "", &engpass_measured::schema(), "Requests", &[]);
    files::run(&[("python/engpass/types/agent.py", module)])
}
