//! What touches the world: clocks, threads, sockets, devices.

pub mod probe;
