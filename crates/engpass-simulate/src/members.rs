//! Receivers of multicast groups that join and leave (docs/model.md, "Members that join and leave").
//!
//! A branch *forwards* for a member from the arrival of its report until it is pruned. Nodes copy packets only to branches that forward for some receiver. What
//! a receiver counts depends on its membership alone, which is known in advance: it counts the datagrams whose sender begins with them while it is a member.

use std::collections::BTreeMap;

use engpass_model::igmp::Igmp;
use engpass_model::wire::igmp::Message;
use engpass_testbed::topology::{FlowPath, NodeId};
use engpass_testbed::{Membership, Testbed};

/// A receiver of a multicast group that joins or leaves.
#[derive(Debug)]
pub(super) struct MemberState {
    /// Indices of the branches from the sender to the receiver.
    pub(super) branches: Vec<u32>,
    membership: Membership,
    igmp: Igmp,
    /// True if the branches forward packets for the receiver.
    forwards: bool,
    /// Instant at which they stop, unless a report comes before, or the receiver is a member then.
    prune_at: Option<u64>,
    /// Datagrams that reached the receiver's host since the last change of membership.
    arrivals: Arrivals,
    delays: MemberDelays,
}

/// The first and the last datagram that reached a host in an interval between two changes of its membership, in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    /// Number of membership changes before the interval.
    after: usize,
    first: Option<u64>,
    last: Option<u64>,
}

/// Delays of a receiver in the whole run, each the longest of several, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberDelays {
    /// From joining to the first datagram; `None` if none came after a join.
    pub(super) join: Option<u64>,
    /// From leaving to the last datagram; zero if none came after that, `None` if the receiver never left.
    pub(super) leave: Option<u64>,
}

/// All receivers that join or leave.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// In the order of the traffic, then of the receivers in the file.
    all: Vec<MemberState>,
    /// Index in `all` by counter index of the receiver.
    of: BTreeMap<u32, u32>,
}

impl Arrivals {
    /// Adds the delay that an interval has shown, of joining or of leaving, to the longest delays of the receiver.
    fn close(self, membership: &Membership, delays: &mut MemberDelays) {
        let Some(&(since, joined)) =
            self.after.checked_sub(1).and_then(|change| membership.changes.get(change))
        else {
            return;
        };
        let longest = if joined { &mut delays.join } else { &mut delays.leave };
        let at = if joined { self.first } else { self.last.or(Some(since)) };
        *longest = (*longest).max(at.map(|at| at - since));
    }
}

impl MemberState {
    fn new(testbed: &Testbed, flow: usize, path: &FlowPath, member: usize, branches: Vec<u32>) -> Self {
        let membership = Membership::new(testbed, &path.members[member], testbed.run.duration.0);
        Self {
            branches,
            forwards: membership.from_start,
            membership,
            igmp: testbed.group(flow).igmp.clone(),
            prune_at: None,
            arrivals: Arrivals::default(),
            delays: MemberDelays::default(),
        }
    }

    /// Returns the IGMP messages that the receiver's host sends until `end`, in time order.
    pub(super) fn messages(&self, end: u64) -> Vec<(u64, Message)> {
        self.membership.messages(&self.igmp, end)
    }

    /// Sets the deadline after which routers prune if the leave message was lost. Returns it if it is new.
    pub(super) fn on_left(&mut self, now: u64) -> Option<u64> {
        self.prune_before(now.saturating_add(self.igmp.group_membership_interval.0))
    }

    /// Sets the deadline by which a member must answer the queries that follow a leave message. Returns it if it is new.
    fn on_leave(&mut self, now: u64) -> Option<u64> {
        self.prune_before(now.saturating_add(self.igmp.last_member_query_time()))
    }

    /// Lets branches be pruned at `at` or earlier. Returns the new deadline; `None` if an earlier one holds, or nothing is forwarded.
    fn prune_before(&mut self, at: u64) -> Option<u64> {
        if !self.forwards || self.prune_at.is_some_and(|earlier| earlier <= at) {
            return None;
        }
        self.prune_at = Some(at);
        Some(at)
    }

    fn arrives(&mut self, now: u64) {
        let after = self.membership.changes.partition_point(|(at, _)| *at <= now);
        if after != self.arrivals.after {
            self.close_until(after);
        }
        self.arrivals.first.get_or_insert(now);
        self.arrivals.last = Some(now);
    }

    /// Closes all intervals before the one that follows `after` membership changes.
    fn close_until(&mut self, after: usize) {
        while self.arrivals.after < after {
            self.arrivals.close(&self.membership, &mut self.delays);
            self.arrivals = Arrivals { after: self.arrivals.after + 1, ..Arrivals::default() };
        }
    }
}

impl Members {
    /// Adds the members of a multicast traffic. `leaves` has, by host, the counter index of the receiver and the branches to it.
    pub(super) fn add(
        &mut self,
        testbed: &Testbed,
        flow: usize,
        path: &FlowPath,
        leaves: &BTreeMap<NodeId, (usize, Vec<u32>)>,
    ) {
        for (place, member) in path.members.iter().enumerate() {
            let (tally, branches) = &leaves[&member.host];
            self.of.insert(*tally as u32, self.all.len() as u32);
            self.all.push(MemberState::new(testbed, flow, path, place, branches.clone()));
        }
    }

    /// Returns the members for which branches forward packets.
    pub(super) fn forwarded(&self) -> impl Iterator<Item = &MemberState> {
        self.all.iter().filter(|member| member.forwards)
    }

    pub(super) fn all(&self) -> &[MemberState] {
        &self.all
    }

    pub(super) fn get_mut(&mut self, member: u32) -> &mut MemberState {
        &mut self.all[member as usize]
    }

    fn of_tally(&self, tally: u32) -> Option<&MemberState> {
        self.of.get(&tally).map(|member| &self.all[*member as usize])
    }

    /// Returns true if the datagrams that a sender begins with at `begun` count for a receiver: it is a member then, or always.
    pub(super) fn counts(&self, tally: usize, begun: u64) -> bool {
        self.of_tally(tally as u32).is_none_or(|member| member.membership.holds(begun))
    }

    /// Returns a receiver's membership, and its delays at the end of the run; `None` for a receiver that never joins or leaves.
    pub(super) fn seen(&self, tally: usize) -> Option<(&Membership, MemberDelays)> {
        let member = self.of_tally(tally as u32)?;
        let (mut delays, mut arrivals) = (member.delays, member.arrivals);
        for after in member.arrivals.after..=member.membership.changes.len() {
            arrivals.close(&member.membership, &mut delays);
            arrivals = Arrivals { after: after + 1, ..Arrivals::default() };
        }
        Some((&member.membership, delays))
    }

    /// Records that a datagram has reached the host of a receiver.
    pub(super) fn note_arrival(&mut self, tally: u32, now: u64) {
        if let Some(member) = self.of.get(&tally) {
            self.all[*member as usize].arrives(now);
        }
    }

    /// Handles an IGMP message of a member that has reached its router. Returns whether branches begin to forward for the member (`Some(true)`), and a new
    /// deadline for pruning.
    pub(super) fn on_message(
        &mut self,
        member: u32,
        message: Message,
        now: u64,
    ) -> (Option<bool>, Option<u64>) {
        let this = self.get_mut(member);
        match message {
            Message::Report => {
                this.prune_at = None;
                ((!std::mem::replace(&mut this.forwards, true)).then_some(true), None)
            }
            Message::Leave => (None, this.on_leave(now)),
        }
    }

    /// Handles a deadline for pruning. Returns true if branches stop forwarding for the member. A member has answered the queries: nothing is pruned.
    pub(super) fn on_deadline(&mut self, member: u32, now: u64) -> bool {
        let this = self.get_mut(member);
        if this.prune_at != Some(now) {
            return false;
        }
        this.prune_at = None;
        if this.membership.holds(now) {
            return false;
        }
        this.forwards = false;
        true
    }
}
