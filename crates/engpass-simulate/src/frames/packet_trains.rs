//! Packet trains: identical packets that are injected for one instant and handled as one record.
//!
//! The NIC of a host takes packets one after the other. If every line on their path hands packets ahead, nothing else shares these lines, there are no
//! impairments and all queues have room, then only departures and arrivals remain to be computed. Therefore the packets of a train share a datagram, a packet
//! and, on their first line, a ledger entry. Reports and ledger are the same as for packets sent one by one.

use engpass_frames::{AdmitResult, Packet, Route};
use engpass_model::queue;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::hop::Links;
use crate::clock::NewEvent;
use crate::event_queue::Event;
use crate::host::Hosts;
use crate::injection::{InjectedSenders, QueuedPacket, Sender};
use crate::ready_packet::EgressPath;

/// Largest number of packets in a train: the ledger counts the bytes of a train in 32 bits.
const LONGEST: u32 = 1 << 12;

impl Links<'_> {
    /// Takes the first of `count` identical packets whose instant is now, as many as form a packet train. Returns how many, and the event of their arrival; `None`
    /// if the first packet forms no train with others.
    pub(crate) fn inject_train(
        &mut self,
        first: &QueuedPacket,
        count: u32,
        hosts: &Hosts,
        injected: &InjectedSenders,
    ) -> Option<(u32, Option<NewEvent>)> {
        let Sender { nic, mtu, way: EgressPath::Frames { route }, .. } = injected.sender(first.sender) else {
            return None;
        };
        let ip = u64::from(first.packet.bytes).max(IP_HEADER_BYTES);
        let nic_is_free = !injected.has_waiting(nic) && !hosts.nics[nic].has_waiters();
        if count < 2 || ip > mtu || !nic_is_free {
            return None;
        }
        let (ip, capacity) = (ip as u32, hosts.nics[nic].capacity);
        let count = self.max_train_len(route, (ip, first.packet.ttl), count, capacity);
        if count < 2 {
            return None;
        }
        let Self { shared, clock, .. } = self;
        let now = clock.now;
        if let Some(reports) = &mut shared.reports {
            reports.count_in(count);
        }
        let datagram = injected.create_datagram(first, (count as u16, true), shared);
        let sender = shared.sender_of_injected(first.sender);
        let arrival = self.emit_train(sender, datagram, ip, route);
        self.shared.injected_sent(sender, datagram, now);
        Some((count, arrival))
    }

    /// Returns how many of `count` packets of `ip` bytes, injected `now` at a NIC with a buffer of `capacity`, form a train on this route: as many as surely
    /// fit into the buffer and all queues. Returns 0 if each packet must be sent by itself.
    fn max_train_len(&mut self, route: u32, (ip, ttl): (u32, u8), count: u32, capacity: u64) -> u32 {
        let Self { frames, shared, clock } = self;
        let Route { first, hops, .. } = frames.routes[route as usize];
        let step = frames.steps[first as usize];
        let line = &mut frames.ports[step.port() as usize];
        let port = line.port as usize;
        // A capture needs every packet. A route with decision steps, circuits, tunnels or holds has `hops` 0.
        if hops == 0
            || shared.trace.is_some()
            || step.is_routed()
            || !line.is_unlimited_in_order()
            || shared.ledger.is_shared(port)
        {
            return 0;
        }
        let (occupied, _) = line.memory(clock.now);
        let room = capacity.checked_sub(occupied + u64::from(ip));
        // The first packet fits, and `room / ip` more after it.
        let fit = |room: u64| room / u64::from(ip) + 1;
        let most = room.map_or(0, fit).min(LONGEST.into()).min(count.into());
        let ledger = &shared.ledger;
        let is_shared = |port| ledger.is_shared(port);
        most.min(frames.room_behind_first_line(route, (ip, ttl), clock.now, is_shared)) as u32
    }

    /// Sends a packet train: all packets of this datagram, each of `ip` bytes. Returns the event of its first arrival, with time and place at ties, unless the
    /// line has one already.
    fn emit_train(&mut self, sender: usize, datagram: u32, ip: u32, route: u32) -> Option<NewEvent> {
        let Self { frames, shared, clock } = self;
        let now = clock.now;
        let Route { first, hops, .. } = frames.routes[route as usize];
        let this = &mut shared.datagrams[datagram];
        this.refs += 1;
        let (has_data, count) = (this.counted, this.fragments);
        let head = *shared.reports.as_ref().expect("only injected packets form trains").head(datagram);
        let steps = &frames.steps[first as usize..][..hops as usize];
        // Packets whose TTL would expire form no train.
        let routers = steps.iter().filter(|step| step.is_routed()).count();
        let id = shared.datagrams.insert_packet(Packet {
            datagram,
            ip,
            sender: head.flow,
            place: first + u32::from(hops),
            ttl: head.ttl - routers as u8,
            priority: head.priority,
            ecn: head.ecn,
            ..Packet::NONE
        });
        let view = queue::Packet { id, bytes: 0, flow: head.flow, priority: head.priority, ecn: head.ecn };
        let (mut until, mut begins, mut arrival) = (now, None, None);
        for _ in 0..count {
            let mut at = now;
            for (hop, step) in steps.iter().enumerate() {
                let line = &mut frames.ports[step.port() as usize];
                if hop > 0 {
                    shared.catch_up_before(line, at);
                }
                let view = queue::Packet { bytes: line.queue_bytes(ip), ..view };
                let AdmitResult::Departs(sent, _) = line.admit(at, view, &mut frames.dropped, &shared.window)
                else {
                    unreachable!("every line has room for the train");
                };
                // A NIC buffer counts IP packets, a queue counts frames.
                let bytes = if hop == 0 { ip } else { view.bytes };
                if hop == 0 {
                    until = sent.transmission.end;
                    begins.get_or_insert(sent.transmission);
                } else if line.posts_each_packet {
                    let datagram = (datagram, shared.datagrams[datagram].owner());
                    shared.ledger.post_transmission(
                        step.line_index,
                        datagram,
                        id,
                        &{ sent.transmission },
                        line,
                    );
                }
                if hop + 1 < steps.len() {
                    line.push_delivered_ahead(sent.left, bytes);
                    at = sent.left + line.delay;
                } else if let Some(at) = line.push_in_flight(&sent, bytes, id) {
                    arrival = Some((at, line.port as usize, Event::FrameArrival(step.port())));
                }
            }
        }
        let line = &frames.ports[steps[0].port() as usize];
        if let Some(begins) = begins.filter(|_| line.posts_each_packet) {
            shared.ledger.defer_train(datagram, count.into(), &begins, (until, line));
        }
        shared.ledger.emitted_packet(sender, (has_data, id), now, until);
        arrival
    }
}
