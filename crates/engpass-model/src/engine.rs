//! Engines that forward packets: the route processor of a router, a line card, a CPU core.

mod busy_time;

pub use busy_time::BusyTime;

use serde::{Deserialize, Serialize};

use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::{Duration, QueueLimit};
use crate::wire::ip::MAX_PACKET_BYTES;
use schemars::JsonSchema;

/// A forwarding engine. It works on one packet at a time, first come, first served. A time that is not given comes from the `preset`, and is zero without one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Engine {
    /// Hardware whose published or estimated figures apply to everything that is not given here.
    pub preset: Option<Preset>,
    /// Time for a packet that the engine forwards by its cache or table of routes (fast switching, CEF; at a line card: distributed switching).
    pub per_packet: Option<Duration>,
    /// Time for a packet that a process of the route processor forwards, instead of `per_packet`.
    pub process: Option<Duration>,
    /// Time for each copy of a multicast packet beyond the first.
    pub per_copy: Option<Duration>,
    /// Time for each fragment beyond the first of a packet that is cut for the next link, or for the tunnel that it enters. Multicast packets and packets
    /// that leave a tunnel at the router take none.
    pub per_fragment: Option<Duration>,
    /// Time for putting a packet into one or more tunnels.
    pub encapsulate: Option<Duration>,
    /// Time for taking a packet out of one or more tunnels.
    pub decapsulate: Option<Duration>,
    /// Time that a line card needs for a packet that it hands to the route processor ("punt").
    pub punt: Option<Duration>,
    /// Time that the route processor needs for a control packet: an ICMP message, ARP packet or keepalive that the router sends, or an ARP packet, IGMP message
    /// or keepalive that comes to it. If neither this nor the preset gives it, packets that the router sends take the time of other packets, and those that come to it take none.
    pub control: Option<Duration>,
    /// Time of an interrupt: a packet that finds the engine without work takes it in addition. Under load one interrupt serves many packets.
    pub interrupt: Option<Duration>,
    /// Packet memory in front of the engine, the packet in service included: packets, bytes of IP packets, or both. A packet that does not fit is dropped.
    /// Unlimited if neither this nor the preset gives it.
    pub input_queue: Option<QueueLimit>,
}

/// Hardware with known figures. Rates in packets/s of 64 B are those that Cisco published for process switching and for fast switching or CEF. Figures marked
/// with "estimate" are not published. Estimate for all route processors: a control packet takes the time of a process-switched one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum Preset {
    /// Route Processor of a Cisco 7000: 2 500 and 30 000 packets/s. Estimate: encapsulation and decapsulation 48 us each.
    #[serde(rename = "rp")]
    Rp,
    /// Route Switch Processor 2: 5 000 and 220 000 packets/s. Estimate: encapsulation and decapsulation 24 us each.
    #[serde(rename = "rsp2")]
    Rsp2,
    /// Route Switch Processor 4: 8 000 and 345 000 packets/s. Estimate: encapsulation and decapsulation 15 us each.
    #[serde(rename = "rsp4")]
    Rsp4,
    /// Route Switch Processor 8: 22 000 and 470 000 packets/s. Estimate: encapsulation and decapsulation 5.5 us each.
    #[serde(rename = "rsp8")]
    Rsp8,
    /// Versatile Interface Processor 2-10, 0.5 MB of packet memory. Estimate: 12 us for each packet, and 65 % of the memory for packets.
    #[serde(rename = "vip2-10")]
    Vip210,
    /// Versatile Interface Processor 2-15, 1 MB of packet memory. Estimate: 12 us for each packet, and 65 % of the memory for packets.
    #[serde(rename = "vip2-15")]
    Vip215,
    /// Versatile Interface Processor 2-20, 1 MB of packet memory. Estimate: 12 us for each packet, and 65 % of the memory for packets.
    #[serde(rename = "vip2-20")]
    Vip220,
    /// Versatile Interface Processor 2-40, 2 MB of packet memory, 60 000 to 95 000 packets/s. Estimate: 12 us for each packet, and 65 % of the memory for
    /// packets.
    #[serde(rename = "vip2-40")]
    Vip240,
    /// Versatile Interface Processor 2-50, 90 000 to 140 000 packets/s. Estimate: 8.7 us for each packet, the middle of this range.
    #[serde(rename = "vip2-50")]
    Vip250,
    /// One core of a Linux router: 1.74 million packets/s with one route (Høiland-Jørgensen et al., "The eXpress Data Path", CoNEXT 2018, at 3.6 GHz), and an
    /// input queue of 1000 packets (`net.core.netdev_max_backlog`).
    #[serde(rename = "linux-core")]
    LinuxCore,
}

/// Times of an engine in picoseconds, with those of its preset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineTimes {
    /// Time for a packet that it forwards.
    pub per_packet: u64,
    /// The same for a process-switched packet.
    pub process: u64,
    /// Time for each copy beyond the first.
    pub per_copy: u64,
    /// Time for each fragment beyond the first.
    pub per_fragment: u64,
    /// Time for encapsulation.
    pub encapsulate: u64,
    /// Time for decapsulation.
    pub decapsulate: u64,
    /// Time for a packet that goes to the route processor.
    pub punt: u64,
    /// Time for a control packet; `None` if it takes that of other packets when the router sends it, and none when it comes to the router.
    pub control: Option<u64>,
    /// Time of an interrupt.
    pub interrupt: u64,
    /// Bound of the packets in front of it and in it.
    pub input_queue: Option<QueueLimit>,
}

impl EngineTimes {
    /// Returns true if no packet ever waits for the engine.
    pub fn takes_no_time(&self) -> bool {
        let control = self.control.filter(|time| *time == 0);
        *self == Self { input_queue: self.input_queue, control, ..Self::default() }
    }
}

/// Picoseconds per packet at a rate in packets/s, rounded.
const fn at(rate: u64) -> u64 {
    (1_000_000_000_000 + rate / 2) / rate
}

const US: u64 = 1_000_000;

impl Preset {
    /// Returns the times of this hardware.
    pub const fn times(self) -> EngineTimes {
        const NONE: EngineTimes = EngineTimes {
            per_packet: 0,
            process: 0,
            per_copy: 0,
            per_fragment: 0,
            encapsulate: 0,
            decapsulate: 0,
            punt: 0,
            control: None,
            interrupt: 0,
            input_queue: None,
        };
        const fn processor(process: u64, fast: u64, tunnel: u64) -> EngineTimes {
            EngineTimes {
                process: at(process),
                per_packet: at(fast),
                encapsulate: tunnel,
                decapsulate: tunnel,
                control: Some(at(process)),
                ..NONE
            }
        }
        const fn card(per_packet: u64, bytes: u64) -> EngineTimes {
            EngineTimes { per_packet, input_queue: Some(QueueLimit { packets: u64::MAX, bytes }), ..NONE }
        }
        match self {
            Self::Rp => processor(2_500, 30_000, 48 * US),
            Self::Rsp2 => processor(5_000, 220_000, 24 * US),
            Self::Rsp4 => processor(8_000, 345_000, 15 * US),
            Self::Rsp8 => processor(22_000, 470_000, 55 * US / 10),
            Self::Vip210 => card(12 * US, 325_000),
            Self::Vip215 | Self::Vip220 => card(12 * US, 650_000),
            Self::Vip240 => card(12 * US, 1_300_000),
            Self::Vip250 => EngineTimes { per_packet: at(115_000), ..NONE },
            Self::LinuxCore => EngineTimes {
                per_packet: at(1_740_000),
                input_queue: Some(QueueLimit::packets(1000)),
                ..NONE
            },
        }
    }
}

impl Engine {
    /// Returns the times, those of the preset where the file gives none.
    pub fn times(&self) -> EngineTimes {
        let preset = self.preset.map(Preset::times).unwrap_or_default();
        let own = |own: Option<Duration>, preset: u64| own.map_or(preset, |own| own.0);
        EngineTimes {
            per_packet: own(self.per_packet, preset.per_packet),
            process: own(self.process, preset.process),
            per_copy: own(self.per_copy, preset.per_copy),
            per_fragment: own(self.per_fragment, preset.per_fragment),
            encapsulate: own(self.encapsulate, preset.encapsulate),
            decapsulate: own(self.decapsulate, preset.decapsulate),
            punt: own(self.punt, preset.punt),
            control: self.control.map(|own| own.0).or(preset.control),
            interrupt: own(self.interrupt, preset.interrupt),
            input_queue: self.input_queue.or(preset.input_queue),
        }
    }

    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        for (key, time) in [
            ("per_packet", self.per_packet),
            ("process", self.process),
            ("per_copy", self.per_copy),
            ("per_fragment", self.per_fragment),
            ("encapsulate", self.encapsulate),
            ("decapsulate", self.decapsulate),
            ("punt", self.punt),
            ("control", self.control),
            ("interrupt", self.interrupt),
        ] {
            errors.at_most(&[key], time, LONGEST);
        }
        check_input_queue(self.input_queue, errors);
    }
}

/// Adds an error for a queue that has no room for the longest packet.
pub(crate) fn check_input_queue(limit: Option<QueueLimit>, errors: &mut RangeErrors) {
    if let Some(limit) = limit
        && (limit.packets == 0 || limit.bytes < MAX_PACKET_BYTES)
    {
        let help = format!("give at least 1 packet, or at least {MAX_PACKET_BYTES} B");
        errors.add(&["input_queue"], "the longest packet does not fit", help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_times_take_precedence_over_those_of_the_preset() {
        let engine = Engine {
            preset: Some(Preset::Rsp4),
            encapsulate: Some(Duration(0)),
            punt: Some(Duration(7)),
            ..Engine::default()
        };
        let times = engine.times();
        assert_eq!((times.process, times.per_packet), (125_000_000, 2_898_551));
        assert_eq!((times.encapsulate, times.decapsulate, times.punt), (0, 15_000_000, 7));
        assert_eq!(times.input_queue, None);
        assert_eq!(Engine::default().times(), EngineTimes::default());
        assert_eq!((times.control, Engine::default().times().control), (Some(125_000_000), None));
        assert!(EngineTimes::default().takes_no_time() && !times.takes_no_time());
        let control = |control| EngineTimes { control: Some(control), ..EngineTimes::default() };
        assert!(control(0).takes_no_time() && !control(1).takes_no_time());
    }
}
