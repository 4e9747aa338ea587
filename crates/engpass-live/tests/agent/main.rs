//! Tests with two agents in one process, over loopback: short runs, ephemeral ports, no privileges.

mod alive;
mod datagrams;
mod hostile;
mod life;
mod pair;
mod questions;
mod requests;
mod streams;
