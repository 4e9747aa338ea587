//! Cell rates: policing (GCRA) and shaping.

pub mod adaptive;
pub mod gcra;

pub use adaptive::{Adaptive, AdaptiveRate};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::{Pace, SECOND};
use crate::unit::{Basis, Duration, FramedRate, Rate, Share};
use crate::wire::aal5::{CELL_BITS, CELL_PAYLOAD_BYTES};

/// Usage parameter control of a circuit: GCRA(1/rate, tolerance) (ITU-T I.371 Annex A).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policing {
    /// Contracted peak cell rate.
    pub rate: FramedRate,
    /// The bits that a rate counts if the rate itself does not say so: `line`, `cells` or `payload`.
    pub counts: Option<Basis>,
    /// Cell delay variation tolerance.
    pub tolerance: Duration,
    /// Treatment of cells that do not conform: `discard`, or `tag` (forward with CLP = 1).
    #[serde(default)]
    pub action: PolicingAction,
}

/// Action of a policer on a cell that does not conform (I.371; ATM Forum TM 4.0, usage parameter control).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicingAction {
    /// The cell is dropped.
    #[default]
    Discard,
    /// The cell is forwarded with CLP = 1; switches with a `clp_threshold` drop it first.
    Tag,
}

/// The pace of cells at `rate` on a medium with this line rate and cell slot; `None` for a rate of zero.
///
/// A share and a rate in bits of the line are fractions of the slots: 130 Mbit/s of a 155.52 Mbit/s line are 295 248 cells/s. A rate in
/// bits of cells or payload is divided by 424 or 384.
///
/// # Panics
/// If the pace is not exact, which the testbed check rejects; see [`try_cell_pace`].
pub fn cell_pace(rate: FramedRate, basis: Basis, line_rate: u64, slot: Pace) -> Option<Pace> {
    try_cell_pace(rate, basis, line_rate, slot)
        .expect("the testbed check refuses rates that cannot be held exactly")
}

/// Error: the cell spacing of a rate is not a fraction of 64-bit integers, because the rate has too many digits for its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFine;

/// As [`cell_pace`], for unchecked rates.
///
/// # Errors
/// If the pace is not exact.
pub fn try_cell_pace(
    rate: FramedRate,
    basis: Basis,
    line_rate: u64,
    slot: Pace,
) -> Result<Option<Pace>, TooFine> {
    let of_bits =
        |bits: u64, rate: u64| Pace::try_new(u128::from(bits) * u128::from(SECOND), u128::from(rate));
    let pace = match (rate, basis) {
        _ if rate.is_zero() => return Ok(None),
        (FramedRate::Share(share), _) => slot.try_stretched(Share::WHOLE, share.0),
        (FramedRate::CellsPerSecond(cells), _) => of_bits(1, cells),
        (FramedRate::Bits(Rate(bits), Some(Basis::Line)), _)
        | (FramedRate::Bits(Rate(bits), None), Basis::Line) => slot.try_stretched(line_rate, bits),
        (FramedRate::Bits(Rate(bits), Some(Basis::Cells)), _)
        | (FramedRate::Bits(Rate(bits), None), Basis::Cells) => of_bits(CELL_BITS, bits),
        (FramedRate::Bits(Rate(bits), Some(Basis::Payload)), _)
        | (FramedRate::Bits(Rate(bits), None), Basis::Payload) => of_bits(CELL_PAYLOAD_BYTES * 8, bits),
    };
    pace.map(Some).ok_or(TooFine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Quantity;

    #[test]
    fn cell_rate_depends_on_line_or_cells_basis() {
        let slot = Pace::of_bits(424, 149_760_000);
        let cells = |text: &str, basis| {
            cell_pace(FramedRate::parse(text).unwrap(), basis, 155_520_000, slot).unwrap().per_second() as u64
        };
        assert_eq!(cells("130 Mbit/s", Basis::Line), 295_248);
        assert_eq!(cells("130 Mbit/s", Basis::Cells), 306_603);
        assert_eq!(cells("16 %", Basis::Cells), 56_513);
        assert_eq!(cells("18 %", Basis::Line), 63_577);
        assert_eq!(cells("130 Mbit/s line", Basis::Cells), 295_248);
    }
}
