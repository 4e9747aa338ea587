//! The engine `simulate`: a network in virtual time. Pure: no clock, no socket, no file.

mod memory;
pub mod simulate;
mod unsupported;

pub use memory::{Memory, memory};
pub(crate) use unsupported::unsupported_group;
pub use unsupported::{Engine, SupportedTestbed, left_out, modelled, unmodelled};
