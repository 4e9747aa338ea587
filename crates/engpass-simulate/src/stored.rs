//! Converts the outcome of a simulation into the types that the store keeps.

use engpass_ledger::Accounts;
use engpass_model::wire::aal5::CELL_BYTES;
use engpass_outcome::{
    CellCounts, Datagrams, Delays, DirectionOutcome, EngineOutcome, FlowOutcome, FrameCounts, Ledger,
    LinkOutcome, NodeOutcome, QueueOutcome, Receiver, Results, Tcp, Transfer,
};

use super::engine_load::NodeUse;
use super::outcome::{Carried, Direction, Drop, Flow, LinkUse, Outage, QueueUse, Received, SimOutcome};

impl SimOutcome {
    /// Returns the stored form of the outcome, without values that only tests use.
    pub fn stored(self) -> Results {
        let link = |(name, LinkUse { units_per_bit, directions, .. }): (String, LinkUse)| {
            let directions = directions.into_iter().map(|one| direction(one, units_per_bit));
            (name, LinkOutcome { directions: directions.collect() })
        };
        Results {
            flows: self.flows.into_iter().map(|(name, one)| (name, flow(one))).collect(),
            links: self.links.into_iter().map(link).collect(),
            nodes: self.nodes.into_iter().map(node).collect(),
            drops: self.drops.into_iter().map(drop).collect(),
            events: Some(self.events),
        }
    }
}

fn flow(flow: Flow) -> FlowOutcome {
    let tcp = flow.tcp.map(|counts| Tcp {
        retransmitted_segments: Some(counts.retransmitted_segments),
        timeouts: Some(counts.timeouts),
        fast_retransmits: Some(counts.fast_retransmits),
        smoothed_rtt_s: counts.smoothed_rtt_s,
        rtt_s: flow.round_trips,
        ..Tcp::default()
    });
    FlowOutcome {
        kind: flow.kind.to_owned(),
        paths: flow.paths,
        goodput_bit_per_s: flow.goodput_bit_per_s,
        offered_bit_per_s: flow.offered_bit_per_s,
        datagrams: Some(Datagrams {
            sent: flow.sent_datagrams,
            received: flow.received_datagrams,
            lost: flow.lost_datagrams,
            in_flight: Some(flow.in_flight_datagrams),
            duplicate: None,
            reordered: None,
        }),
        efci_pdus: Some(flow.efci_pdus),
        delay_s: flow.delays.map(|network| Delays {
            network,
            queueing: flow.queueing,
            message: flow.message_delays,
        }),
        tcp,
        transfer: flow.transfer.map(transfer),
        outage: flow.outage.map(outage),
        receivers: flow.receivers.into_iter().map(|(host, one)| (host, receiver(one))).collect(),
        ..FlowOutcome::default()
    }
}

/// Returns the results of a transfer: the payload in bytes, and the beginning and end of the time in picoseconds.
fn transfer((received_bytes, times): (u64, Option<[u64; 2]>)) -> Transfer {
    let duration_s = times.map(|[begin, end]| (end - begin) as f64 / 1e12).filter(|time| *time > 0.0);
    let goodput_bit_per_s = duration_s.map(|time| received_bytes as f64 * 8.0 / time);
    Transfer { received_bytes, duration_s, goodput_bit_per_s }
}

fn outage(Outage { longest, lost }: Outage) -> engpass_outcome::Outage {
    engpass_outcome::Outage { longest_s: longest as f64 / 1e12, lost }
}

/// Returns the results of one receiver of a multicast traffic, as stored.
fn receiver(received: Received) -> Receiver {
    let seconds = |ps: u64| ps as f64 / 1e12;
    let delays = received.membership.map(|times| times.delays).unwrap_or_default();
    Receiver {
        member_share: received.membership.map(|times| times.within as f64 / times.window as f64),
        join_delay_s: delays.join.map(seconds),
        leave_delay_s: delays.leave.map(seconds),
        datagrams: Some(Datagrams {
            sent: received.sent_datagrams,
            received: received.received_datagrams,
            lost: received.lost_datagrams,
            in_flight: Some(received.in_flight_datagrams),
            duplicate: None,
            reordered: None,
        }),
        delay_s: received.delays.map(|network| Delays {
            network,
            queueing: received.queueing,
            message: received.message_delays,
        }),
        outage: received.outage.map(outage),
        ..Receiver::of(received.goodput_bit_per_s, received.offered_bit_per_s)
    }
}

fn direction(direction: Direction, units_per_bit: u64) -> DirectionOutcome {
    let (cells, frames) = match direction.carried {
        Carried::Cells { cells, clp1_cells, efci_cells, lost_cells } => {
            let capacity = direction.capacity_cells.expect("an ATM line has a capacity in cells");
            let counts =
                CellCounts { capacity, sent: cells, clp1: clp1_cells, efci: efci_cells, lost: lost_cells };
            (Some(counts), None)
        }
        Carried::Frames { frames, bytes, lost_frames } => {
            (None, Some(FrameCounts { sent: frames, bytes, lost: lost_frames }))
        }
    };
    DirectionOutcome {
        from: direction.from,
        to: direction.to,
        utilisation: Some(direction.utilisation),
        cells,
        frames,
        queue: direction.queue.map(queue),
        ledger: Some(ledger(&direction.ledger, direction.capacity, units_per_bit)),
        line_rate_bit_per_s: None,
        shares: Vec::new(),
    }
}

fn queue(queue: QueueUse) -> QueueOutcome {
    match queue {
        QueueUse::Cells { longest } => QueueOutcome {
            longest_bytes: longest * CELL_BYTES,
            longest_packets: None,
            longest_cells: Some(longest),
            ecn_marked: None,
        },
        QueueUse::Packets { longest, marked } => QueueOutcome {
            longest_bytes: longest.bytes,
            longest_packets: Some(longest.packets),
            longest_cells: None,
            ecn_marked: Some(marked),
        },
    }
}

fn node(NodeUse { node, engines }: NodeUse) -> (String, NodeOutcome) {
    let engines = engines.into_iter().map(|one| (one.name.to_owned(), EngineOutcome { load: one.load }));
    (node, NodeOutcome { engines: engines.collect() })
}

fn ledger(accounts: &Accounts, capacity: u128, units_per_bit: u64) -> Ledger {
    let accounts = accounts.iter().map(|(name, units)| (name.to_owned(), units)).collect();
    Ledger { units_per_bit, capacity, accounts }
}

fn drop(drop: Drop) -> engpass_outcome::Drop {
    let Drop { place, cause, flow, cells, datagrams, .. } = drop;
    engpass_outcome::Drop { place, cause: cause.to_owned(), flow, cells, datagrams }
}
