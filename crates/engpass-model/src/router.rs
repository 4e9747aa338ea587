//! IPv4 routers (RFC 1812).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arp::Arp;
use crate::forward::Ecmp;
use crate::queue::Queue;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::{Duration, QueueLimit};
use crate::wire::ip::MAX_PACKET_BYTES;

/// A router. It joins links of any medium and ends of circuits, decrements the TTL of every packet (RFC 1812 section 5.3.1) and fragments
/// packets that are larger than the MTU of the outgoing link (RFC 791 section 3.2).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Time that the forwarding engine needs for every incoming packet. Packets are forwarded one after the other, first come first served.
    /// Zero if not given: the router forwards as fast as its links.
    #[serde(default = "none")]
    pub per_packet: Duration,
    /// Time that the forwarding engine needs, in addition to `per_packet`, for each copy of a multicast packet beyond the first. Zero if not given.
    #[serde(default = "none")]
    pub per_copy: Duration,
    /// Limit of the input queue in front of the forwarding engine, the packet in service included: packets, bytes of IP packets, or both. A
    /// packet that finds the queue full is dropped. Unlimited if not given. (Linux: `net.core.netdev_max_backlog`, 1000 packets; a Cisco
    /// interface: `hold-queue in`, 75 packets.)
    #[serde(default)]
    pub input_queue: Option<QueueLimit>,
    /// Queue discipline of every output port. A link's own `queue` takes precedence.
    #[serde(default)]
    pub queue: Queue,
    /// Which of several equal-cost paths a packet takes. By default a hash of addresses, protocol and ports chooses, so flows are spread
    /// over the paths and each flow keeps its path.
    #[serde(default)]
    pub ecmp: Ecmp,
    /// Whether the router sends "fragmentation needed" (RFC 1191 section 4) when it drops a packet that must not be fragmented and exceeds
    /// the MTU of the outgoing link. Without these messages, path MTU discovery meets a black hole. In `emulate`, this also applies to
    /// "time exceeded" messages to hosts.
    #[serde(default = "sends")]
    pub icmp: bool,
    /// How the router finds the hardware addresses of its neighbours on Ethernet links. If not given, it knows them and sends no ARP
    /// packets.
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
    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        errors.at_most(&["per_packet"], Some(self.per_packet), LONGEST);
        errors.at_most(&["per_copy"], Some(self.per_copy), LONGEST);
        if let Some(limit) = self.input_queue
            && (limit.packets == 0 || limit.bytes < MAX_PACKET_BYTES)
        {
            let help = format!("give at least 1 packet, or at least {MAX_PACKET_BYTES} B");
            errors.add(&["input_queue"], "the longest packet does not fit", help);
        }
        self.queue.check_below(errors);
        self.ecmp.check_below(errors);
        if let Some(arp) = &self.arp {
            let mut own = RangeErrors::default();
            arp.check(&mut own);
            errors.under(&["arp"], own);
        }
    }
}
