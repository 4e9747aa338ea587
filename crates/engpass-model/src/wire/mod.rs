//! What stands on the wire: lengths at every layer, from a message down to bits of the line.

pub mod aal5;
pub mod encapsulation;
pub mod ethernet;
pub mod ip;
pub mod medium;

pub use encapsulation::Encapsulation;
pub use medium::{Framing, Medium};
