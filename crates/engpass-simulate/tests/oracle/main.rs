//! The fast engine against the oracle, and the oracle against hand calculations.

use engpass_oracle::{cell, engine, outcome, queue, resolve};

mod acted;
mod bench;
mod by_hand;
mod captured;
mod choices;
mod contended;
mod fast;
mod file;
mod idle_reasons;
mod joined;
#[path = "../networks/mod.rs"]
mod networks;
mod outside;
mod properties;
mod replay;
mod rings;
