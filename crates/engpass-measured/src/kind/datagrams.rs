//! UDP datagrams: evenly spaced, at random times, in bursts, as video, or to a multicast group.

use engpass_ledger::Account;
use engpass_model::source::{Frames, Traffic};
use engpass_model::unit::Rate;
use engpass_model::wire::ip::UDP_HEADER_BYTES;
use engpass_outcome::{Datagrams as Counts, FlowOutcome, Gaps, RealFlow, Receiver};
use indexmap::IndexMap;

use super::{Kind, Message, rates, rates_at};
use crate::answer::{End, Sequence};
use crate::crossing::Crossing;
use crate::figures::Ends;
use crate::flow::Flow;
use crate::line::Line;
use crate::plan::ns;
use crate::request::Schedule;
use crate::text::seconds;

/// Datagrams that arrive later than this after the window were queued; a stalled host delays them less.
const STANDING_NS: u64 = 20_000_000;

/// Traffic that sends datagrams.
pub(super) struct Datagrams<'a>(pub(super) &'a Traffic);

impl Datagrams<'_> {
    fn video(rate: Rate, frames: Frames) -> Schedule {
        Schedule {
            kind: "video".to_owned(),
            micro_frames_per_s: Some(frames.frame_rate.0),
            group_of_pictures: Some(frames.group_of_pictures),
            intra_size_ppb: Some(frames.intra_size.0),
            ..Schedule::even(rate.0)
        }
    }

    fn size(&self) -> (u64, Option<Rate>) {
        self.0.datagrams().expect("the traffic sends datagrams")
    }
}

impl Kind for Datagrams<'_> {
    fn message(&self) -> Message {
        Message { kind: "udp-stream", message_bytes: self.size().0, ..Message::default() }
    }

    fn schedule(&self, seed: u64) -> Option<Schedule> {
        let seeded = |kind: &str, rate: Rate| Schedule {
            kind: kind.to_owned(),
            seed: Some(seed),
            ..Schedule::even(rate.0)
        };
        match self.0 {
            Traffic::Poisson(config) => Some(seeded("poisson", config.rate)),
            Traffic::UdpOnOff(config) => Some(Schedule {
                // Agents refuse bursts of 0 ns, and the mean rate needs a length.
                on_ns: Some(ns(config.on).max(1)),
                off_ns: Some(ns(config.off)),
                lengths: Some(config.lengths),
                ..seeded("on-off", config.rate)
            }),
            Traffic::Video(config) => Some(Self::video(config.rate, config.frames())),
            Traffic::Multicast(config) if let Some(frames) = config.video => {
                Some(Self::video(config.rate, frames))
            }
            Traffic::UdpStream(_) | Traffic::Multicast(_) => self.size().1.map(|rate| Schedule::even(rate.0)),
            Traffic::TcpStream(_) | Traffic::RequestResponse(_) | Traffic::Cbr(_) | Traffic::OnOff(_) => {
                unreachable!("the traffic sends datagrams")
            }
        }
    }

    fn is_udp(&self) -> bool {
        true
    }

    fn group(&self) -> Option<String> {
        match self.0 {
            Traffic::Multicast(config) => Some(config.group.0.to_string()),
            _ => None,
        }
    }

    /// The window, or longer if a queue on the path filled. A late departure causes a late arrival, so it is subtracted.
    fn arrived_ns(&self, flow: &Flow<'_>, sender: &End, receiver: &End) -> u64 {
        let standing = flow.duration_ns + Flow::lateness_ns(sender) + STANDING_NS;
        if receiver.elapsed_ns > standing { receiver.elapsed_ns } else { flow.duration_ns }
    }

    fn figures(&self, flow: &Flow<'_>, ends: &Ends<'_>) -> (FlowOutcome, RealFlow) {
        let each =
            ends.receivers.iter().map(|(host, end)| ((*host).to_owned(), receiver(flow, ends.sender, end)));
        let each: IndexMap<String, Receiver> = each.collect();
        // A flow with several receivers has the figures of the first one with the lowest goodput.
        let least = each
            .values()
            .reduce(|least, one| if one.goodput_bit_per_s < least.goodput_bit_per_s { one } else { least });
        let least = least.expect("a flow has a receiver");
        let real = RealFlow {
            gap_s: least.gap_s,
            max_datagrams_per_ms: least.max_datagrams_per_ms,
            ..RealFlow::default()
        };
        let figures = FlowOutcome {
            datagrams: least.datagrams,
            ..rates(flow, least.goodput_bit_per_s, least.offered_bit_per_s)
        };
        let receivers = if self.group().is_some() { each } else { IndexMap::new() };
        (FlowOutcome { receivers, ..figures }, real)
    }

    fn post(&self, at: &Crossing<'_>, there: &mut Line, _back: &mut Line) {
        let (sent, fresh) = (at.sent.messages, fresh(at));
        let lost = sent - fresh;
        let one = at.packets.carry(UDP_HEADER_BYTES, self.size().0);
        // Datagrams still queued when the window closed have left the sender, and cross the last line later.
        let arrived = self.arrived_ns(at.flow, at.sent, at.got);
        let in_time = u128::from(fresh) * u128::from(at.flow.duration_ns) / u128::from(arrived);
        let late = fresh - in_time as u64;
        let came = fresh - late;
        there.deliver_headers(&one, if at.last { came } else { fresh });
        there.post_payload(Account::DELIVERED, &one, came);
        if !at.last {
            there.post_payload(Account::IN_FLIGHT, &one, late);
        }
        if at.first {
            // Datagrams that a queue discipline of the sender dropped never crossed the line.
            let dropped = at.near.grown.interface(&at.device).drops();
            there.post_whole(Account::LOST, &one, lost.saturating_sub(dropped));
            there.own_bytes += one.counted_bytes() * at.sent.all_messages();
        } else {
            // The receiver's socket is behind the line: datagrams that it dropped have crossed the line.
            let refused = lost.min(at.got.refused_by_socket(at.near));
            there.post_whole(Account::LOST, &one, refused);
            let came = at.got.total_messages.filter(|count| *count > 0).unwrap_or(fresh);
            there.own_bytes += one.counted_bytes() * (came + refused);
            post_unassembled(at, there, self.size().0);
        }
    }
}

/// Returns the number of different datagrams that arrived, at most as many as were sent.
fn fresh(at: &Crossing<'_>) -> u64 {
    let of_streams = || at.got.streams.iter().filter_map(|stream| stream.sequence.as_ref());
    let all: Vec<&Sequence> = match &at.got.sequence {
        Some(sequence) => vec![sequence],
        None => of_streams().collect(),
    };
    let known = if all.is_empty() { at.got.messages } else { all.iter().map(|one| one.received).sum() };
    known.min(at.sent.messages)
}

/// Posts fragments that arrived but were not reassembled, by the receiver's IP counters.
fn post_unassembled(at: &Crossing<'_>, there: &mut Line, size: u64) {
    let one = at.packets.carry(UDP_HEADER_BYTES, size);
    let packets = one.packets();
    let counter = |name: &str| at.near.grown.protocol(if at.packets.six { "Ip6" } else { "Ip" }, name);
    let extra = counter("ReasmReqds").saturating_sub(counter("ReasmOKs") * packets);
    if packets == 1 || extra == 0 {
        return;
    }
    // The IP counters span the whole run: the window gets a share of them, by messages sent.
    let total = at.sent.all_messages();
    let share = (extra * at.sent.messages) as f64 / total as f64;
    let here = if total == 0 { 0 } else { share.round_ties_even() as u64 };
    there.post_fragments(Account::LOST, &one, here);
    there.own_bytes += one.counted_bytes() / packets * extra;
}

fn receiver(flow: &Flow<'_>, sender: &End, end: &End) -> Receiver {
    let (goodput, offered) = rates_at(flow, sender, end);
    Receiver {
        datagrams: Some(counts(sender, end)),
        gap_s: gaps(end),
        max_datagrams_per_ms: end.gaps.worst_ms,
        ..Receiver::of(goodput, offered)
    }
}

fn counts(sender: &End, receiver: &End) -> Counts {
    let own = || Sequence { received: receiver.messages, ..Sequence::default() };
    let sequence = receiver.sequence.clone().unwrap_or_else(own);
    let (sent, received) = (sender.messages, sequence.received);
    Counts {
        sent,
        received,
        lost: sent.saturating_sub(received),
        in_flight: None,
        duplicate: sequence.duplicate,
        reordered: sequence.reordered,
    }
}

fn gaps(receiver: &End) -> Option<Gaps> {
    let gaps = &receiver.gaps;
    let found = Gaps {
        mean: seconds(gaps.mean_ns),
        sd: seconds(gaps.sd_ns),
        mad: seconds(gaps.mad_ns),
        p99: seconds(gaps.p99_ns),
        p99_9: seconds(gaps.p999_ns),
    };
    (found != Gaps::default()).then_some(found)
}
