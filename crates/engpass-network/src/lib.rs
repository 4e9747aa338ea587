//! A network as a value, and the engine `simulate` that asks it. Pure: no clock, no socket, no file.

mod memory;
mod refusal;
pub mod simulate;

pub use memory::{Memory, memory};
pub(crate) use refusal::refused_group;
pub use refusal::{Engine, SupportedTestbed, left_out, modelled, unmodelled};
