//! The oracle: a reference engine in which every cell is an event, and its tests.
//!
//! It is written from docs/model.md alone and shares with the engine that users run only quantities, lengths on the
//! wire, configs and random numbers. Slow and simple on purpose: it is the specification in code.

mod agenda;
mod bench;
mod by_hand;
mod cell;
mod engine;
mod fast;
mod generator;
mod host;
mod ledger;
mod line;
mod networks;
mod nic;
mod outcome;
mod properties;
mod reassembly;
mod resolve;
mod switch;
