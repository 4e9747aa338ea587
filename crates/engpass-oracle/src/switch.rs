//! Handling of cells at a switch (docs/model.md, "Switches").

use std::collections::BTreeMap;

use engpass_model::discard::Discard;
use engpass_model::random::Stream;
use engpass_model::switch::AtmSwitch;
use engpass_model::unit::{FillLevel, Share};

/// Discard state of a PDU at a port ("Discard").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its cells join the queue if there is room.
    Begun,
    /// All its cells are dropped.
    Refused,
    /// Only its last cell may still join.
    Cut,
}

/// Returns a fill level in cells, rounded down.
pub(crate) fn cells(level: FillLevel, buffer: u64) -> u64 {
    match level {
        FillLevel::Cells(cells) => cells,
        FillLevel::Share(Share(parts)) => (u128::from(buffer) * u128::from(parts) / 1_000_000_000) as u64,
    }
}

/// Returns true if a PDU is refused whose first cell finds this number of cells in the queue, by circuit direction (the table of "Discard").
pub(crate) fn refuses(
    config: &AtmSwitch,
    vc: usize,
    found: &BTreeMap<usize, u64>,
    random: &mut Stream,
) -> bool {
    let buffer = config.output_buffer.0;
    let (threshold, fair) = match &config.discard {
        Discard::Tail(_) | Discard::Ppd(_) => return false,
        Discard::Epd(epd) => (epd.threshold, None),
        Discard::EpdPpd(epd) => (epd.threshold, None),
        Discard::SelectiveDrop(drop) => (drop.threshold, Some((drop.z, false))),
        Discard::RandomEpd(early) => {
            let (min, max) = (cells(early.min, buffer), cells(early.max, buffer));
            let q: u64 = found.values().sum();
            return match q {
                _ if q <= min => false,
                _ if q > max => true,
                _ => {
                    let drawn = u128::from(random.below(1_000_000_000));
                    drawn * u128::from(max - min) < u128::from(early.max_probability.0) * u128::from(q - min)
                }
            };
        }
        Discard::Fba(fba) => (fba.threshold, Some((fba.z, true))),
    };
    let r = cells(threshold, buffer);
    let q: u64 = found.values().sum();
    let Some((z, graded)) = fair else { return q > r };
    if q <= r {
        return false;
    }
    let y = found.get(&vc).copied().unwrap_or(0);
    let n = found.len() as u64;
    // Y N / q > Z, or > Z (K - R) / (q - R), in integers without overflow for all realistic sizes.
    let (k, z) = (u128::from(buffer), u128::from(z.0));
    let (y, n, q, r) = (u128::from(y), u128::from(n), u128::from(q), u128::from(r));
    match graded {
        false => y * n * 1_000_000_000 > z * q,
        true => y * n * (q - r) * 1_000_000_000 > z * (k - r) * q,
    }
}
