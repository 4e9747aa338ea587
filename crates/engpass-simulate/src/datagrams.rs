//! Datagrams that hosts have sent or received.

use engpass_frames::Frames;
use engpass_ledger::{Carried, DeliveryStatus, Load};

use super::frames::trail;
use super::queueing::{IdleKey, PathId};
use super::shared_state::SharedState;

impl SharedState {
    /// Counts a datagram as sent, because its last packet has been handed over.
    #[inline(always)]
    pub(super) fn datagram_sent(&mut self, id: u32, now: u64) {
        let datagram = &mut self.datagrams[id];
        datagram.sent = true;
        if datagram.counted {
            let count = if datagram.train { datagram.fragments.into() } else { 1 };
            let counts = self.window.holds(now);
            let tally = &mut self.flows[datagram.flow as usize];
            tally.count_sent(count, datagram.bytes.into(), counts);
        }
        if self.is_copied(id) {
            self.sent_to_group(id, now);
        }
        self.release_datagram(id);
    }

    /// Notes that a packet of a datagram has arrived at this step, the end of a route with decision steps.
    pub(super) fn note_end(&mut self, datagram: u32, end: u32) {
        let this = &mut self.datagrams[datagram];
        if this.fragments == 1 {
            return;
        }
        if this.arrived == 0 {
            self.first_fragment_ends.insert(datagram, end);
        } else {
            this.paths_differ |= self.first_fragment_ends[&datagram] != end;
        }
    }

    /// Posts and releases a datagram that arrived in one packet. `load` is its load for the ledger; `None` if the receiver refused data of it.
    #[inline(always)]
    pub(crate) fn finish_datagram_fast_path(
        &mut self,
        frames: &Frames,
        datagram: u32,
        direction: (u32, Option<u32>),
        load: Option<Load>,
    ) {
        // Nearly all datagrams are identical to the one before.
        if let Some(load) = load
            && self.ledger.try_extend_run(direction, load)
        {
            self.datagrams.release(datagram);
            return;
        }
        self.finish_datagram_slow_path(frames, datagram);
    }

    /// Like [`Self::finish_datagram_fast_path`], for a datagram that differs from the one before, or part of which the receiver refused.
    #[inline(never)]
    fn finish_datagram_slow_path(&mut self, frames: &Frames, datagram: u32) {
        let trail = trail(frames, self.datagrams.packet(datagram).place);
        let this = &self.datagrams[datagram];
        let (direction, load) = ((this.flow, this.to.get()), self.load_of(this));
        self.ledger.post_datagram(
            direction,
            DeliveryStatus::Delivered,
            load,
            Carried::Whole(trail),
            this.refused,
        );
        self.datagrams.release(datagram);
    }

    /// Counts a datagram that the receiver has taken. `path` identifies its path for the idle delay; `None` if there is no idle delay. Returns
    /// the key of the idle delay if its queueing delay is still to be counted.
    #[inline(always)]
    pub(super) fn received(&mut self, datagram: u32, path: Option<PathId>, now: u64) -> Option<IdleKey> {
        let this = &self.datagrams[datagram];
        let tally = &mut self.flows[this.flow as usize];
        // The last fragment was handed over before the datagram was complete; therefore the datagram counts as sent.
        tally.in_flight -= 1;
        tally.receive(this.index, now);
        tally.receive_payload(this.bytes.into(), now);
        if let Some(trace) = &mut self.trace {
            trace.received(this.flow as usize, this.index);
        }
        if self.window.holds(now) {
            tally.received += 1;
            tally.received_bytes += u64::from(this.bytes);
            let delay = now - this.begun;
            match path.map(|path| IdleKey::of(path, this.header, this.bytes)) {
                None => tally.add_delay(delay),
                Some(key) if !this.paths_differ && tally.add_delays(key, delay) => {}
                Some(key) => {
                    tally.add_delay(delay);
                    return Some(key);
                }
            }
        } else {
            tally.rare().bytes_before += u64::from(this.bytes);
        }
        None
    }

    /// Counts and reports an injected packet that has arrived completely at its host.
    pub(crate) fn delivered(&mut self, datagram: u32, now: u64) {
        if self.datagrams[datagram].counted {
            // Hosts with injected packets cost no CPU time, and the messages in the packets are unknown. Therefore there is no idle delay.
            self.received(datagram, None, now);
        }
        if let Some(reports) = &mut self.reports {
            reports.deliver(datagram, now);
        }
    }
}
