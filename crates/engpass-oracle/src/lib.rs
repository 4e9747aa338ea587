//! The oracle: a reference engine in which every cell is an event.
//!
//! It is written from docs/model.md alone and shares with the engine that users run only quantities, lengths on the
//! wire, configs and random numbers. Slow and simple on purpose: it is the specification in code. The tests of
//! `engpass-network` hold the fast engine against it, and the benchmarks measure what the trains of cells save.

mod agenda;
mod books;
pub mod cell;
mod check;
pub mod engine;
mod generator;
mod host;
mod ledger;
mod line;
mod nic;
pub mod outcome;
mod reassembly;
pub mod resolve;
mod switch;
