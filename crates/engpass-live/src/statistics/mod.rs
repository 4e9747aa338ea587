//! Statistics gathered while traffic runs. Pure: callers pass all times.

mod distribution;
mod gaps;
mod sequence;
mod stalls;

pub(crate) use distribution::Distribution;
pub(crate) use gaps::Gaps;
pub(crate) use sequence::Sequence;
pub(crate) use stalls::{Mark, Stalls};
