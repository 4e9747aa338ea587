//! Permanent virtual circuits across ATM links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::Complaints;
use crate::shape::{Adaptive, Policing, PolicingAction};
use crate::unit::{Basis, FramedRate, Size};
use crate::wire::Encapsulation;

/// A permanent virtual circuit, both ways, along the shortest path of ATM links between two hosts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Circuit {
    /// Host that it starts at. Shaping and policing hold for this direction.
    pub from: String,
    /// Host that it ends at.
    pub to: String,
    /// How IP packets become AAL5 PDUs.
    #[serde(default)]
    pub encapsulation: Encapsulation,
    /// Largest IP packet; if not given, what the encapsulation specifies (9180 B for `llc-snap`).
    pub mtu: Option<Size>,
    /// Service category, which a switch with priorities serves in this order: `cbr` before `ubr`.
    #[serde(default)]
    pub category: Category,
    /// Cell loss priority of its cells, both ways: `0`, or `1` for cells that a switch with a `clp_threshold` loses first.
    #[serde(default)]
    #[schemars(range(max = 1))]
    pub clp: u8,
    /// Pace of the cells at the sending NIC: a peak cell rate with exact, fractional spacing. Line rate if not given.
    pub shaping: Option<FramedRate>,
    /// A pace that adapts to what the network has room for, in place of `shaping`: it follows the EFCI marks of switches with an
    /// `efci_threshold`.
    pub adaptive: Option<Adaptive>,
    /// What a rate without its own word counts: `line`, `cells` or `payload`.
    pub counts: Option<Basis>,
    /// Usage parameter control where the circuit enters its first switch.
    pub policing: Option<Policing>,
}

impl Circuit {
    /// What is wrong with values that no other component must be known for.
    pub fn check(&self, complaints: &mut Complaints) {
        if self.clp > 1 {
            complaints.add(&["clp"], "it is one bit of the cell header", "give `0` or `1`");
        }
        if let Some(adaptive) = &self.adaptive {
            let mut own = Complaints::default();
            adaptive.check(&mut own);
            complaints.under(&["adaptive"], own);
            if self.shaping.is_some() {
                let cause = "the circuit has an `adaptive` pace, too, and a shaper has one pace";
                complaints.add(&["shaping"], cause, "take one of them out; `adaptive` has a `max`");
            }
        }
        let tags = |policing: &Policing| policing.action == PolicingAction::Tag;
        if self.clp == 1 && self.policing.as_ref().is_some_and(tags) {
            let cause = "all cells are sent with CLP = 1, so there is nothing to tag";
            complaints.add(&["policing", "action"], cause, "take `clp` out, or let the policer `discard`");
        }
    }
}

/// Service category of a circuit (ATM Forum TM 4.0 section 2), as far as a queue tells them apart.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Constant bit rate: served first.
    Cbr,
    /// Unspecified bit rate: served when nothing else waits.
    #[default]
    Ubr,
}
