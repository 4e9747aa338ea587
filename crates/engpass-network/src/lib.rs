//! A network as a value, and the engines that ask it: `limit` and `simulate`; and captures of what `simulate` sends. Pure: no clock, no socket, no file.

pub mod capture;
pub mod limit;
mod memory;
mod refusal;
pub mod simulate;

pub use memory::{Memory, memory};
pub use refusal::{Engine, Modelled, left_out, modelled, unmodelled};
