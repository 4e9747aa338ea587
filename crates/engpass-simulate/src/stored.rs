//! Converts the outcome of a simulation into the types that the store keeps.

use engpass_ledger::Accounts;
use engpass_model::wire::aal5::CELL_BYTES;
use engpass_outcome::{
    CellCounts, DirectionOutcome, EngineOutcome, FrameCounts, Ledger, LinkOutcome, NodeOutcome, QueueOutcome,
    Results,
};

use super::engine_load::NodeUse;
use super::outcome::{Carried, Direction, Drop, LinkUse, QueueUse, SimOutcome};

impl SimOutcome {
    /// Returns the stored form of the outcome, without values that only tests use.
    pub fn stored(self) -> Results {
        let link = |(name, LinkUse { units_per_bit, directions, .. }): (String, LinkUse)| {
            let directions = directions.into_iter().map(|one| direction(one, units_per_bit));
            (name, LinkOutcome { directions: directions.collect() })
        };
        Results {
            flows: self.flows,
            links: self.links.into_iter().map(link).collect(),
            nodes: self.nodes.into_iter().map(node).collect(),
            drops: self.drops.into_iter().map(drop).collect(),
            events: Some(self.events),
        }
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
