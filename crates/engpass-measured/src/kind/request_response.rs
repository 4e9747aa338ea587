//! Requests and responses.

use engpass_ledger::Account;
use engpass_model::source::agent_limits::FASTEST;
use engpass_model::source::{RequestResponse, Transport};
use engpass_model::unit::Duration;
use engpass_model::wire::ip::UDP_HEADER_BYTES;
use engpass_outcome::{Bottleneck, BottleneckKind, FlowOutcome, Latency, RealFlow, Requests};

use super::{Kind, Message, rates};
use crate::answer::End;
use crate::crossing::Crossing;
use crate::figures::{Ends, Figures, bottleneck};
use crate::flow::Flow;
use crate::idle_reasons::Waits;
use crate::line::Line;
use crate::request::Schedule;
use crate::tcp;
use crate::text::seconds;

/// A conversation: the sender of the traffic asks, its receiver answers.
pub(super) struct Conversation<'a>(pub(super) &'a RequestResponse);

impl Kind for Conversation<'_> {
    fn message(&self) -> Message {
        Message {
            kind: "request-response",
            message_bytes: self.0.request.bytes(),
            response_bytes: Some(self.0.response.bytes()),
            transport: Some(self.0.transport),
            streams: Some(self.0.streams.into()),
        }
    }

    /// Returns the payload rate of the requests, which is what agents take. It is at least 1 bit/s and at most the agents' limit, also for periods below 1 ns.
    fn schedule(&self, _seed: u64) -> Option<Schedule> {
        let bits_by_ps = u128::from(self.0.request.bytes()) * 8 * 1_000_000_000_000;
        let rate = |every: Duration| (bits_by_ps / u128::from(every.0)).clamp(1, FASTEST.into());
        self.0.every.map(|every| Schedule::even(rate(every) as u64))
    }

    fn is_udp(&self) -> bool {
        self.0.transport == Transport::Udp
    }

    fn is_answered(&self) -> bool {
        true
    }

    fn figures(&self, flow: &Flow<'_>, ends: &Ends<'_>) -> (FlowOutcome, RealFlow) {
        let (asker, time) = (ends.sender, flow.seconds());
        let latency = &asker.latency;
        let answered = latency.count.unwrap_or(asker.messages);
        let rate = |requests: u64| (requests * self.0.request.bytes() * 8) as f64 / time;
        let (goodput, missed) = (rate(answered), rate(asker.unanswered.unwrap_or(0)));
        let times = Latency {
            min: seconds(latency.min_ns),
            mean: seconds(latency.mean_ns),
            p50: seconds(latency.p50_ns),
            p90: seconds(latency.p90_ns),
            p99: seconds(latency.p99_ns),
            p99_9: seconds(latency.p999_ns),
            max: seconds(latency.max_ns),
        };
        let requests = Requests {
            per_s: answered as f64 / time,
            unanswered: asker.unanswered,
            latency_s: (times != Latency::default()).then_some(times),
        };
        let real = RealFlow { requests: Some(requests), ..RealFlow::default() };
        (rates(flow, goodput, goodput + missed), real)
    }

    fn post(&self, at: &Crossing<'_>, there: &mut Line, back: &mut Line) {
        // The answering host is a sender of the line back.
        back.senders.push(at.waits.clone());
        if !self.is_udp() {
            tcp::post(at, there, back, true);
            return;
        }
        let sent = at.sent.messages;
        let answered = at.sent.latency.count.map_or(sent, |count| count.min(sent));
        let response = Some(self.0.response.bytes()).filter(|bytes| *bytes > 0);
        let request = self.0.request.bytes();
        for (line, bytes) in [(&mut *there, request), (&mut *back, response.unwrap_or(request))] {
            let one = at.packets.carry(UDP_HEADER_BYTES, bytes);
            line.deliver_headers(&one, answered);
            line.post_payload(Account::DELIVERED, &one, answered);
            line.own_bytes += one.counted_bytes() * at.sent.all_messages();
        }
    }

    fn waits(&self, _flow: &Flow<'_>, _sender: &End, _behind: bool) -> Waits {
        Waits { shares: vec![(Account::APPLICATION, 1.0)], elastic: false }
    }

    fn own_limit(&self) -> Option<(Bottleneck, &'static str)> {
        let limit = bottleneck(BottleneckKind::RoundTrip, None, "the round trip");
        Some((limit, "each request waits for the previous response"))
    }

    fn silence(&self, figures: &Figures<'_>, _receiver: &End) -> (u64, bool) {
        let unanswered = figures.real.requests.and_then(|requests| requests.unanswered);
        (self.0.request.bytes().max(self.0.response.bytes()), unanswered.unwrap_or(0) > 0)
    }
}
