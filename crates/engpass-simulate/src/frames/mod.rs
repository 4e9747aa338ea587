//! Ethernet and point-to-point links: what happens to packets at hosts, ports, switches and routers.
//!
//! The state of frame links and its rules are in the crate `engpass-frames`. Here are the handlers of events: they apply the rules, schedule further events,
//! and tell hosts, ledger, reports and captures what has happened.
//!
//! A FIFO port knows when a packet leaves as soon as the packet arrives. Therefore a packet needs an event only at its host and at ports that several lines
//! feed. A line has at most one pending event, however many packets are on it.

mod arp;
mod arrival;
mod bonds;
mod branches;
mod choices;
mod circuits;
mod control;
mod drops;
mod egress;
mod engines;
mod fragmentation;
mod hop;
mod icmp;
mod igmp;
mod keepalive;
mod outage;
mod packet_trains;
mod send_loop;
mod tunnels;

use engpass_frames::{CrossedLines, FramePort, Frames, Packet, Route};
use engpass_ledger::Trail;
use engpass_model::line::Transmission;
use engpass_model::queue::Ecn;

use super::ready_packet::ReadyPacket;
use super::shared_state::SharedState;

pub(super) use bonds::with_bond_member;
pub(super) use circuits::PduContent;
pub(super) use hop::Links;
pub(super) use igmp::begin_memberships;
pub(super) use outage::begin_events;
pub(super) use send_loop::{Pause, SendLoop};

/// Returns the trail of a packet that is at step `place`.
#[inline(always)]
pub(super) fn trail(frames: &Frames, place: u32) -> Trail {
    match frames.crossed_lines(place) {
        CrossedLines::First(lines) => Trail::along(lines),
        CrossedLines::Trail(index) => Trail::listed(index),
    }
}

impl SharedState {
    /// Begins the measurement window on every line. Everything at `from`, the last instant of the warm-up, must have happened.
    pub(super) fn begin_measurement(&mut self, frames: &mut Frames, from: u64) {
        self.ledger.end_warmup(from);
        frames.engines.iter_mut().for_each(|engine| engine.busy.begin_window(from));
        for line in &mut frames.ports {
            // Lines that lookahead has taken beyond this instant have begun their window already.
            if line.begin_window() == Some(from) {
                self.ledger.begin_window_on_frame_line(line, from);
            }
        }
    }

    /// Brings the records of a line up to date before an arrival at `at`: starts the line's measurement if it is due, and takes the samples of a timeline.
    #[inline(always)]
    fn catch_up_before(&mut self, line: &mut FramePort, at: u64) {
        if line.window_is_due(at)
            && let Some(from) = line.begin_window()
        {
            self.ledger.begin_window_on_frame_line(line, from);
        }
        if let Some(trace) = &mut self.trace {
            trace.sample_queue_before(line.port as usize, at, line);
        }
    }

    /// Creates the packet that a host hands to its NIC, and returns its number.
    #[inline(always)]
    pub(super) fn packet_of(
        &mut self,
        frames: &Frames,
        sender: usize,
        ready_packet: &ReadyPacket,
        route: u32,
    ) -> u32 {
        let Route { first, priority, ttl, .. } = frames.routes[route as usize];
        let (datagram, ip, offset) = (ready_packet.datagram, ready_packet.ip as u32, ready_packet.offset);
        let this = &mut self.datagrams[datagram];
        this.refs += 1;
        let ecn = match this.to.get().map(|_| self.datagrams.segment(datagram)) {
            Some(segment) if segment.ce => Ecn::Marked,
            Some(segment) if segment.ect => Ecn::Capable,
            _ => Ecn::NotCapable,
        };
        let mut packet = Packet {
            datagram,
            ip,
            sender: sender as u32,
            place: first,
            since: 0,
            offset,
            ttl,
            priority,
            ecn,
        };
        if let Some(reports) = &self.reports {
            let head = reports.head(datagram);
            (packet.ecn, packet.priority) = (head.ecn, head.priority);
            (packet.ttl, packet.sender) = (head.ttl, head.flow);
        }
        self.datagrams.insert_packet(packet)
    }

    /// Tells the ledger that an edge of the window cuts a transmission on the line of step `place`: the packet does not count as carried there.
    #[cold]
    #[inline(never)]
    fn clip_to_window(&mut self, frames: &Frames, place: u32, id: u32, sent: &Transmission) {
        if self.ledger.deferred.is_some() {
            // With deferred postings, the transmission is posted when it has ended.
            return;
        }
        let Packet { datagram, ip, .. } = *self.datagrams.packet(id);
        let step = frames.steps[place as usize];
        let line = &frames.ports[step.port() as usize];
        self.ledger.clip_to_window(line.port as usize, sent);
        self.track_per_hop(datagram);
        self.ledger.write(datagram, step.line_index, line.queue_bytes(ip), true);
    }

    /// Records which lines have carried a packet that leaves the network, or that is in flight at the end of the run.
    #[inline(always)]
    fn record_hops_carried(&mut self, frames: &Frames, id: u32) {
        let Packet { datagram, place, .. } = *self.datagrams.packet(id);
        let this = &mut self.datagrams[datagram];
        this.trail = trail(frames, place);
        if this.tracked_per_hop && self.ledger.deferred.is_none() {
            self.record_bytes_per_hop(frames, id);
        }
    }

    /// Records in the ledger, line by line, the bytes of a packet on the lines that carried it.
    #[inline(never)]
    fn record_bytes_per_hop(&mut self, frames: &Frames, id: u32) {
        let packet = *self.datagrams.packet(id);
        let Packet { datagram, ip, place, since, .. } = packet;
        let branched = frames.is_branched(place);
        for there in frames.carried(place, since) {
            let step = frames.steps[there as usize];
            if !step.is_line() {
                continue;
            }
            let line = &frames.ports[step.port() as usize];
            let bytes = line.queue_bytes(frames.length_at(ip, place, there));
            self.ledger.write(datagram, step.line_index, bytes, false);
            if branched {
                let piece = frames.piece(id, &packet, there);
                self.ledger.track_packet(datagram, step.line_index, piece);
            }
        }
    }

    /// Records, at the end of the run, which lines have carried the packets in flight.
    pub(super) fn record_packets_in_flight(&mut self, frames: &Frames) {
        let datagrams = &mut self.datagrams;
        datagrams.forget_free();
        // The per-hop records must exist before the first packet is recorded.
        for id in 0..datagrams.len() {
            let this = &self.datagrams[id];
            if this.refs > 0 && this.arrived < this.fragments {
                self.track_fragments_per_hop(id);
            }
        }
        for id in 0..self.datagrams.len() {
            if !self.datagrams.packet(id).is_none() {
                self.record_hops_carried(frames, id);
            }
        }
    }
}
