//! Lengths at every layer, from a message down to the bits of the line. For captures, also the bytes themselves.

pub mod aal5;
pub mod arp;
pub mod cell;
pub mod encapsulation;
pub mod ethernet;
pub mod frame;
pub mod icmp;
pub mod igmp;
pub mod ip;
pub mod layers;
pub mod medium;
pub mod packet;

pub use encapsulation::Encapsulation;
pub use medium::{Framing, Medium};
