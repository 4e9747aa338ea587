//! A network as a value, and the engine `simulate` that asks it. Pure: no clock, no socket, no file.

mod memory;
mod refusal;
pub mod simulate;

pub use memory::{Memory, memory};
pub use refusal::{Engine, Modelled, left_out, modelled, unmodelled};
