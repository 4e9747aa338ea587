//! What carries, queues and reassembles cells.
//!
//! Cells are exact but never events. They move as *trains*: [`CellTrain`] records that say which cells of which frame stand
//! at which ends of a constant pace. A [`Channel`] holds the trains on their way to a queue, in order of time. A queue
//! ([`Fifo`], [`StrictPriority`]) merges its channels in one loop up to an instant, decides for every cell, and hands what it
//! sends and what it loses to an [`CellSink`], train by train.

mod alone;
mod cells;
mod channel;
mod classes;
mod departures;
mod even;
mod fifo;
mod gate;
mod generator;
mod inputs;
mod overtaken;
mod reassembly;
mod shaper;
mod window;

pub use alone::DedicatedLine;
pub use cells::{CellTrain, TrainPiece, one_by_one};
pub use channel::Channel;
pub use classes::StrictPriority;
pub use fifo::Fifo;
pub use gate::{CellAdmission, CellThresholds, Loss};
pub use generator::Generator;
pub use inputs::Inputs;
pub use reassembly::{Pdu, Reassembly};
pub use shaper::Shaper;
pub use window::Window;

use engpass_model::shape::gcra::VirtualScheduling;
use engpass_model::time::{Pace, Time};

/// Index of one direction of a circuit.
pub type VcId = u32;
/// Index of a frame. The highest ones stand for generators, whose cells are frames of their own: see [`generated_by`].
pub type PduId = u32;
/// No frame at all.
pub const NO_FRAME: PduId = PduId::MAX;
/// Identifiers from here on stand for generators.
const GENERATORS: PduId = PduId::MAX - (1 << 24);

/// The frame identifier of every cell that the source number `flow` generates.
///
/// # Panics
/// When there are more than 2^24 flows.
pub fn generated_by(flow: usize) -> PduId {
    let flow = u32::try_from(flow).ok().filter(|flow| *flow < 1 << 24).expect("fewer than 2^24 flows");
    GENERATORS + flow
}

/// The source whose cells have this identifier, if it is a generator's.
pub fn generator_of(frame: PduId) -> Option<usize> {
    frame.checked_sub(GENERATORS).map(|flow| flow as usize)
}

/// Where a queue's cells go: the network, which counts and carries on.
pub trait CellSink {
    /// `cells` leave this transmitter, each at its instant.
    fn sent(&mut self, cells: CellTrain);
    /// `cells` of one frame were lost in front of the queue, the first at `at`.
    fn lost(&mut self, cells: &CellTrain, at: u64, cause: Loss);
    /// Whether it asks when the first cell was lost of every train: else those of one generator may be told together.
    fn dates_losses(&self) -> bool {
        false
    }
    /// The line was idle for `ps` picoseconds, after all that was handed to [`Self::sent`] and before, or between, what
    /// comes next. Transmissions that ended in that time ended `rounding` parts of a picosecond later than exactly.
    fn idle(&mut self, ps: u64, rounding: u64);
    /// A cell was lost in the policer at `at`.
    fn policed(&mut self, cells: &CellTrain, at: u64);
    /// The last cell of a frame waits as number `sequence` of its class: its departure is not known yet.
    fn waiting(&mut self, frame: PduId, class: usize, sequence: u64);
    /// Which way the cells of a circuit go behind the line: those that go the same way come to the same queue. 0 is the way to a
    /// host, which only counts.
    fn way(&self, _vc: VcId) -> usize {
        1
    }
    /// Trains that leave one way, in pieces in order of time. A way 0 that leaves nothing behind [`Self::counts_until`] tells no
    /// pieces.
    fn sent_along(&mut self, way: usize, trains: &mut [CellTrain], pieces: &[TrainPiece]) {
        let _ = way;
        one_by_one(trains, pieces).for_each(|cells| self.sent(cells));
    }
    /// Cells that leave by this instant need only be counted if they go to a host.
    fn counts_until(&self) -> u64 {
        0
    }
    /// Cells of one frame, or of one generator, that have left by this instant may be handed to [`Self::sent`] together
    /// whatever was sent between them: only the record's last instant is then true.
    fn gathers_until(&self) -> u64;
}

/// What a line is doing at an instant up to which its queue was advanced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineStatus {
    /// Picoseconds since the last transmission has ended, if none goes on: not yet told to the outlet.
    pub idle: u64,
    /// By how much that end was rounded up, as in [`CellSink::idle`].
    pub rounding: u64,
    /// How long the transmission that goes on has lasted, in parts of a picosecond (the denominator of the slot makes one).
    pub begun: u128,
}

impl LineStatus {
    /// Of a line at `at` whose busy period began at `base` and whose last accepted cell leaves at `last_end`.
    fn of(slot: Pace, base: u64, last_end: u64, rounding: u64, at: u64) -> Self {
        match at.checked_sub(last_end) {
            Some(idle) => Self { idle, rounding, begun: 0 },
            None => {
                let (num, den) = slot.ratio();
                let ended = slot.ended_within(at - base);
                let begun = u128::from(at - base) * u128::from(den) - u128::from(ended) * u128::from(num);
                Self { idle: 0, rounding: 0, begun }
            }
        }
    }
}

/// What a queue knows of a circuit that passes it.
#[derive(Clone, Debug, Default)]
pub struct VcTreatment {
    /// Class of a queue with priorities; 0 is served first.
    pub class: usize,
    /// Policer in front of the queue, where the circuit enters the network here.
    pub policer: Option<VirtualScheduling>,
    /// Whether the policer tags what does not conform (CLP = 1), and loses nothing.
    pub tags: bool,
}

impl VcTreatment {
    /// Whether `cell`, which arrives at `at`, gets past the policer; it may be tagged there.
    #[inline]
    fn lets_pass(&mut self, cell: &mut CellTrain, at: u64) -> bool {
        if self.policer.as_mut().is_none_or(|policer| policer.conforms(Time(at))) {
            return true;
        }
        cell.clp |= self.tags;
        self.tags
    }
}
