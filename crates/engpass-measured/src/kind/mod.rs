//! The kinds of traffic that agents make. A new kind is one file, and one line in [`of`].

mod datagrams;
mod request_response;
mod tcp_stream;

use engpass_ledger::Account;
use engpass_model::source::{Traffic, Transport};
use engpass_outcome::{Bottleneck, FlowOutcome, RealFlow};

use crate::answer::End;
use crate::crossing::Crossing;
use crate::failure::Failure;
use crate::figures::{Ends, Figures};
use crate::flow::Flow;
use crate::idle_reasons::{self, Shares, Waits};
use crate::line::Line;
use crate::request::Schedule;
use datagrams::Datagrams;
use request_response::Conversation;
use tcp_stream::Writes;

/// The messages that both ends of a flow exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Message {
    /// The agent's word for this kind of traffic.
    pub(crate) kind: &'static str,
    /// Payload of a message.
    pub(crate) message_bytes: u64,
    /// Payload of a response.
    pub(crate) response_bytes: Option<u64>,
    /// Transport, if the kind does not determine it.
    pub(crate) transport: Option<Transport>,
    /// Number of connections or sockets, if there may be several.
    pub(crate) streams: Option<u64>,
}

/// A kind of traffic between real hosts.
pub(crate) trait Kind {
    /// Returns the messages that agents exchange.
    fn message(&self) -> Message;

    /// Returns when messages are due; `None` for as fast as possible.
    fn schedule(&self, seed: u64) -> Option<Schedule>;

    /// Returns true if packets are UDP datagrams.
    fn is_udp(&self) -> bool;

    /// Returns the address of a multicast group.
    fn group(&self) -> Option<String> {
        None
    }

    /// Returns true if the sender knows what arrives, because it waits for responses.
    fn is_answered(&self) -> bool {
        false
    }

    /// Returns the time in ns in which the data of the window arrived.
    fn arrived_ns(&self, flow: &Flow<'_>, _sender: &End, _receiver: &End) -> u64 {
        flow.duration_ns
    }

    /// Returns rates and counts: those common to all engines, and those that only real hosts give.
    fn figures(&self, flow: &Flow<'_>, ends: &Ends<'_>) -> (FlowOutcome, RealFlow);

    /// Posts what the flow carried over the first or the last line of a path, and over the line in the opposite direction.
    fn post(&self, at: &Crossing<'_>, there: &mut Line, back: &mut Line);

    /// Returns why the sender was idle. `behind` is true for a line after the flow's bottleneck.
    fn waits(&self, flow: &Flow<'_>, sender: &End, behind: bool) -> Waits {
        let waits =
            idle_reasons::of_sender(self.idle_shares(flow, sender, behind), flow.kept(sender), sender);
        match sender.ended.as_deref() {
            Some("bytes") => waits.until(sender.elapsed_ns as f64 / flow.duration_ns as f64),
            _ => waits,
        }
    }

    /// Returns why a sender without a schedule was idle, by its own counters.
    fn idle_shares(&self, _flow: &Flow<'_>, _sender: &End, behind: bool) -> Shares {
        vec![(if behind { Account::UPSTREAM } else { Account::UNKNOWN }, 1.0)]
    }

    /// Returns the limit that the kind itself sets to a sender without a schedule, with the observation.
    fn own_limit(&self) -> Option<(Bottleneck, &'static str)> {
        None
    }

    /// Returns true if a sender that falls behind its schedule was blocked by its connection, whose findings name the cause.
    fn is_blocked_by_connection(&self) -> bool {
        false
    }

    /// Returns the size in bytes of the largest message, and whether messages were sent and none arrived.
    fn silence(&self, figures: &Figures<'_>, receiver: &End) -> (u64, bool) {
        (
            self.message().message_bytes,
            receiver.total_bytes == Some(0) && figures.flow.offered_bit_per_s != 0.0,
        )
    }
}

/// Returns the traffic as agents make it. Fails for traffic that they cannot make.
pub(crate) fn of<'a>(name: &str, traffic: &'a Traffic) -> Result<Box<dyn Kind + 'a>, Failure> {
    Ok(match traffic {
        Traffic::UdpStream(_)
        | Traffic::Poisson(_)
        | Traffic::UdpOnOff(_)
        | Traffic::Video(_)
        | Traffic::Multicast(_) => Box::new(Datagrams(traffic)),
        Traffic::TcpStream(config) => Box::new(Writes(config)),
        Traffic::RequestResponse(config) => Box::new(Conversation(config)),
        Traffic::Cbr(_) | Traffic::OnOff(_) => {
            return Err(Failure::new(
                format!("traffic `{name}` is `{}`: it sends cells, but hosts cannot", traffic.kind()),
                "use `udp-stream` with a `rate` for interfering traffic",
            ));
        }
    })
}

/// Returns the outcome of a flow with these payload rates in bit/s and no counts.
fn rates(flow: &Flow<'_>, goodput_bit_per_s: f64, offered_bit_per_s: f64) -> FlowOutcome {
    FlowOutcome {
        kind: flow.traffic.kind().to_owned(),
        goodput_bit_per_s,
        offered_bit_per_s,
        ..FlowOutcome::default()
    }
}

/// Returns the payload rates in bit/s at a receiver: goodput and offered load.
fn rates_at(flow: &Flow<'_>, sender: &End, receiver: &End) -> (f64, f64) {
    let rate = |bytes: u64, time: u64| (bytes * 8) as f64 * 1e9 / time as f64;
    let arrived = flow.kind.arrived_ns(flow, sender, receiver);
    (rate(receiver.bytes, arrived), rate(sender.bytes, flow.duration_ns))
}
