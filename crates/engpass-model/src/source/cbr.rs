//! Cells at a constant rate, as a traffic generator sends them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellDemand, Common, Sends, SourceConfig};
use crate::circuit::Category;
use crate::unit::{Basis, Duration, FramedRate};

/// Cells at a constant rate with exact, fractional spacing, from an ATM traffic generator: no host cost, no datagrams.
///
/// The first cell's place within one spacing is drawn from the run's seed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Sending host; it needs an ATM link.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Rate of the cells. `"0 bit/s"` switches the source off.
    pub rate: FramedRate,
    /// What a rate without its own word counts: `line`, `cells` or `payload`.
    pub counts: Option<Basis>,
    /// The circuit to take. If not given, the source has one of its own in the `cbr` category.
    pub circuit: Option<String>,
    /// When it starts.
    #[serde(default)]
    pub start: Option<Duration>,
    /// When it stops; at the end of the run if not given.
    #[serde(default)]
    pub stop: Option<Duration>,
}

impl SourceConfig for Cbr {
    fn common(&self) -> Common<'_> {
        Common {
            circuit: self.circuit.as_deref(),
            ..Common::between((&self.from, &self.to), (self.start, self.stop))
        }
    }

    fn sends(&self) -> Sends<'_> {
        Sends::Cells(CellDemand {
            rate: self.rate,
            counts: self.counts,
            category: Category::Cbr,
            can_be_off: true,
        })
    }
}
