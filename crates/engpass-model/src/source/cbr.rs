//! Cells at a constant rate, from a traffic generator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CellDemand, Common, SourceConfig, SourceOutput};
use crate::circuit::Category;
use crate::unit::{Basis, Duration, FramedRate};

/// Cells at a constant rate with exact, fractional spacing, from an ATM traffic generator. No host sends them, and they carry no datagrams.
///
/// The time of the first cell within one spacing is drawn from the run's seed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Sending host; it needs an ATM link.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Rate of the cells. `"0 bit/s"` switches the source off.
    pub rate: FramedRate,
    /// Basis of `rate` if it does not include one: `line`, `cells` or `payload`.
    pub counts: Option<Basis>,
    /// Virtual circuit of the cells. If not given, the source has its own in the `cbr` category.
    pub circuit: Option<String>,
    /// When it starts; at the beginning of the run if not given.
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

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Cells(CellDemand {
            rate: self.rate,
            counts: self.counts,
            category: Category::Cbr,
            can_be_off: true,
        })
    }
}
