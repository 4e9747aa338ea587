//! Queue disciplines on a test bench: an output port with a line, arriving packets, virtual time.

mod fairness;
mod laws;
mod port;
mod shaping;
