//! Observations of a run, and the comparison of two engines.
//!
//! [`Observed`] holds only counts, sums and statistics of times, so that an engine without an event for each cell can fill it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

pub use crate::accounts::Accounts;
use crate::queue;
pub use crate::times::Times;

/// Observations up to an instant. Counts cover events at `t` with `warmup < t <= at`, or at `t <= at` without a warm-up (or with one of zero). Last
/// times and sums of times cover everything from the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The instant in picoseconds; all events at it have happened.
    pub at: u64,
    /// One entry per traffic table, in the order of the file.
    pub flows: Vec<FlowSeen>,
    /// By flow: delays of its datagrams received in the measurement window; `None` without any, and for generators.
    pub delays: Vec<Option<Times>>,
    /// By flow: the part of these delays that an idle network would not cause; `None` also if packets of a datagram took different paths.
    pub queueing: Vec<Option<Times>>,
    /// By flow: delays of its messages in the measurement window, from the first transmission of a segment until all its data is in order.
    /// `None` also if no datagram was received in the window.
    pub message_delays: Vec<Option<Times>>,
    /// By flow: round trips that writing ends measured in the measurement window.
    pub round_trips: Vec<Option<Times>>,
    /// Cells that left the transmitters of ATM links. There is an entry only if a cell has left since the beginning.
    pub departures: BTreeMap<Departing, Departed>,
    /// Frames that left the transmitters of other links, by link and end. There is an entry only if one has left.
    pub frames: BTreeMap<(usize, usize), FramesSeen>,
    /// Losses. There is an entry only if a count is not zero.
    pub losses: BTreeMap<Losing, Lost>,
    /// Idle time of each line in the measurement window in picoseconds, by link and end.
    pub idle: Vec<[u64; 2]>,
    /// Delivery status of the cells, or bytes of frames, that left a line and began in the measurement window. There is an entry only if a count is not zero.
    pub books: BTreeMap<Booking, Booked>,
    /// The accounts of every line, by link and end.
    pub accounts: BTreeMap<(usize, usize), Accounts>,
    /// Queues of switches and routers, by link and end. There is an entry only if one was not empty.
    pub queues: BTreeMap<(usize, usize), QueueSeen>,
    /// Busy time of CPUs and engines of routers in picoseconds, by node and engine. There is an entry only if it is not zero.
    pub busy: BTreeMap<(usize, usize), u64>,
}

/// The queue of an output port. Each length is the longest in the measurement window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueSeen {
    /// Cells of one category.
    pub cells: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of packets.
    pub bytes: u64,
    /// Packets that the discipline marked CE.
    pub marked: u64,
}

/// Frames that left a transmitter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FramesSeen {
    /// Frames whose last bit has left.
    pub frames: u64,
    /// Bytes that they occupied on the line.
    pub bytes: u64,
}

/// Counts of the writing ends of a flow's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpSeen {
    /// Retransmitted segments.
    pub retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Smoothed round-trip time at the end in picoseconds, of the first connection that measured one.
    pub smoothed_rtt: Option<u64>,
}

/// Observations of a flow. The datagrams of a generator are its cells, those of a `tcp-stream` its segments with data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSeen {
    /// Datagrams whose last fragment was handed to the NIC; cells of a generator that reached the NIC's line.
    pub sent: u64,
    /// Datagrams received; cells of a generator that reached the receiving host in a complete PDU.
    pub received: u64,
    /// Datagrams lost, whether or not they were completely sent.
    pub lost: u64,
    /// Complete PDUs whose last cell arrived with the EFCI mark.
    pub marked: u64,
    /// Datagrams sent since the beginning that are neither received nor lost.
    pub in_flight: u64,
    /// Payload of sent datagrams in bytes.
    pub sent_bytes: u64,
    /// Payload received for the first time in bytes.
    pub received_bytes: u64,
    /// Times and numbers of received datagrams.
    pub receptions: Receptions,
    /// TCP counts; only for a `tcp-stream`.
    pub tcp: Option<TcpSeen>,
    /// Effects of outages; only in a run with events.
    pub outage: Option<OutageSeen>,
    /// Membership; only of a multicast receiver that joins or leaves.
    pub member: Option<MemberSeen>,
    /// Its transfer; only of a traffic with a `count`.
    pub transfer: Option<TransferSeen>,
}

/// A transfer as its receiver measures it, warm-up included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferSeen {
    /// Payload of messages received in bytes.
    pub bytes: u64,
    /// Begin and end of the time that counts in picoseconds, if it has ended.
    pub times: Option<[u64; 2]>,
}

/// Membership of a multicast receiver, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberSeen {
    /// Time as a member in the measurement window.
    pub within: u64,
    /// The longest time from joining to the first datagram.
    pub join: Option<u64>,
    /// The longest time from leaving to the last datagram.
    pub leave: Option<u64>,
}

/// Effects of link outages on a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutageSeen {
    /// The longest time without a reception in the measurement window, in picoseconds.
    pub longest: u64,
    /// Datagrams lost because a link was down.
    pub lost: u64,
}

/// Checksums of the times and numbers of received datagrams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receptions {
    /// Time of the last reception in picoseconds.
    pub last: Option<u64>,
    /// Sum of the reception times of datagrams, modulo 2^64; zero for generators.
    pub times: u64,
    /// Sum of time * (number + 1) over datagrams, modulo 2^64; zero for generators. Datagrams of a flow are numbered from 0, segments of a writing
    /// end from 1.
    pub weighted: u64,
}

impl Receptions {
    /// Records that the datagram with this number (`None` for a generator's cell) was received at `now`.
    pub(crate) fn add(&mut self, number: Option<u64>, now: u64) {
        self.last = Some(now);
        if let Some(number) = number {
            self.times = self.times.wrapping_add(now);
            self.weighted = self.weighted.wrapping_add(now.wrapping_mul(number + 1));
        }
    }
}

/// A circuit direction at a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departing {
    /// Index of the link.
    pub link: usize,
    /// Index of the end with the transmitter, 0 or 1.
    pub end: usize,
    /// Index of the circuit in the topology.
    pub circuit: usize,
    /// True for the forward direction of the circuit.
    pub forward: bool,
}

/// Departures of cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departed {
    /// Cells.
    pub cells: u64,
    /// Cells with CLP = 1.
    pub clp: u64,
    /// Cells with the EFCI mark.
    pub efci: u64,
    /// Departure time of the last one in picoseconds.
    pub last: u64,
}

/// A flow direction at a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Booking {
    /// Index of the link.
    pub link: usize,
    /// Index of the end with the transmitter, 0 or 1.
    pub end: usize,
    /// Index of the traffic; for ARP and IGMP packets, the index after all traffic and multicast receivers.
    pub flow: usize,
    /// True against the direction of its data.
    pub back: bool,
}

/// Cells, or bytes of frames without physical framing, by the delivery status of their datagrams (docs/ledger.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// Number of received datagrams of endless `udp-stream`s that are counted here completely.
    pub whole: u64,
    /// Amount that belongs to lost datagrams.
    pub dead: u64,
    /// Amount that belongs to datagrams that are neither received nor lost, or were received but are not counted here completely.
    pub in_flight: u64,
    /// Amount that belongs to segments without data, ICMP messages, ARP packets and IGMP messages.
    pub control: u64,
    /// Cells of a generator.
    pub generated: u64,
}

/// A flow at a drop location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Losing {
    /// The drop location.
    pub place: Place,
    /// Index of the traffic.
    pub flow: usize,
}

/// A drop location of cells or datagrams, in the order of the table of drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The output port at this end of this link.
    Port {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
        /// Drop cause.
        cause: Cause,
    },
    /// The policer in front of the output port at this end of this link.
    Policer {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
    },
    /// The queue discipline at this end of this link.
    Queue {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
        /// Drop cause.
        cause: queue::Cause,
    },
    /// The line behind this end of this link.
    Line {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
    },
    /// The line behind this end of this link, or the queue in front of it, while the link was down.
    Down {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
    },
    /// The host behind this end of this link, because another member of its bond is active.
    Inactive {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
    },
    /// A router, because the time to live became zero.
    TimeToLive {
        /// Index of the node.
        node: usize,
    },
    /// A router, because the packet exceeds the MTU of the next path segment and must not be fragmented.
    TooBig {
        /// Index of the node.
        node: usize,
    },
    /// A router that got no reply to its ARP requests.
    NoReply {
        /// Index of the node.
        node: usize,
    },
    /// A router whose hold queue for an unresolved neighbour is full.
    HoldFull {
        /// Index of the node.
        node: usize,
    },
    /// An engine of a router whose input queue is full.
    InputFull {
        /// Index of the node.
        node: usize,
        /// 0 for its route processor, else the number of the line card, from 1.
        engine: usize,
    },
    /// A node that knows no member behind a branch.
    NoMember {
        /// Index of the node.
        node: usize,
    },
    /// The reassembly at a host, or at the router where a circuit ends.
    Reassembly {
        /// Index of the router's node; `None` at hosts.
        router: Option<usize>,
    },
    /// The end of a tunnel at a router: fragments of an outer packet did not arrive in time.
    ReassemblyTimeout {
        /// Index of the node.
        node: usize,
    },
    /// The end of a tunnel at a router: there is no memory for a fragment of an outer packet.
    ReassemblyMemory {
        /// Index of the node.
        node: usize,
    },
    /// The end of a tunnel at a router: a packet with a later sequence number left before.
    OutOfSequence {
        /// Index of the node.
        node: usize,
    },
    /// The entry of a tunnel at a router that takes the tunnel for down.
    TunnelDown {
        /// Index of the node.
        node: usize,
    },
    /// The receive buffer of the flow's socket.
    ReceiveBuffer,
}

/// Why a port drops a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// `buffer full`.
    Full,
    /// `CLP threshold`.
    LowPriority,
    /// `discard policy`.
    Policy,
}

/// Losses of a flow at a location.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Lost cells (including further cells of PDUs that already lost one) or lost packets; zero at a reassembly and a receive buffer.
    pub cells: u64,
    /// Datagrams whose first loss was here.
    pub datagrams: u64,
}

/// Checks that the observations of the fast engine equal those of the oracle.
///
/// # Errors
/// All differences, one per line, the value of the fast engine first.
pub fn compare(fast: &Observed, oracle: &Observed) -> Result<(), String> {
    let mut differences = Vec::new();
    let mut differ = |what: String, fast: &dyn Debug, oracle: &dyn Debug| {
        let (fast, oracle) = (format!("{fast:?}"), format!("{oracle:?}"));
        if fast != oracle {
            differences.push(format!("{what}: fast {fast}, oracle {oracle}"));
        }
    };
    differ("instant".into(), &fast.at, &oracle.at);
    differ("number of flows".into(), &fast.flows.len(), &oracle.flows.len());
    for (flow, (fast, oracle)) in fast.flows.iter().zip(&oracle.flows).enumerate() {
        differ(format!("flow {flow}"), fast, oracle);
    }
    for (what, fast, oracle) in [
        ("delays", &fast.delays, &oracle.delays),
        ("queueing delays", &fast.queueing, &oracle.queueing),
        ("message delays", &fast.message_delays, &oracle.message_delays),
        ("round trips", &fast.round_trips, &oracle.round_trips),
    ] {
        for (flow, (fast, exact)) in fast.iter().zip(oracle).enumerate() {
            let right = match (fast, exact) {
                (Some(fast), Some(exact)) => exact.admits(fast),
                _ => fast == exact,
            };
            if !right {
                differ(format!("{what} of flow {flow}"), fast, exact);
            }
        }
    }
    for key in fast.departures.keys().chain(oracle.departures.keys()).collect::<BTreeSet<_>>() {
        differ(format!("{key:?}"), &fast.departures.get(key), &oracle.departures.get(key));
    }
    for key in fast.losses.keys().chain(oracle.losses.keys()).collect::<BTreeSet<_>>() {
        differ(format!("{key:?}"), &fast.losses.get(key), &oracle.losses.get(key));
    }
    differ("idle time".into(), &fast.idle, &oracle.idle);
    for key in fast.books.keys().chain(oracle.books.keys()).collect::<BTreeSet<_>>() {
        differ(format!("{key:?}"), &fast.books.get(key), &oracle.books.get(key));
    }
    for key in fast.frames.keys().chain(oracle.frames.keys()).collect::<BTreeSet<_>>() {
        differ(format!("frames {key:?}"), &fast.frames.get(key), &oracle.frames.get(key));
    }
    for key in fast.accounts.keys().chain(oracle.accounts.keys()).collect::<BTreeSet<_>>() {
        differ(format!("accounts {key:?}"), &fast.accounts.get(key), &oracle.accounts.get(key));
    }
    for key in fast.queues.keys().chain(oracle.queues.keys()).collect::<BTreeSet<_>>() {
        differ(format!("queue {key:?}"), &fast.queues.get(key), &oracle.queues.get(key));
    }
    for key in fast.busy.keys().chain(oracle.busy.keys()).collect::<BTreeSet<_>>() {
        differ(format!("busy time of node and engine {key:?}"), &fast.busy.get(key), &oracle.busy.get(key));
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}
