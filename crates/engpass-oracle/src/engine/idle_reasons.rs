//! Idle time of lines by reason (docs/ledger.md, "Idle by reason").
//!
//! The state is in `../idle_reasons.rs`.

use super::Engine;
use crate::accounts::Unit;
use crate::cell::LineId;
use crate::event_queue::Sender;
use crate::idle_reasons::{IdleReason, LastPacket, Reasons, User, apportion, difference};
use crate::packet::Out;
use crate::sender_state::SenderState;

impl Engine<'_> {
    /// Handles the departure of cells or bytes of a packet from a line. With the last ones it apportions the idle time before the packet.
    pub(crate) fn data_leaves(
        &mut self,
        line: LineId,
        (packet, vc): (usize, Option<usize>),
        units: u64,
        last: bool,
    ) {
        let this = &self.packets[packet];
        let datagram = self.ledger.datagram(this.datagram);
        if datagram.generated || datagram.number.is_none() {
            return;
        }
        let sender = this.discipline_flow as usize;
        let emitted = this.emitted;
        let reasons = self.reasons.entry(line).or_default();
        reasons.senders.entry(sender).or_default().since += units;
        if !last {
            return;
        }
        let LastPacket { sums: then, since, .. } = reasons.senders[&sender];
        let sums = self.histories[sender].sums(emitted.expect("a departing packet was emitted"));
        let idle = reasons.open(self.books.idle_of(line));
        if let User::Shared(_) = self.user_of(line) {
            let own = self.unit(line).time(since);
            let held_back = self.held_back_by(line, sender, vc);
            let reasons = self.reasons.entry(line).or_default();
            apportion(&mut reasons.reasons, idle, difference(sums, then), own, held_back);
        }
        let reasons = self.reasons.entry(line).or_default();
        reasons.last = Some(sender);
        reasons.senders.insert(sender, LastPacket { sums: Some(sums), since: 0, vc });
    }

    /// Returns the idle time of a line in the measurement window up to `at`, by reason.
    pub(crate) fn reasons_of(&self, at: u64, line: LineId) -> Reasons {
        let this = self.reasons.get(&line).cloned().unwrap_or_default();
        let idle = self.idle(at)[line.link][line.end];
        let rest = this.open(idle);
        let mut reasons = this.reasons.clone();
        reasons.insert(IdleReason::LineDown, this.down(idle));
        let mut put = |reason| *reasons.entry(reason).or_default() += rest;
        match self.user_of(line) {
            User::Nobody => put(IdleReason::NoSender),
            User::Elsewhere => put(IdleReason::OtherWay),
            User::Application => put(IdleReason::Sender(SenderState::Application)),
            User::Sole(sender) => {
                let history = &self.histories[sender];
                let own = at - self.books.from() - rest;
                let sums = difference(history.sums(at), Some(history.before));
                let vc = self.first_vc_over(sender, line);
                apportion(&mut reasons, rest, sums, own, self.held_back_by(line, sender, vc));
            }
            User::Shared(first) => {
                let sender = this.last.unwrap_or(first);
                let last = this.senders.get(&sender).copied().unwrap_or_default();
                let sums = difference(self.histories[sender].sums(at), last.sums);
                let vc = if last.sums.is_some() { last.vc } else { self.first_vc_over(sender, line) };
                let (own, held_back) =
                    (self.unit(line).time(last.since), self.held_back_by(line, sender, vc));
                apportion(&mut reasons, rest, sums, own, held_back);
            }
        }
        reasons
    }

    pub(crate) fn unit(&self, line: LineId) -> Unit {
        Unit::of(self.topology.links[line.link].lines[line.end])
    }

    /// Returns true if the flow is a generator whose cells cross the line.
    fn generates_on(&self, flow: usize, line: LineId) -> bool {
        self.generates(flow) && self.vcs[self.vc_of(flow)].lines.contains(&line)
    }

    fn user_of(&self, line: LineId) -> User {
        let (mut senders, mut others, mut silent) = (Vec::new(), 0, false);
        for (number, sender) in self.senders().into_iter().enumerate() {
            let reads = matches!(sender, Sender::Endpoint(endpoint) if !self.endpoints[endpoint].writes());
            match self.possible[number].lines.contains(&line) {
                true if reads => others += 1,
                true => senders.push(number),
                false => {}
            }
        }
        let messages = &self.possible[self.senders().len()..];
        others += messages.iter().filter(|possible| possible.lines.contains(&line)).count();
        let mut generates = false;
        for flow in (0..self.sources.len()).filter(|flow| self.generates_on(*flow, line)) {
            match self.topology.flows[flow].cells {
                Some(_) => (generates, others) = (true, others + 1),
                None => silent = true,
            }
        }
        match (senders.first(), senders.len() + others) {
            (Some(&sender), 1) => User::Sole(sender),
            (Some(&sender), _) => User::Shared(sender),
            (None, _) if generates || silent => User::Application,
            (None, _) if self.is_on_a_fan(line) => User::Elsewhere,
            (None, _) => User::Nobody,
        }
    }

    /// Returns the first circuit on which packets of a sender may reach a line.
    fn first_vc_over(&self, sender: usize, line: LineId) -> Option<usize> {
        let outs = self.possible[sender].outs.iter();
        let mut vcs = outs.filter_map(|out| match out {
            Out::Circuit(vc) => Some(*vc),
            Out::Line(_) | Out::Tunnel(_) => None,
        });
        vcs.find(|vc| self.vcs[*vc].lines.contains(&line))
    }

    /// Returns why a line was idle while a sender was sending. `vc` is the circuit direction of its packet, if any.
    fn held_back_by(&self, line: LineId, sender: usize, vc: Option<usize>) -> IdleReason {
        if self.possible[sender].avoidable.contains(&line) {
            return IdleReason::OtherWay;
        }
        let Some(vc) = vc else { return IdleReason::Upstream };
        let first = self.vcs[vc].lines[0];
        let shaped = self.shapers[vc].adapts()
            || [first, line].iter().all(|line| self.shapers[vc].is_slower_than(self.lines[line].pace()));
        if shaped { IdleReason::Shaper } else { IdleReason::Upstream }
    }
}
