//! Queue disciplines on a bench: a port on a line, packets that arrive, virtual time.

mod fairness;
mod laws;
mod port;
mod shaping;
