//! Results of the ends of a flow, and the figures that follow from them.

use engpass_outcome::{Bottleneck, BottleneckKind, FlowOutcome, RealFlow};

use crate::answer::End;

/// The results of the ends of a flow.
pub(crate) struct Ends<'r> {
    pub(crate) sender: &'r End,
    /// Each receiver with its result, in the order of the file; at least one.
    pub(crate) receivers: Vec<(&'r str, &'r End)>,
}

impl Ends<'_> {
    /// Returns the result of the first receiver.
    pub(crate) fn first(&self) -> &End {
        self.receivers[0].1
    }
}

/// Rates and counts of a flow.
pub(crate) struct Figures<'a> {
    pub(crate) flow: &'a FlowOutcome,
    pub(crate) real: &'a RealFlow,
}

impl Figures<'_> {
    /// Returns the datagrams sent and lost; 0 if nobody counted them.
    pub(crate) fn sent_and_lost(&self) -> (u64, u64) {
        self.flow.datagrams.map_or((0, 0), |counts| (counts.sent, counts.lost))
    }

    pub(crate) fn unanswered(&self) -> u64 {
        self.real.requests.and_then(|requests| requests.unanswered).unwrap_or(0)
    }
}

/// Returns a bottleneck with a title.
pub(crate) fn bottleneck(kind: BottleneckKind, name: Option<&str>, title: impl Into<String>) -> Bottleneck {
    Bottleneck { kind, name: name.map(ToOwned::to_owned), title: title.into() }
}
