//! What an engine shows of a run, and how two engines are compared.
//!
//! [`Observed`] holds counts, sums and figures of times only, so that an engine without an event for each cell can fill it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

pub use crate::accounts::Accounts;
use crate::queue;
pub use crate::times::Times;

/// What was seen up to an instant. Counts are of what happened at `t` with `warmup < t <= at`, or at `t <= at` without
/// a warm-up (or with one of zero); last times and sums of times are of everything from the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The instant, in picoseconds; everything at it has happened.
    pub at: u64,
    /// One for each traffic table, in the order of the file.
    pub flows: Vec<FlowSeen>,
    /// By flow, the delays of its datagrams that were received in the counted time; `None` without any, and for generators.
    pub delays: Vec<Option<Times>>,
    /// By flow, the round trips that writing ends measured in the counted time.
    pub round_trips: Vec<Option<Times>>,
    /// What left the transmitters of ATM links. There is an entry only where a cell has left since the beginning.
    pub departures: BTreeMap<Departing, Departed>,
    /// What left the transmitters of other links, by link and end. There is an entry only where something has left.
    pub frames: BTreeMap<(usize, usize), FramesSeen>,
    /// What was lost; there is an entry only where a count is not zero.
    pub losses: BTreeMap<Losing, Lost>,
    /// Picoseconds of the counted time in which each line sent nothing, by link and end.
    pub idle: Vec<[u64; 2]>,
    /// What became of the cells, or bytes of frames, that left a line and had begun in the counted time; there is an entry only where a
    /// count is not zero.
    pub books: BTreeMap<Booking, Booked>,
    /// The accounts of every line, by link and end.
    pub accounts: BTreeMap<(usize, usize), Accounts>,
}

/// Frames that left a transmitter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FramesSeen {
    /// Frames whose last bit has left.
    pub frames: u64,
    /// Bytes of the line that they took.
    pub bytes: u64,
}

/// What the writing ends of a flow's connections counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpSeen {
    /// Segments sent again.
    pub retransmitted: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Smoothed round-trip time at the end in picoseconds, of the first connection that has measured one.
    pub smoothed_rtt: Option<u64>,
}

/// What was seen of a flow. Datagrams of a generator are its cells, those of a `tcp-stream` its segments with data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSeen {
    /// Datagrams whose last fragment was handed to the NIC; cells of a generator that reached the NIC's line.
    pub sent: u64,
    /// Datagrams received; cells of a generator that reached the receiving host in a good PDU.
    pub received: u64,
    /// Datagrams lost, sent before or not.
    pub lost: u64,
    /// Good PDUs whose last cell arrived with the EFCI mark.
    pub marked: u64,
    /// Datagrams sent since the beginning and until now neither received nor lost.
    pub in_flight: u64,
    /// Payload of the datagrams sent, in bytes.
    pub sent_bytes: u64,
    /// Payload that was received for the first time, in bytes.
    pub received_bytes: u64,
    /// Times and numbers of what was received.
    pub receptions: Receptions,
    /// Of a `tcp-stream`.
    pub tcp: Option<TcpSeen>,
    /// In a run with events.
    pub outage: Option<OutageSeen>,
}

/// What outages of links did to a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutageSeen {
    /// The longest time of the counted time without a reception, in picoseconds.
    pub longest: u64,
    /// Datagrams lost because a link was down.
    pub lost: u64,
}

/// When which datagrams were received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receptions {
    /// Time of the last one.
    pub last: Option<u64>,
    /// Of datagrams: the sum of the times, modulo 2^64. Zero for generators.
    pub times: u64,
    /// Of datagrams: the sum of time * (number + 1), modulo 2^64; the number counts the flow's datagrams from 0, and all
    /// segments of a connection's writing end from 1.
    /// Zero for generators.
    pub weighted: u64,
}

impl Receptions {
    /// The datagram with this number (`None` for a generator's cell) was received at `now`.
    pub(crate) fn add(&mut self, number: Option<u64>, now: u64) {
        self.last = Some(now);
        if let Some(number) = number {
            self.times = self.times.wrapping_add(now);
            self.weighted = self.weighted.wrapping_add(now.wrapping_mul(number + 1));
        }
    }
}

/// A direction of a circuit at a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departing {
    /// Index of the link.
    pub link: usize,
    /// Index of the end that the transmitter stands at, 0 or 1.
    pub end: usize,
    /// Index of the circuit in the topology.
    pub circuit: usize,
    /// Whether it is the circuit's own direction.
    pub forward: bool,
}

/// What left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departed {
    /// Cells.
    pub cells: u64,
    /// Those of them with CLP = 1.
    pub clp: u64,
    /// Those of them with the EFCI mark.
    pub efci: u64,
    /// When the last one had left.
    pub last: u64,
}

/// A flow at a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Booking {
    /// Index of the link.
    pub link: usize,
    /// Index of the end that the transmitter stands at, 0 or 1.
    pub end: usize,
    /// Index of the traffic; of ARP packets the one behind all traffic and receivers of groups.
    pub flow: usize,
    /// Against the direction of its data.
    pub back: bool,
}

/// Cells, or bytes of frames without the physical framing, by the fate of their datagrams (docs/ledger.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// Datagrams of a `udp-stream` that were received, all of which is counted here.
    pub whole: u64,
    /// Of datagrams that are lost.
    pub dead: u64,
    /// Of datagrams that are neither received nor lost, or were received and have parts that are not counted here.
    pub in_flight: u64,
    /// Of segments without data, messages of routers, and ARP packets.
    pub control: u64,
    /// Cells of a generator.
    pub generated: u64,
}

/// Where a flow loses something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Losing {
    /// The place.
    pub place: Place,
    /// Index of the traffic.
    pub flow: usize,
}

/// A place where cells or datagrams are lost, in the order of the table of drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The output port at this end of this link.
    Port {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
        /// Why.
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
        /// Why.
        cause: queue::Cause,
    },
    /// The line behind this end of this link.
    Line {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
    },
    /// The line behind this end of this link, or the queue in front of it: the link was down.
    Down {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
    },
    /// The host behind this end of this link: it hears another member of its bond.
    Inactive {
        /// Index of the link.
        link: usize,
        /// Index of the end, 0 or 1.
        end: usize,
    },
    /// A router, with a time to live that had run out.
    TimeToLive {
        /// Index of the node.
        node: usize,
    },
    /// A router, with a packet that is longer than the MTU of the way out and may not be cut.
    TooBig {
        /// Index of the node.
        node: usize,
    },
    /// A router that has asked for the address of a neighbour in vain.
    NoReply {
        /// Index of the node.
        node: usize,
    },
    /// A router that asks for the address of a neighbour, and has no place to hold one more packet.
    HoldFull {
        /// Index of the node.
        node: usize,
    },
    /// A router, with a packet for which the queue in front of its engine has no room.
    InputFull {
        /// Index of the node.
        node: usize,
    },
    /// The reassembly at a host, or at the router where a circuit ends.
    Reassembly {
        /// Index of the router's node; `None` at hosts.
        router: Option<usize>,
    },
    /// The end of a tunnel at a router, with an outer packet of which fragments have not come in time.
    ReassemblyTimeout {
        /// Index of the node.
        node: usize,
    },
    /// The end of a tunnel at a router, with a fragment of an outer packet for which it has no memory.
    ReassemblyMemory {
        /// Index of the node.
        node: usize,
    },
    /// The receive buffer of the flow's socket.
    ReceiveBuffer,
}

/// Why a port loses a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// `buffer full`.
    Full,
    /// `CLP threshold`.
    LowPriority,
    /// `discard policy`.
    Policy,
}

/// What was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Cells, also those of frames that had lost one before, or packets; zero at a reassembly and a receive buffer.
    pub cells: u64,
    /// Datagrams that lost their first cell or PDU here, or did not fit here.
    pub datagrams: u64,
}

/// What the fast engine shows must be what the oracle shows.
///
/// # Errors
/// All differences, one to a line, the fast engine's value first.
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
    for (what, fast, oracle) in
        [("delays", &fast.delays, &oracle.delays), ("round trips", &fast.round_trips, &oracle.round_trips)]
    {
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
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}
