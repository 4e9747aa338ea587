//! Packets alike that somebody outside hands over at one instant: a train.
//!
//! The NIC of a host takes packets as they come, one behind the other. Where its line leads straight to another host and chance does nothing
//! to them, all there is to find out is when each leaves. So they share a datagram, a packet and an entry in the books; what is told
//! and booked of each is what would be of packets that come one by one.

use super::Packet;
use super::Route;
use crate::simulate::Network;
use crate::simulate::event::Event;

/// Packets of a train at most: the books count what it has sent in 32 bits.
const LONGEST: u32 = 1 << 12;

impl Network {
    /// How many of `count` packets of `ip` bytes, handed over now, are a train on this route: as many as find room in the memory of the NIC, which
    /// nobody else waits for. None where each has to go by itself.
    pub(in crate::simulate) fn train_on(&mut self, route: u32, ip: u32, count: u32) -> u32 {
        let Route { first, hops, .. } = self.frames.routes[route as usize];
        let step = self.frames.steps[first as usize];
        let line = &mut self.frames.ports[step.port as usize];
        let port = line.port as usize;
        if hops != 1 || step.is_routed() || !line.takes_all() || self.fabric.ledger.is_shared(port) {
            return 0;
        }
        let (occupied, _) = line.memory(self.now);
        let room = self.nics[port].capacity.checked_sub(occupied + u64::from(ip));
        // The first one fits, and so many behind it.
        let fit = |room: u64| (room / u64::from(ip)).min(LONGEST.into()) as u32 + 1;
        room.map_or(0, |room| count.min(fit(room)))
    }

    /// A train enters the NIC: the packets of this datagram, each of `ip` bytes.
    pub(in crate::simulate) fn emit_train(&mut self, sender: usize, datagram: u32, route: u32, ip: u32) {
        let Route { first, .. } = self.frames.routes[route as usize];
        let port = self.frames.steps[first as usize].port;
        let this = &mut self.fabric.datagrams[datagram];
        this.holds += 1;
        let (elastic, count) = (this.counted, this.fragments);
        let fates = self.fabric.fates.as_ref().expect("trains come from outside");
        let head = *fates.head(datagram);
        let id = self.frames.packets.insert(Packet {
            datagram,
            ip,
            sender: head.flow,
            step: first + 1,
            first,
            since: first,
            ttl: head.ttl,
            priority: head.priority,
            ecn: head.ecn,
        });
        let line = &mut self.frames.ports[port as usize];
        let mut until = self.now;
        let mut first = None;
        for _ in 0..count {
            let sent = line.take(self.now, ip, &self.fabric.window);
            until = sent.transmission.end;
            first.get_or_insert(sent.transmission);
            if let Some(at) = line.fly(sent.left, ip, id) {
                self.events.push(at, line.port as usize, Event::Arrive(port));
            }
        }
        if let Some(first) = first.filter(|_| line.watched) {
            self.fabric.ledger.transmits_train(datagram, count, &first, (until, line));
        }
        self.fabric.ledger.emitted_packet(sender, (elastic, id), self.now, until);
    }

    /// A packet of a train has arrived that is not its last one: the next one has its number and its token.
    #[inline]
    pub(super) fn train_arrives(&mut self, datagram: u32) {
        self.delivered(datagram);
        self.fabric.datagrams[datagram].index += 1;
        if let Some(fates) = &mut self.fabric.fates {
            fates.next_token(datagram);
        }
    }
}
