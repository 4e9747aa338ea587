//! From a testbed file to a checked testbed.

pub mod testbed;
pub mod topology;

pub use testbed::{Run, Testbed};
pub use topology::Topology;
