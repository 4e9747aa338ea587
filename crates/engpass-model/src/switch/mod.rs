//! Switches.

pub mod atm;
pub mod ethernet;

pub use atm::AtmSwitch;
pub use ethernet::EthernetSwitch;

use crate::component_family::family;
use crate::range_errors::RangeErrors;

family! {
    /// A switch, by its kind.
    Switch, "switch" {
        "atm" => Atm(AtmSwitch),
        "ethernet" => Ethernet(EthernetSwitch),
    }
}

impl Switch {
    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        match self {
            Self::Atm(config) => config.check(errors),
            Self::Ethernet(config) => config.check(errors),
        }
    }
}
