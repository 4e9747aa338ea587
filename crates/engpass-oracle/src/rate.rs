//! Cell rates on a link (docs/model.md, "Rates of cells").

use engpass_model::time::{Pace, SECOND};
use engpass_model::unit::{Basis, FramedRate, Rate, Share};

/// Bits of a cell, and of its payload.
const CELL: u64 = 424;
const PAYLOAD: u64 = 384;

/// Returns the pace of cells for a rate on a link with this line rate in bit/s and slot; `None` for a rate of zero.
pub(crate) fn pace(rate: FramedRate, counts: Option<Basis>, line_rate: u64, slot: Pace) -> Option<Pace> {
    let per_second = |cells: u64| (cells > 0).then(|| Pace::of_bits(1, cells));
    let of_line = |parts: u64, whole: u64| (parts > 0).then(|| slot.stretched(whole, parts));
    match rate {
        FramedRate::Share(Share(parts)) => of_line(parts, Share::WHOLE),
        FramedRate::CellsPerSecond(cells) => per_second(cells),
        FramedRate::Bits(Rate(0), _) => None,
        FramedRate::Bits(Rate(bits), own) => match own.or(counts).unwrap_or(Basis::Line) {
            Basis::Line => of_line(bits, line_rate),
            Basis::Cells => Some(Pace::new(u128::from(CELL) * u128::from(SECOND), bits.into())),
            Basis::Payload => Some(Pace::new(u128::from(PAYLOAD) * u128::from(SECOND), bits.into())),
        },
    }
}
