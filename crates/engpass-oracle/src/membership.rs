//! Receivers that join and leave a multicast group (docs/model.md, "Members that join and leave").

use engpass_model::event::EventChange;
use engpass_model::igmp::Igmp;
use engpass_model::random::Stream;
use engpass_model::source::Traffic;
use engpass_model::wire::igmp::Message;
use engpass_testbed::Testbed;
use engpass_testbed::topology::NodeId;

use crate::cell::LineId;
use crate::outages::changes;

/// An IGMP message in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IgmpPacket {
    /// Index in `Engine::members` of the receiver whose host sent it.
    pub(crate) member: usize,
    /// Report or leave message.
    pub(crate) message: Message,
}

/// A receiver that joins or leaves.
#[derive(Clone, Debug)]
pub(crate) struct MemberState {
    /// The number under which the receiver is counted.
    pub(crate) receiver: usize,
    pub(crate) host: NodeId,
    pub(crate) igmp: Igmp,
    /// The lines that its messages cross.
    pub(crate) lines: Vec<LineId>,
    /// Whether it is a member at the beginning.
    pub(crate) from_start: bool,
    /// Its changes in order: time, and true if it joins.
    pub(crate) changes: Vec<(u64, bool)>,
    /// Nodes forward packets for it.
    pub(crate) forwards: bool,
    /// When nodes stop, if it is no member then.
    pub(crate) deadline: Option<u64>,
    /// Times at which datagrams reached its host.
    pub(crate) came: Vec<u64>,
}

impl MemberState {
    /// Returns true if the host is a member after all changes up to `at`.
    pub(crate) fn is_member(&self, at: u64) -> bool {
        let last = self.changes.iter().rfind(|(change, _)| *change <= at);
        last.map_or(self.from_start, |(_, joins)| *joins)
    }

    /// Returns the messages that its host sends, with their times.
    pub(crate) fn messages(&self, end: u64) -> Vec<(u64, Message)> {
        let mut messages = Vec::new();
        for (place, (at, joins)) in self.changes.iter().enumerate() {
            if !joins {
                messages.push((*at, Message::Leave));
                continue;
            }
            for number in 0..self.igmp.robustness {
                let again = at + number * self.igmp.unsolicited_report_interval.0;
                let left = self.changes.get(place + 1).is_some_and(|(left, _)| again >= *left);
                if again <= end && !left {
                    messages.push((again, Message::Report));
                }
            }
        }
        messages
    }

    /// Returns the time as a member between two instants.
    pub(crate) fn time_within(&self, from: u64, end: u64) -> u64 {
        let edges = self.changes.iter().map(|(at, _)| (*at).clamp(from, end));
        let edges: Vec<u64> = std::iter::once(from).chain(edges).chain([end]).collect();
        let states = std::iter::once(self.from_start).chain(self.changes.iter().map(|(_, joins)| *joins));
        edges.windows(2).zip(states).filter(|(_, joined)| *joined).map(|(edge, _)| edge[1] - edge[0]).sum()
    }

    /// Returns the longest time from joining to the first datagram, and from leaving to the last one.
    pub(crate) fn delays(&self) -> (Option<u64>, Option<u64>) {
        let (mut join, mut leave) = (None, None);
        for (place, &(at, joins)) in self.changes.iter().enumerate() {
            let next = self.changes.get(place + 1).map_or(u64::MAX, |(at, _)| *at);
            let mut came = self.came.iter().filter(|came| (at..next).contains(came));
            match joins {
                true => join = join.max(came.next().map(|came| came - at)),
                false => leave = leave.max(Some(came.next_back().map_or(0, |came| came - at))),
            }
        }
        (join, leave)
    }
}

/// Returns the changes of a receiver of a traffic, and whether it is a member at the beginning; `None` if no event is about it.
pub(crate) fn changes_of(
    testbed: &Testbed,
    traffic: &str,
    host: &str,
    end: u64,
) -> Option<(bool, Vec<(u64, bool)>)> {
    let own = testbed
        .events
        .iter()
        .filter(|(_, event)| event.traffic.as_deref() == Some(traffic) && event.target == host);
    let own: Vec<_> = own.collect();
    // The first change may be after the end.
    let first = own.iter().min_by_key(|(_, event)| event.at.map_or(0, |at| at.0))?;
    let from_start = first.1.change == Some(EventChange::Leave);
    let mut all: Vec<(u64, usize, bool)> = Vec::new();
    for (place, (name, event)) in own.iter().enumerate() {
        let times = changes(event, Stream::new(0, format_args!("event.{name}")), end);
        all.extend(times.into_iter().map(|(at, change)| (at, place, change == EventChange::Join)));
    }
    all.sort_by_key(|(at, place, _)| (*at, *place));
    let mut taken = Vec::new();
    let mut state = from_start;
    for (at, _, joins) in all {
        if joins != state {
            taken.push((at, joins));
            state = joins;
        }
    }
    Some((from_start, taken))
}

/// Returns true if receivers of this traffic join or leave.
pub(crate) fn has_members(testbed: &Testbed, traffic: &str) -> bool {
    matches!(testbed.traffic.get(traffic), Some(Traffic::Multicast(_)))
        && testbed.events.values().any(|event| event.traffic.as_deref() == Some(traffic))
}
