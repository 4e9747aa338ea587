//! What becomes of packets from outside: each is delivered or lost, and told once.

use std::collections::BTreeMap;

use engpass_model::queue::Ecn;
use engpass_model::wire::icmp::{self, Errors};

use super::{LossPlace, Output, Packet, Said, Transport};
use crate::simulate::Network;
use crate::simulate::datagrams::Datagram;
use crate::simulate::tally::Place;

/// What is told, and what the network must know of packets beyond their length.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Fates {
    /// By datagram.
    heads: Vec<Head>,
    /// Why packets are lost that are on their way to where that happens.
    later: BTreeMap<u32, Place>,
    /// Losses of cells, by instant and number of the datagram, until no earlier one can be found.
    lost: BTreeMap<(u64, u64), Loss>,
    /// What was not handed out yet, in order of time.
    told: Vec<Output>,
    /// Packets that have entered and of which nothing was told.
    inside: u64,
    /// Losses that were known before their time.
    known: usize,
    /// Some circuits carry packets: what their cells lose may be found later than it happens.
    pub(super) has_cells: bool,
}

/// A packet as far as the network asks.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct Head {
    way: u32,
    pub(in crate::simulate) token: u64,
    pub(in crate::simulate) ecn: Ecn,
    pub(in crate::simulate) priority: u8,
    pub(in crate::simulate) ttl: u8,
    /// Its flow, to a discipline.
    pub(in crate::simulate) flow: u32,
    pub(in crate::simulate) transport: Transport,
    /// It takes the first of equally short ways, whatever routers choose.
    takes_first: bool,
    /// Routers that it has passed, or that fragment of it that has arrived last.
    routers: u8,
    /// It, or a fragment of it, has arrived with the mark of congestion.
    marked: bool,
    /// Its loss was counted when a window ended.
    counted: bool,
    /// Its loss was told when a packet of it was lost: cells of others may turn out to have been lost before.
    told: bool,
    /// Routers may not cut it.
    pub(in crate::simulate) whole: bool,
    /// The error messages that routers send about it.
    errors: Errors,
    /// It is such a message itself, about the packet with its token; or there is one about it.
    message: Message,
}

/// What a datagram has to do with messages of routers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Message {
    #[default]
    None,
    Itself,
    About,
}

#[derive(Clone, Copy, Debug)]
struct Loss {
    way: u32,
    token: u64,
    place: Place,
    message: Message,
}

impl Fates {
    /// A packet enters as this datagram.
    pub(super) fn enters(&mut self, datagram: u32, way: u32, packet: &Packet, flow: u32) {
        let Packet { token, ecn, priority, ttl, transport, whole, errors, .. } = *packet;
        let head = Head { way, token, ecn, priority, ttl, flow, transport, whole, errors, ..Head::default() };
        self.put(datagram, head);
    }

    fn put(&mut self, datagram: u32, head: Head) {
        let index = datagram as usize;
        if self.heads.len() <= index {
            self.heads.resize(index + 1, Head::default());
        }
        self.heads[index] = head;
    }

    /// Length of the message that a router sends about a packet of the datagram, of so many bytes: the first one of the datagram, of which nothing was lost
    /// before. `None`: it sends none.
    pub(in crate::simulate) fn message_bytes(&self, datagram: u32, ip: u32) -> Option<u64> {
        self.heads[datagram as usize].errors.bytes(ip.into())
    }

    /// A router will send a message about the datagram, which is about to be lost.
    pub(in crate::simulate) fn awaits_message(&mut self, datagram: u32) {
        self.heads[datagram as usize].message = Message::About;
    }

    /// A router's message about the datagram `lost` enters as another one; disciplines know it as this flow.
    pub(in crate::simulate) fn message_enters(&mut self, datagram: u32, lost: (u32, u64), flow: u32) {
        let (way, token) = lost;
        let (priority, ttl, message) = (icmp::PRIORITY, icmp::TTL, Message::Itself);
        self.put(datagram, Head { way, token, priority, ttl, flow, message, ..Head::default() });
        self.inside += 1;
    }

    /// A router's message has arrived at the sender of the packet that it is about.
    pub(in crate::simulate) fn message_arrives(&mut self, datagram: u32, at: u64, said: Said) {
        let Head { way, token, routers, .. } = *self.head(datagram);
        self.told.push(Output::Message { at, way, token, said, routers });
        self.inside -= 1;
    }

    /// The way and the token of a datagram.
    pub(in crate::simulate) fn packet(&self, datagram: u32) -> (u32, u64) {
        let Head { way, token, .. } = *self.head(datagram);
        (way, token)
    }

    /// The datagram takes the first of equally short ways, whatever routers choose.
    pub(super) fn take_first(&mut self, datagram: u32) {
        self.heads[datagram as usize].takes_first = true;
    }

    /// Whether that is so.
    pub(in crate::simulate) fn takes_first(&self, datagram: u32) -> bool {
        self.heads[datagram as usize].takes_first
    }

    /// So many packets are inside from now on.
    pub(super) fn count_in(&mut self, packets: u32) {
        self.inside += u64::from(packets);
    }

    /// The datagram stands for the packet behind the one it stood for.
    #[inline]
    pub(in crate::simulate) fn next_token(&mut self, datagram: u32) {
        self.heads[datagram as usize].token += 1;
    }

    pub(super) fn inside(&self) -> u64 {
        self.inside
    }

    #[inline]
    pub(in crate::simulate) fn head(&self, datagram: u32) -> &Head {
        &self.heads[datagram as usize]
    }

    /// A packet of the datagram has arrived with this time to live, and perhaps with the mark of congestion.
    #[inline]
    pub(in crate::simulate) fn arrives(&mut self, datagram: u32, ttl: u8, marked: bool) {
        let head = &mut self.heads[datagram as usize];
        head.routers = head.ttl - ttl;
        head.marked |= marked;
    }

    /// The loss of the datagram is counted: whether it was before.
    pub(in crate::simulate) fn was_counted(&mut self, datagram: u32) -> bool {
        std::mem::replace(&mut self.heads[datagram as usize].counted, true)
    }

    /// The packet will be lost there, and an event says when. Returns how many were known to be lost before it.
    pub(in crate::simulate) fn lost_later(&mut self, packet: u32, place: Place) -> usize {
        self.later.insert(packet, place);
        self.known += 1;
        self.known - 1
    }

    /// Where a packet is lost whose time has come.
    pub(in crate::simulate) fn place_of(&mut self, packet: u32) -> Place {
        self.later.remove(&packet).expect("a loss that was put off has a place")
    }

    fn deliver(&mut self, datagram: u32, at: u64) {
        let Head { way, token, routers, marked: ce, .. } = *self.head(datagram);
        self.told.push(Output::Delivered { at, way, token, ce, routers });
        self.inside -= 1;
    }

    /// A datagram has lost something earlier than all that it had lost `before`.
    pub(in crate::simulate) fn loses(
        &mut self,
        datagram: u32,
        this: &Datagram,
        (at, place): (u64, Place),
        before: Option<(u64, Place)>,
    ) {
        let Head { way, token, told, message, .. } = *self.head(datagram);
        match place {
            _ if told => {}
            // What comes of the message is told behind it.
            _ if message == Message::About => {
                self.heads[datagram as usize].told = true;
                self.tell_loss(at, at, Loss { way, token, place, message });
            }
            // Cells are looked at when somebody asks, in no order: those of another fragment may have been lost before.
            _ if is_of_cells(place) || (self.has_cells && this.fragments > 1) => {
                if let Some((later, _)) = before {
                    self.lost.remove(&(later, this.index));
                }
                self.lost.insert((at, this.index), Loss { way, token, place, message });
            }
            // Packets are lost one after the other.
            _ if before.is_some() => {}
            _ => {
                self.heads[datagram as usize].told = true;
                self.tell_loss(at, at, Loss { way, token, place, message });
            }
        }
    }

    /// All ports have looked at all cells before `at`: what was lost is certain.
    pub(super) fn settle_before(&mut self, at: u64) {
        while let Some(first) = self.lost.first_entry().filter(|first| first.key().0 < at) {
            let ((lost_at, _), loss) = first.remove_entry();
            self.tell_loss(at, lost_at, loss);
        }
    }

    fn tell_loss(&mut self, at: u64, lost_at: u64, Loss { way, token, place, message }: Loss) {
        self.told.push(match message {
            Message::Itself => Output::MessageLost { at, way, token },
            _ => {
                let (place, message) = (LossPlace { place, way }, message == Message::About);
                Output::Lost { at, lost_at, way, token, place, message }
            }
        });
        self.inside -= 1;
    }

    /// Hand out what was told.
    pub(super) fn hand_out(&mut self, each: &mut impl FnMut(Output)) {
        self.told.drain(..).for_each(each);
    }
}

/// Whether cells are lost at this place.
fn is_of_cells(place: Place) -> bool {
    matches!(place, Place::Port(..) | Place::Policer(_) | Place::Reassembly(_))
}

impl Network {
    /// A packet from outside is complete at its host.
    pub(in crate::simulate) fn delivered(&mut self, datagram: u32) {
        if self.fabric.datagrams[datagram].counted {
            self.received(datagram);
        }
        if let Some(fates) = &mut self.fabric.fates {
            fates.deliver(datagram, self.now);
        }
    }
}
