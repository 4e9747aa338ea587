//! The engine `simulate`: a network in virtual time. Pure: no clock, no socket, no file.

mod memory;
mod refusal;
pub mod simulate;

pub use memory::{Memory, memory};
pub(crate) use refusal::refused_group;
pub use refusal::{Engine, SupportedTestbed, left_out, modelled, unmodelled};
