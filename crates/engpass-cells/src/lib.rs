//! Transport, queueing and reassembly of ATM cells.
//!
//! Cells are exact but never events. They move as *cell trains*: a [`CellTrain`] is a run of cells of one PDU at a constant pace. A [`Channel`] holds the
//! trains on their way to a queue, in order of time. A queue ([`Fifo`], [`StrictPriority`]) merges its channels in one loop up to an instant, decides for
//! every cell, and hands sent and lost cells to a [`CellSink`], train by train.
//!
//! A queue takes many cells at once where it can. The slow path, `take_cell_by_cell` of each queue, handles all other cells and gives the same result. A fast
//! path needs all its conditions at once. *Tail drop* means [`CellAdmission::drops_only_when_full`]: no CLP and EFCI thresholds either.
//!
//! | fast path | condition | code |
//! |---|---|---|
//! | a run of cells at once, [`Fifo`] | no policer; the departures are evenly spaced, because every cell finds the line free or follows the one before; all find room, with one EFCI result, and the policy takes the train (`CellAdmission::admit_train`) | `Fifo::try_pass_run` |
//! | two interleaving trains, [`Fifo`] | tail drop; no policer for either; also while the queue is full | `Fifo::merge_two_trains` |
//! | one train, [`Fifo`] | tail drop; no policer; also while the queue is full | `Fifo::merge_one_train` |
//! | departures only counted, [`Fifo`] | they go to a host, and leave within [`CellSink::count_only_until`]: no warm-up, no capture | `DepartureBuffer::set_count_only` |
//! | a run of cells at once, [`StrictPriority`] | no cell waits; no policer; cells are more than a slot apart, or at the pace of the line; the policy takes the train | `StrictPriority::try_pass_run` |
//! | class 0 is not queued, [`StrictPriority`] | all its cells come from one evenly spaced generator, more than a slot apart, without policer, and can skip admission ([`CellAdmission::can_skip_admission`]); the network decides so once ([`StrictPriority::set_periodic_class`]) | `PeriodicPriority` |
//! | slots of both classes counted, not stepped | the line above; [`CellSink::coalesce_until`] is late enough: all cells go to hosts, no warm-up, no capture | `periodic_priority/slot_counting.rs` |
//! | runs of class 1 at once | the line above; tail drop in class 1; no policer | `PeriodicPriority::take_whole_run` |
//! | no queue at all | one generator alone on a line, more than a slot apart; the network decides | the next queue reads the generator; for bursts [`DedicatedLine`] |

mod cell_admission;
mod channel;
mod dedicated_line;
mod departures;
mod fifo;
mod generator;
mod input_channels;
mod pace_of_line;
mod periodic;
mod periodic_priority;
mod reassembly;
mod shaper;
mod strict_priority;
mod train_piece;

pub use cell_admission::{CellAdmission, CellDropCause, CellThresholds};
pub use channel::Channel;
pub use dedicated_line::DedicatedLine;
pub use fifo::Fifo;
pub use generator::Generator;
pub use input_channels::Inputs;
pub use reassembly::{Pdu, Reassembly};
pub use shaper::Shaper;
pub use strict_priority::StrictPriority;
pub use train_piece::{TrainPiece, one_by_one};

pub use engpass_model::cell_train::{CellTrain, NO_PDU, PduId, VcId, generated_by, generator_of};
use engpass_model::shape::gcra::VirtualScheduling;
use engpass_model::time::Time;

/// Receiver of the cells of a queue: the network, which counts them and passes them on.
pub trait CellSink {
    /// The transmitter has sent `cells`; [`CellTrain::nth`] gives the instant at which each leaves the line. A queue computes departures when cells arrive, so
    /// these instants may be later than the network's present.
    fn sent(&mut self, cells: CellTrain);
    /// The queue dropped `cells` of one PDU, the first one at `at`.
    fn lost(&mut self, cells: &CellTrain, at: u64, cause: CellDropCause);
    /// Returns whether every lost train must report the instant of its first loss. If not, a queue may report losses of one generator together.
    fn needs_loss_times(&self) -> bool {
        false
    }
    /// The line was idle for `ps` picoseconds in all, before or between the cells that come next to [`Self::sent`]. The ends of the transmissions before these
    /// idle times were rounded up by `rounding` parts of a picosecond in all.
    fn idle(&mut self, ps: u64, rounding: u64);
    /// The policer in front of the queue dropped one cell at `at`.
    fn policed(&mut self, cells: &CellTrain, at: u64);
    /// The last cell of a PDU joined the queue of its class, as cell number `sequence` (from 1) of all that have joined there. Its departure is not known yet.
    fn waiting(&mut self, pdu: PduId, class: usize, sequence: u64);
    /// Returns the number of the path that cells of a circuit take behind the line. A queue hands on cells with equal numbers together, in order. Path 0 leads
    /// to a host that only counts cells. Where the order of all cells matters, all circuits have path 1, even if they lead to hosts.
    fn path_number(&self, _vc: VcId) -> usize {
        1
    }
    /// The transmitter has sent `trains` to path `path_number`. `pieces` gives the order of their cells in time. For path 0 there are no pieces if all cells leave by
    /// [`Self::count_only_until`].
    fn sent_along(&mut self, path_number: usize, trains: &mut [CellTrain], pieces: &[TrainPiece]) {
        let _ = path_number;
        one_by_one(trains, pieces).for_each(|cells| self.sent(cells));
    }
    /// Returns the instant up to which cells to a host need only be counted.
    fn count_only_until(&self) -> u64 {
        0
    }
    /// Returns the instant up to which cells of one PDU, or of one generator, may be handed to [`Self::sent`] together, even if other cells were sent
    /// between them. Only the last instant of such a record is exact.
    fn coalesce_until(&self) -> u64;
}

/// How a queue treats the cells of a circuit.
#[derive(Clone, Debug, Default)]
pub struct VcTreatment {
    /// Priority class; 0 is served first.
    pub class: usize,
    /// Policer in front of the queue, if the circuit enters the network here.
    pub policer: Option<VirtualScheduling>,
    /// True if the policer tags nonconforming cells (CLP = 1) instead of dropping them.
    pub tags: bool,
}

impl VcTreatment {
    /// Returns whether `cell`, which arrives at `at`, passes the policer. The policer may tag it.
    #[inline]
    fn police(&mut self, cell: &mut CellTrain, at: u64) -> bool {
        if self.policer.as_mut().is_none_or(|policer| policer.conforms(Time(at))) {
            return true;
        }
        cell.clp |= self.tags;
        self.tags
    }
}
