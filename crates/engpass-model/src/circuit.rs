//! Permanent virtual circuits across ATM links.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::range_errors::RangeErrors;
use crate::shape::{Adaptive, Policing, PolicingAction};
use crate::unit::{Basis, FramedRate, Size};
use crate::wire::Encapsulation;

/// A permanent virtual circuit between two hosts, in both directions, along the shortest path of ATM links.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Circuit {
    /// First host of the circuit. `shaping`, `adaptive` and `policing` apply to the cells that this host sends.
    pub from: String,
    /// Second host of the circuit.
    pub to: String,
    /// Encapsulation of IP packets in AAL5 PDUs.
    #[serde(default)]
    pub encapsulation: Encapsulation,
    /// Largest IP packet. If not given, the default of the encapsulation (9180 B for `llc-snap`).
    pub mtu: Option<Size>,
    /// Service category. A switch with priorities serves `cbr` before `ubr`.
    #[serde(default)]
    pub category: Category,
    /// Cell loss priority of the cells in both directions: `0`, or `1` for cells that a switch with a `clp_threshold` drops first.
    #[serde(default)]
    #[schemars(range(max = 1))]
    pub clp: u8,
    /// Peak cell rate of the sending NIC, with exact fractional cell spacing. Line rate if not given.
    pub shaping: Option<FramedRate>,
    /// A shaping rate that adapts to the available bandwidth, instead of `shaping`. It follows the EFCI marks of switches with an
    /// `efci_threshold`.
    pub adaptive: Option<Adaptive>,
    /// The bits that a rate counts if the rate itself does not say so: `line`, `cells` or `payload`.
    pub counts: Option<Basis>,
    /// Usage parameter control at the first switch of the circuit.
    pub policing: Option<Policing>,
}

impl Circuit {
    /// Adds errors for values that are invalid regardless of other components.
    pub fn check(&self, errors: &mut RangeErrors) {
        if self.clp > 1 {
            errors.add(&["clp"], "CLP is one bit of the cell header", "give `0` or `1`");
        }
        if let Some(adaptive) = &self.adaptive {
            let mut own = RangeErrors::default();
            adaptive.check(&mut own);
            errors.under(&["adaptive"], own);
            if self.shaping.is_some() {
                let cause = "the circuit also has `adaptive`, but a shaper has only one rate";
                errors.add(
                    &["shaping"],
                    cause,
                    "remove one of the two; `adaptive` has its own upper limit, `max`",
                );
            }
        }
        let tags = |policing: &Policing| policing.action == PolicingAction::Tag;
        if self.clp == 1 && self.policing.as_ref().is_some_and(tags) {
            let cause = "all cells are sent with CLP = 1, so there is nothing to tag";
            errors.add(&["policing", "action"], cause, "remove `clp`, or set `action = \"discard\"`");
        }
    }
}

/// Service category of a circuit (ATM Forum TM 4.0 section 2). Only categories that a queue treats differently exist here.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Constant bit rate: served first.
    Cbr,
    /// Unspecified bit rate: served when no `cbr` cell waits.
    #[default]
    Ubr,
}
