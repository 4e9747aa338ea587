//! Writes the Python types of requests to agents and the table of accounts, or checks that they are up to date.
//!
//! `cargo run -p engpass-measured --example generate -- write|check`; `check` exits with 1 when they are stale.

#[path = "../../engpass-outcome/examples/generate/files.rs"]
mod files;

use std::process::ExitCode;

use engpass_ledger::FAMILIES;

fn main() -> ExitCode {
    let about = "The types of requests to agents: generated from `crates/engpass-measured` by `make gen`.";
    let module = engpass_outcome::python::module(about, "", &engpass_measured::schema(), "Requests", &[]);
    files::run(&[("python/engpass/types/agent.py", module), ("python/engpass/types/accounts.py", accounts())])
}

/// Returns the Python module with the accounts of ledgers.
fn accounts() -> String {
    let rows: Vec<_> = FAMILIES.iter().map(|one| (one.key, one.title, one.prefix, one.accounts())).collect();
    format!(
        "\"\"\"Accounts of ledgers: generated from `crates/engpass-ledger` by `make gen`.\"\"\"\n\n\
         FAMILIES: list[tuple[str, str, str, list[str]]] = {rows:#?}\n\
         \"\"\"Families of accounts in the order of display: key, title, prefix of further accounts, accounts.\"\"\"\n"
    )
}
