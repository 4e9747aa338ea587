//! The fast engine against the oracle, and the oracle against pencil and paper.

use engpass_oracle::{cell, engine, outcome, queue, resolve};

use proptest::prelude::ProptestConfig;

mod bench;
mod by_hand;
mod captured;
mod contended;
mod fast;
mod file;
#[path = "../networks/mod.rs"]
mod networks;
mod outside;
mod properties;
mod replay;
mod rings;

/// `least` cases, or more if the environment asks for more: `PROPTEST_CASES=20000 cargo test -p engpass-network --test oracle fast`.
fn cases(least: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(least), ..default }
}
