//! The accounts of a line (docs/ledger.md), from what was booked.

use std::collections::BTreeMap;

use engpass_model::wire::Framing;
use engpass_testbed::topology::Line;

use crate::books::Cut;
use crate::wire::{GAP, PREAMBLE};

/// Parts of a line by account.
pub type Accounts = BTreeMap<String, u128>;

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// How a line counts.
pub(crate) struct Unit {
    /// Time of a cell or a byte: picoseconds as a fraction.
    pub(crate) pace: (u128, u128),
    /// Parts of the line that a bit has.
    pub(crate) parts: u128,
    /// Parts of the line that a cell or a byte takes.
    pub(crate) grain: u128,
    /// Parts of it that are physical framing, of a cell.
    pub(crate) framing: u128,
    /// Bytes of physical framing of a frame.
    pub(crate) around: u128,
}

impl Unit {
    pub(crate) fn of(line: Line) -> Self {
        match line.framing {
            Framing::Cells { slot } => {
                // Bits of the line in a slot, in lowest terms: parts / parts of a bit.
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

    /// Picoseconds that so many cells or bytes take, rounded down.
    pub(crate) fn time(&self, units: u64) -> u64 {
        (u128::from(units) * self.pace.0 / self.pace.1) as u64
    }

    /// In parts of a picosecond, as the pace has them: how much of a transmission lies before an instant.
    pub(crate) fn before(&self, at: u64, cut: Cut) -> u128 {
        let (num, den) = self.pace;
        let begun = u128::from(cut.base) * den + u128::from(cut.units.0) * num;
        let whole = u128::from(cut.units.1 - cut.units.0) * num;
        (u128::from(at) * den).saturating_sub(begun).min(whole)
    }
}
