//! Converts cell rates to paces on their link.

use engpass_model::shape::{TooFine, try_cell_pace};
use engpass_model::time::Pace;
use engpass_model::unit::wording::grouped;
use engpass_model::unit::{Basis, FramedRate, Rate};
use engpass_model::wire::Framing;

use crate::check::Checker;
use crate::diagnostic::Diagnostic;
use crate::topology::{Line, LinkEnds};

/// A rate as written, and the constraints on it.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) rate: FramedRate,
    /// Value of the key `counts` in the same table.
    pub(crate) counts: Option<Basis>,
    /// True if the rate may be zero.
    pub(crate) zero: bool,
    /// True if the rate must not exceed that of the link.
    pub(crate) bounded: bool,
}

/// Largest gap between two cells in picoseconds: an hour. The longest PDU, of 1366 cells, then takes 57 of the 106 days that the time type allows
/// after a run.
const LONGEST_GAP: u64 = 3_600_000_000_000_000;

/// Returns the pace of a rate on the first line of its route. `first` is that link and line. Returns `Some(None)` for a rate of zero; `None` after it has
/// reported an error, or if the link is unknown.
pub(crate) fn pace(
    checker: &mut Checker<'_>,
    wanted: Wanted,
    path: &[&str],
    first: Option<(&LinkEnds, Line)>,
) -> Option<Option<Pace>> {
    let written = checker.written(path);
    let key = path.last().copied().unwrap_or("rate");
    let mut complain = |code, message: String, help: String| {
        checker.report(path, Diagnostic::error(code, message).help(help));
        None
    };
    if wanted.rate.is_zero() {
        if wanted.zero {
            return Some(None);
        }
        let message = format!("`{key}` is {written}: nothing would ever be sent");
        return complain("out-of-range", message, "give more than zero".into());
    }
    let cells_of = |(_, line): (&LinkEnds, Line)| match line.framing {
        Framing::Cells { slot } => Some((line.rate, slot)),
        Framing::Ethernet | Framing::Packets => None,
    };
    if let (FramedRate::Bits(rate, None), None) = (wanted.rate, wanted.counts) {
        let message = format!("`{written}` does not say which bits it counts");
        return complain("ambiguous-rate", message, readings(&written, rate, first.and_then(cells_of)));
    }
    let (line_rate, slot) = cells_of(first?)?;
    let (link, _) = first?;
    // A word in the value (`line`, `cells`, `payload`) overrides `counts` of the table. Shares and cells/s ignore both.
    let basis = wanted.counts.unwrap_or(Basis::Line);
    match try_cell_pace(wanted.rate, basis, line_rate, slot) {
        Err(TooFine) => {
            let message = format!("`{written}` has no exact cell spacing on link `{}`", link.name);
            complain("out-of-range", message, "use fewer digits".into())
        }
        Ok(None) => Some(None),
        Ok(Some(pace)) if wanted.bounded && !pace.is_at_least(slot) => {
            let (asked, most) = (per_second(pace), per_second(slot));
            let message =
                format!("`{written}` is {asked} cells/s, but link `{}` carries at most {most}", link.name);
            complain("out-of-range", message, "give at most `100 %`".into())
        }
        Ok(Some(pace)) if pace.after(1) > LONGEST_GAP => {
            let message = format!("`{written}` is less than one cell per hour");
            complain("out-of-range", message, "give a higher rate".into())
        }
        Ok(Some(pace)) => Some(Some(pace)),
    }
}

/// Returns help text with the possible meanings of a rate that does not say what it counts, in numbers for this link.
fn readings(written: &str, rate: Rate, cells: Option<(u64, Pace)>) -> String {
    let reading = |basis: Basis, word: &str, what: &str| {
        let number = cells.and_then(|(line_rate, slot)| {
            let pace = try_cell_pace(FramedRate::Bits(rate, Some(basis)), basis, line_rate, slot).ok()??;
            Some(format!(" ({} cells/s here)", grouped(pace.per_second().round() as u64)))
        });
        format!("`{written} {word}`: {what}{}", number.unwrap_or_default())
    };
    let three = [
        reading(Basis::Line, "line", "bits of the line, physical framing included"),
        reading(Basis::Cells, "cells", "bits of whole cells, 53 bytes each"),
        reading(Basis::Payload, "payload", "bits of the cell payload, 48 bytes each"),
    ];
    format!("add the word to the value, or set `counts = \"line\"` in the table\n{}", three.join("\n"))
}

/// Formats a pace as whole cells per second.
fn per_second(pace: Pace) -> String {
    grouped(pace.per_second() as u64)
}
