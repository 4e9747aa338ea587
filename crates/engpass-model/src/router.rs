//! IPv4 routers (RFC 1812).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arp::Arp;
use crate::complaint::{Complaints, LONGEST};
use crate::forward::Ecmp;
use crate::queue::Queue;
use crate::unit::{Duration, QueueLimit};
use crate::wire::ip::MAX_PACKET_BYTES;

/// A router: it joins links of any medium and ends of circuits, lowers the TTL of every packet by one (RFC 1812
/// section 5.3.1) and cuts a packet that is larger than the MTU of the way out (RFC 791 section 3.2).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Time of its forwarding engine for every packet that comes in; packets are forwarded one after the other, first come
    /// first served. None if not given: it forwards as fast as its links.
    #[serde(default = "none")]
    pub per_packet: Duration,
    /// Room for packets that its engine has not finished, the one in work included: packets, bytes of IP packets, or both. A packet that finds none is
    /// lost. Without a bound if not given. (Linux: `net.core.netdev_max_backlog`, 1000 packets; a Cisco interface: `hold-queue in`, 75 packets.)
    #[serde(default)]
    pub input_queue: Option<QueueLimit>,
    /// What every output port keeps, loses and sends next. A link's own `queue` comes before it.
    #[serde(default)]
    pub queue: Queue,
    /// Which of several equally short ways a packet takes. By default a hash of addresses, protocol and ports chooses, so that flows share the
    /// ways and each keeps its own.
    #[serde(default)]
    pub ecmp: Ecmp,
    /// Whether it tells the sender of a packet that it drops because that may not be cut and is longer than the MTU of the way out ("fragmentation
    /// needed", RFC 1191 section 4). Without such messages a connection that discovers the path MTU meets a black hole. In `emulate` also whether it tells
    /// a host that the time to live of its packet is over.
    #[serde(default = "sends")]
    pub icmp: bool,
    /// How it finds the hardware addresses of its neighbours on Ethernet links. If not given it knows them, and sends no ARP packets.
    #[serde(default)]
    pub arp: Option<Arp>,
}

fn none() -> Duration {
    Duration(0)
}

fn sends() -> bool {
    true
}

impl Router {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        complaints.at_most(&["per_packet"], Some(self.per_packet), LONGEST);
        if let Some(limit) = self.input_queue
            && (limit.packets == 0 || limit.bytes < MAX_PACKET_BYTES)
        {
            let help = format!("give 1 packet or more, or {MAX_PACKET_BYTES} B or more");
            complaints.add(&["input_queue"], "the longest packet finds no room", help);
        }
        self.queue.check_below(complaints);
        self.ecmp.check_below(complaints);
        if let Some(arp) = &self.arp {
            let mut own = Complaints::default();
            arp.check(&mut own);
            complaints.under(&["arp"], own);
        }
    }
}
