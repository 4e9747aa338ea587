//! The oracle: a reference engine in which every cell, and every beginning and end of a transmission, is an event.
//!
//! It is written from docs/model.md and docs/ledger.md alone and shares with the engine that users run only quantities, lengths on the
//! wire, configs, random numbers, queue disciplines and the state machine of TCP. Slow and simple on purpose: it is the specification in
//! code. The tests of `engpass-network` hold the fast engine against it, and the benchmarks measure what the trains of cells save.

mod accounts;
mod agenda;
mod books;
pub mod cell;
mod check;
mod cpu;
pub mod engine;
mod frame_line;
mod generator;
mod host;
mod ledger;
mod line;
mod nic;
pub mod outcome;
mod packet;
mod reassembly;
pub mod resolve;
mod router;
mod switch;
mod tcp;
mod times;
