//! Writes to TCP connections.

use engpass_model::source::TcpStream;
use engpass_outcome::{FlowOutcome, RealFlow};

use super::{Kind, Message, rates, rates_at};
use crate::answer::End;
use crate::crossing::Crossing;
use crate::figures::Ends;
use crate::flow::Flow;
use crate::idle_reasons::Shares;
use crate::line::Line;
use crate::request::Schedule;
use crate::tcp::{self, Connections};

/// A stream of writes.
pub(super) struct Writes<'a>(pub(super) &'a TcpStream);

impl Kind for Writes<'_> {
    fn message(&self) -> Message {
        Message {
            kind: "tcp-stream",
            message_bytes: self.0.message.bytes(),
            streams: Some(self.0.streams.into()),
            ..Message::default()
        }
    }

    fn schedule(&self, _seed: u64) -> Option<Schedule> {
        self.0.rate.map(|rate| Schedule::even(rate.0))
    }

    fn is_udp(&self) -> bool {
        false
    }

    /// If the sender was stopped, the receiver's window goes on, because the send buffer still empties.
    fn arrived_ns(&self, flow: &Flow<'_>, sender: &End, receiver: &End) -> u64 {
        let stopped = sender.ended.as_deref() == Some("stopped");
        if stopped { flow.duration_ns.max(receiver.elapsed_ns) } else { flow.duration_ns }
    }

    fn figures(&self, flow: &Flow<'_>, ends: &Ends<'_>) -> (FlowOutcome, RealFlow) {
        let (goodput, offered) = rates_at(flow, ends.sender, ends.first());
        (FlowOutcome { tcp: tcp::counts(ends.sender), ..rates(flow, goodput, offered) }, RealFlow::default())
    }

    fn post(&self, at: &Crossing<'_>, there: &mut Line, back: &mut Line) {
        tcp::post(at, there, back, false);
    }

    fn idle_shares(&self, flow: &Flow<'_>, sender: &End, behind: bool) -> Shares {
        Connections::of(sender).idle_shares(flow.seconds(), behind)
    }

    fn is_blocked_by_connection(&self) -> bool {
        true
    }
}
