//! What is counted while traffic runs. Pure: whoever counts says when.

mod distribution;
mod gaps;
mod sequence;
mod stalls;

pub(crate) use distribution::Distribution;
pub(crate) use gaps::Gaps;
pub(crate) use sequence::Sequence;
pub(crate) use stalls::{Mark, Stalls};
