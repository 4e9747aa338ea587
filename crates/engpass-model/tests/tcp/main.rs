//! TCP on a test bench: two endpoints, a pipe in each direction, virtual time.

mod bench;
mod delivery;
mod golden;
mod path_mtu;
mod rest;
mod script;
mod standards;
mod theory;
