//! Switches.

pub mod atm;

pub use atm::AtmSwitch;

use crate::complaint::Complaints;
use crate::family::family;

family! {
    /// A switch, by its kind.
    Switch, "switch" {
        "atm" => Atm(AtmSwitch),
    }
}

impl Switch {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        match self {
            Self::Atm(config) => config.check(complaints),
        }
    }
}
