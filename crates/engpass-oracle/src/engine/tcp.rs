//! Endpoints of TCP connections (docs/model.md, "Hosts that speak TCP"): when the state machine runs, and its CPU cost.
//!
//! The state is in `../tcp.rs`.

use std::collections::VecDeque;

use engpass_model::host::Side;
use engpass_model::random::Stream;
use engpass_model::source::TcpStream;
use engpass_model::tcp::{Connection, Effects, Role, Stats, TcpParameters};
use engpass_model::time::{Pace, SECOND, Time};
use engpass_model::unit::Share;

use super::Engine;
use crate::cell::after;
use crate::cost::{Costs, ps};
use crate::cpu::Item;
use crate::event_queue::{Event, Group, Sender};
use crate::ledger::Datagram;
use crate::outcome::TcpSeen;
use crate::packet::Packet;
use crate::tcp::{Application, Endpoint};

impl Engine<'_> {
    /// Creates the two ends of every connection of a flow, in order.
    pub(crate) fn connections_begin(&mut self, flow: usize, config: &TcpStream, seed: u64) {
        let path = &self.topology.flows[flow];
        let mtus = self.segment_mtus(flow);
        for stream in 0..config.streams as usize {
            let name = match stream {
                0 => format!("traffic.{}", path.name),
                _ => format!("traffic.{}.{stream}", path.name),
            };
            let application = Application {
                random: Stream::new(seed, &name),
                message: config.message.bytes(),
                start: ps(config.start),
                stop: config.stop.map(|stop| stop.0),
                pace: config.rate.map(|rate| Pace::of_bits(8, rate.0)),
                count: config.count,
                writes: 0,
                early: false,
                started: false,
                connected: false,
                pauses: false,
                left: None,
                copying: None,
            };
            let start = application.start;
            let ends = [(path.from, Role::Active, Some(application)), (path.to, Role::Passive, None)];
            for (end, (host, role, application)) in ends.into_iter().enumerate() {
                let heartbeat = format!("host.{}.tcp", self.topology.nodes[host]);
                let parameters = TcpParameters {
                    heartbeat_phase: Time(Stream::new(seed, &heartbeat).below(SECOND)),
                    ..config.tcp.over(&self.testbed.hosts[host].tcp).resolve(mtus[end])
                };
                self.endpoints.push(Endpoint {
                    flow,
                    place: 2 * stream + end,
                    host,
                    connection: Connection::new(&parameters, role),
                    sending: false,
                    segment: None,
                    timer: None,
                    undelivered: VecDeque::new(),
                    sent_to: 0,
                    application,
                    before: Stats::default(),
                });
            }
            let endpoint = self.endpoints.len() - 2;
            let place = self.place_of(Sender::Endpoint(endpoint));
            self.agenda.put(start, Group::ProcessReady, place, Event::EndpointStarts { endpoint });
        }
    }

    fn cost_of(&self, endpoint: usize) -> Costs {
        let this = &self.endpoints[endpoint];
        let side = if this.writes() { Side::Send } else { Side::Receive };
        let own = self.testbed.traffic[this.flow].data_path(side);
        Costs::of(&self.testbed.hosts[this.host], side, own)
    }

    /// Returns the other end of the connection. Ends come in pairs, the writing one first.
    fn other_end(endpoint: usize) -> usize {
        endpoint ^ 1
    }

    /// Opens the connection of a writing end.
    pub(crate) fn endpoint_starts(&mut self, now: u64, endpoint: usize) {
        self.application(endpoint).started = true;
        self.look_after(now, endpoint);
    }

    fn application(&mut self, endpoint: usize) -> &mut Application {
        self.endpoints[endpoint].application.as_mut().expect("the writing end has an application")
    }

    /// Follows up on any event at an endpoint: it may send, its application may copy, and its timer may have moved.
    pub(crate) fn look_after(&mut self, now: u64, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        if this.application.as_ref().is_some_and(|application| !application.started) {
            return;
        }
        if !this.sending && this.connection.wants_to_transmit(Time(now)) {
            this.sending = true;
            let host = this.host;
            self.ask_cpu(now, host, 0, Item::Output { endpoint });
        } else if !this.sending && this.writes() {
            self.copies(now, endpoint);
        }
        self.sees_to_timer(now, endpoint);
    }

    /// Schedules the next timer of the connection.
    fn sees_to_timer(&mut self, now: u64, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        let timer = this.connection.next_wake().map(|wake| wake.ps().max(now));
        if timer != this.timer {
            this.timer = timer;
            let place = self.place_of(Sender::Endpoint(endpoint));
            if let Some(at) = timer {
                self.agenda.put(at, Group::ProcessReady, place, Event::TimerExpires { endpoint });
            }
        }
    }

    /// Starts copying the next piece of a write, if there is one and the send buffer has room.
    fn copies(&mut self, now: u64, endpoint: usize) {
        let application = self.application(endpoint);
        if application.copying.is_some() {
            return;
        }
        if application.left.is_none() {
            self.next_write(now, endpoint);
        }
        let Some(left) = self.application(endpoint).left else { return };
        let this = &mut self.endpoints[endpoint];
        let piece = this.connection.next_copy(left);
        if piece > 0 {
            let host = this.host;
            let application = self.application(endpoint);
            application.copying = Some(piece);
            let first = left == application.message;
            let cost = self.cost_of(endpoint);
            let cost = cost.bytes(piece) + if first { cost.write() } else { 0 };
            self.ask_cpu(now, host, cost, Item::Write { endpoint });
        }
    }

    /// Handles a timer event, unless the timer has moved.
    pub(crate) fn timer_expires(&mut self, now: u64, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        if this.timer != Some(now) {
            return;
        }
        this.timer = None;
        let mut out = Effects::default();
        this.connection.on_timer(Time(now), &mut out);
        if out.timed_out {
            self.history(Sender::Endpoint(endpoint)).on_timeout(now);
        }
        self.look_after(now, endpoint);
    }

    /// Begins the next write of the application, unless it has ended, the write is not due, or a pause comes first.
    fn next_write(&mut self, now: u64, endpoint: usize) {
        let end = self.end();
        let pauses = self.testbed.hosts[self.endpoints[endpoint].host].pauses.clone();
        let application = self.application(endpoint);
        if !application.connected || application.pauses || application.early {
            return;
        }
        if now >= end || application.stop.is_some_and(|stop| now >= stop) {
            return;
        }
        if application.count == Some(application.writes) {
            return;
        }
        let due = application
            .pace
            .map_or(0, |pace| application.start + after(pace, application.writes * application.message));
        if now < due {
            application.early = true;
            let place = self.place_of(Sender::Endpoint(endpoint));
            return self.agenda.put(due, Group::ProcessReady, place, Event::WriteIsDue { endpoint });
        }
        if let Some(pauses) = pauses
            && application.random.below(Share::WHOLE) < pauses.share.0
        {
            let awake = now + application.random.exponential(pauses.mean.0);
            application.pauses = true;
            let place = self.place_of(Sender::Endpoint(endpoint));
            return self.agenda.put(awake, Group::ProcessReady, place, Event::EndpointAwakes { endpoint });
        }
        application.writes += 1;
        application.left = Some(application.message);
    }

    /// Handles the due time of the next write.
    pub(crate) fn write_is_due(&mut self, now: u64, endpoint: usize) {
        self.application(endpoint).early = false;
        self.look_after(now, endpoint);
    }

    /// Ends a pause before a write and begins the write.
    pub(crate) fn endpoint_awakes(&mut self, now: u64, endpoint: usize) {
        let application = self.application(endpoint);
        application.pauses = false;
        application.writes += 1;
        application.left = Some(application.message);
        self.look_after(now, endpoint);
    }

    /// Handles a piece of a write that was copied into the send buffer.
    pub(crate) fn piece_copied(&mut self, now: u64, endpoint: usize) {
        let application = self.application(endpoint);
        let piece = application.copying.take().expect("a piece of a write is being copied");
        let left = application.left.expect("a write is under way") - piece;
        application.left = (left > 0).then_some(left);
        self.endpoints[endpoint].connection.put(Time(now), piece, left == 0);
        self.look_after(now, endpoint);
    }

    /// Forms the segment of an output item at its begin, if there still is one. Returns its CPU cost in picoseconds.
    pub(crate) fn form_segment(&mut self, now: u64, endpoint: usize) -> u64 {
        let this = &mut self.endpoints[endpoint];
        let Some(segment) = this.connection.transmit(Time(now)) else { return 0 };
        if segment.len > 0 && segment.end() > this.sent_to {
            this.sent_to = segment.end();
            this.undelivered.push_back((segment.end(), now));
        }
        let (flow, back, number) = (this.flow, !this.writes(), this.connection.stats().segments_sent);
        let datagram = Datagram::segment(flow, back, segment, number, Self::other_end(endpoint));
        let datagram = self.ledger.begin(now, datagram);
        self.endpoints[endpoint].segment = Some(datagram);
        self.sees_to_timer(now, endpoint);
        let cost = self.cost_of(endpoint);
        if segment.len > 0 { cost.segment() } else { cost.ack() }
    }

    /// Hands the segment of a completed output item to the NIC, within the same event.
    pub(crate) fn segment_formed(&mut self, now: u64, endpoint: usize) {
        if self.endpoints[endpoint].segment.is_none() {
            self.endpoints[endpoint].sending = false;
            return self.look_after(now, endpoint);
        }
        self.packet_handed(now, Sender::Endpoint(endpoint));
    }

    /// Returns the packet with the segment that an endpoint hands over.
    pub(crate) fn segment_in_work(&self, endpoint: usize) -> Packet {
        let this = &self.endpoints[endpoint];
        let datagram = this.segment.expect("the endpoint has formed a segment");
        let bytes = self.ledger.datagram(datagram).bytes();
        self.packet(this.way(), datagram, 0, bytes)
    }

    /// Continues an endpoint whose segment was handed to the NIC.
    pub(crate) fn endpoint_goes_on(&mut self, now: u64, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        this.sending = false;
        let datagram = this.segment.take().expect("the endpoint has formed a segment");
        self.ledger.sent(now, datagram);
        self.history(Sender::Endpoint(endpoint)).stirs(now);
        self.look_after(now, endpoint);
    }

    /// Handles a segment that reached its host.
    pub(crate) fn segment_arrives(&mut self, now: u64, datagram: usize) {
        let (segment, endpoint) =
            self.ledger.datagram(datagram).segment.expect("the datagram is a TCP segment");
        let (host, writes) = (self.endpoints[endpoint].host, self.endpoints[endpoint].writes());
        let cost = self.cost_of(endpoint);
        let cost = match (segment.len, writes) {
            (0, _) => cost.ack(),
            (_, true) => cost.segment(),
            (bytes, false) => cost.segment() + cost.bytes(u64::from(bytes)),
        };
        if cost == 0 {
            self.take_segment(now, datagram);
        } else {
            self.ask_cpu(now, host, cost, Item::Input { datagram });
        }
    }

    /// Passes a segment to its connection.
    pub(crate) fn take_segment(&mut self, now: u64, datagram: usize) {
        let marked = self.ledger.datagram(datagram).ce;
        let (mut segment, endpoint) =
            self.ledger.datagram(datagram).segment.expect("the datagram is a TCP segment");
        segment.ce |= marked;
        let this = &mut self.endpoints[endpoint];
        let (refused, read) = (this.connection.stats().bytes_refused, this.connection.stats().bytes_received);
        let mut out = Effects::default();
        this.connection.on_segment(Time(now), &segment, &mut out);
        self.history(Sender::Endpoint(endpoint)).stirs(now);
        let this = &mut self.endpoints[endpoint];
        let refused = this.connection.stats().bytes_refused - refused;
        let read = this.connection.stats().bytes_received - read;
        let (flow, writes) = (this.flow, this.writes());
        self.ledger.reads(now, flow, if writes { 0 } else { read });
        self.receives(now, datagram, refused);
        self.count_delivered(now, endpoint);
        if let Some(time) = out.round_trip.filter(|_| writes) {
            self.ledger.round_trip(now, flow, time.ps());
        }
        if out.established && writes {
            self.application(endpoint).connected = true;
        }
        self.look_after(now, endpoint);
    }

    /// Records the segments of which the application of an endpoint now has all data.
    fn count_delivered(&mut self, now: u64, endpoint: usize) {
        // The first byte has the sequence number 1.
        let received_to = self.endpoints[endpoint].connection.stats().bytes_received + 1;
        let sender = &mut self.endpoints[Self::other_end(endpoint)];
        while let Some(&(end, first)) = sender.undelivered.front()
            && end <= received_to
        {
            sender.undelivered.pop_front();
            self.ledger.delivered(now, sender.flow, first);
        }
    }

    /// Handles the end of the warm-up at `now`.
    pub(crate) fn warm(&mut self, now: u64) {
        for history in &mut self.histories {
            history.before = history.sums(now);
        }
        for endpoint in &mut self.endpoints {
            endpoint.before = endpoint.connection.stats();
        }
    }

    /// Returns the counts of the writing ends of a flow's connections, if it has any.
    pub(crate) fn connections(&self, flow: usize) -> Option<TcpSeen> {
        let mut seen: Option<TcpSeen> = None;
        for endpoint in self.endpoints.iter().filter(|endpoint| endpoint.flow == flow && endpoint.writes()) {
            let (stats, before) = (endpoint.connection.stats(), &endpoint.before);
            let seen = seen.get_or_insert_default();
            seen.retransmitted += stats.retransmissions - before.retransmissions;
            seen.timeouts += stats.timeouts - before.timeouts;
            seen.fast_retransmits += stats.fast_recoveries - before.fast_recoveries;
            seen.smoothed_rtt =
                seen.smoothed_rtt.or(endpoint.connection.snapshot().smoothed_rtt.map(|rtt| rtt.ps()));
        }
        seen
    }
}
