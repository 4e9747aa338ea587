//! The accounts of a line (docs/ledger.md), computed from the postings.

use std::collections::BTreeMap;

use engpass_model::wire::Framing;
use engpass_testbed::topology::Line;

use crate::line_usage::Cut;
use crate::wire::{GAP, PREAMBLE};

/// Parts of a line by account.
pub type Accounts = BTreeMap<String, u128>;

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Units in which a line is accounted.
pub(crate) struct Unit {
    /// Time of a cell or a byte in picoseconds, as a fraction.
    pub(crate) pace: (u128, u128),
    /// Parts in a bit.
    pub(crate) parts: u128,
    /// Parts in a cell or a byte.
    pub(crate) grain: u128,
    /// Parts of a cell that are physical framing.
    pub(crate) framing: u128,
    /// Bytes of physical framing of a frame.
    pub(crate) around: u128,
}

impl Unit {
    pub(crate) fn of(line: Line) -> Self {
        match line.framing {
            Framing::Cells { slot } => {
                // Line bits in a slot, as a fraction in lowest terms: parts in a slot / parts in a bit.
                let (num, den) = slot.ratio();
                let (bits, of) =
                    (u128::from(num) * u128::from(line.rate), u128::from(den) * 1_000_000_000_000);
                let common = gcd(bits, of);
                let (grain, parts) = (bits / common, of / common);
                let framing = grain - 424 * parts;
                Self { pace: (num.into(), den.into()), parts, grain, framing, around: 0 }
            }
            framing => {
                let bits = u128::from(line.rate);
                let common = gcd(8_000_000_000_000, bits);
                let pace = (8_000_000_000_000 / common, bits / common);
                let around = if framing == Framing::Ethernet { u128::from(PREAMBLE + GAP) } else { 0 };
                Self { pace, parts: 1, grain: 8, framing: 0, around }
            }
        }
    }

    /// Returns the time of `units` cells or bytes in picoseconds, rounded down.
    pub(crate) fn time(&self, units: u64) -> u64 {
        (u128::from(units) * self.pace.0 / self.pace.1) as u64
    }

    /// Returns how much of a transmission lies before the instant `at`, in fractions of a picosecond (the denominator of the pace).
    pub(crate) fn before(&self, at: u64, cut: Cut) -> u128 {
        let (num, den) = self.pace;
        let begun = u128::from(cut.base) * den + u128::from(cut.units.0) * num;
        let whole = u128::from(cut.units.1 - cut.units.0) * num;
        (u128::from(at) * den).saturating_sub(begun).min(whole)
    }
}
