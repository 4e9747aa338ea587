//! Switches.

pub mod atm;

pub use atm::AtmSwitch;

use crate::family::family;

family! {
    /// A switch, by its kind.
    Switch, "switch" {
        "atm" => Atm(AtmSwitch),
    }
}
