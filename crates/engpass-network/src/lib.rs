//! A network as a value, and the engines that ask it: `limit` and `simulate`. Pure: no clock, no socket, no file.

pub mod limit;
pub mod simulate;
