//! Spacing of cells: policing (GCRA) and shaping.

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
    /// What a rate without its own word counts: `line`, `cells` or `payload`.
    pub counts: Option<Basis>,
    /// Cell delay variation tolerance.
    pub tolerance: Duration,
    /// What becomes of a cell that does not conform: `discard`, or `tag` (it goes on with CLP = 1).
    #[serde(default)]
    pub action: PolicingAction,
}

/// What a policer does with a cell that does not conform (I.371; ATM Forum TM 4.0, usage parameter control).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicingAction {
    /// It is lost.
    #[default]
    Discard,
    /// It goes on with CLP = 1, to be lost first where a switch has a `clp_threshold`.
    Tag,
}

/// The pace of cells at `rate` on a medium with this line rate and cell slot; `None` for a rate of zero.
///
/// A share, and bits that count the line, are shares of the slots (130 Mbit/s of a 155.52 Mbit/s line are 295 248
/// cells/s); bits of cells or of payload are divided by 424 or 384.
///
/// # Panics
/// When the pace cannot be held exactly, which the testbed check refuses: see [`try_cell_pace`].
pub fn cell_pace(rate: FramedRate, basis: Basis, line_rate: u64, slot: Pace) -> Option<Pace> {
    try_cell_pace(rate, basis, line_rate, slot)
        .expect("the testbed check refuses rates that cannot be held exactly")
}

/// A rate whose cells have a spacing that is no fraction of 64-bit integers: it has too many digits for its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFine;

/// As [`cell_pace`], for rates that have not been checked.
///
/// # Errors
/// When the pace cannot be held exactly.
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
    fn the_two_readings_of_130_mbit_s() {
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
