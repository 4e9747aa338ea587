//! The queue in front of a circuit that begins at a router (docs/model.md, "Circuits that end at routers").

use std::collections::{BTreeMap, VecDeque};

use engpass_model::random::Stream;
use engpass_model::time::{Pace, SECOND};
use engpass_model::wire::Framing;
use engpass_testbed::Topology;
use engpass_testbed::topology::NodeKind;

use crate::cell::{LineId, Vc};
use crate::nic::Shaper;
use crate::queue::{self, Discipline};
use crate::resolve::kind;

/// The queue of packets in front of one circuit direction.
pub(crate) struct Entrance {
    pub(crate) discipline: Discipline,
    /// Accepted packets whose last cell the line has not begun. With a scheduler, only the packet in work.
    pub(crate) held: VecDeque<queue::Packet>,
    /// Time since which nothing is held.
    pub(crate) idle_since: u64,
    /// True while the line has not begun the last cell of the packet in work.
    pub(crate) works: bool,
    /// True if requests follow the shaper and not the line ("Asked").
    pub(crate) paced: bool,
    /// Time of the last scheduled request for a packet.
    pub(crate) asked: Option<u64>,
    pub(crate) came: u64,
    pub(crate) lost: u64,
    pub(crate) handed: u64,
}

impl Entrance {
    /// Returns the numbers of packets that arrived, were dropped, were handed to the shaper, and wait.
    pub(crate) fn counts(&self) -> (u64, u64, u64, u64) {
        let waiting = match &self.discipline {
            Discipline::Scheduler(scheduler) => scheduler.waiting().len(),
            _ => self.held.len() - usize::from(self.works),
        };
        (self.came, self.lost, self.handed, waiting as u64)
    }
}

/// Builds the queues of all circuit directions that begin at routers.
pub(crate) fn entrances(
    topology: &Topology,
    (vcs, shapers): (&[Vc], &[Shaper]),
    seed: u64,
) -> BTreeMap<usize, Entrance> {
    let routed = |(_, vc): &(usize, &Vc)| matches!(kind(topology, vc.from), NodeKind::Router(_));
    let entrance = |(index, vc): (usize, &Vc)| {
        let LineId { link, end } = vc.lines[0];
        let link = &topology.links[link];
        let circuit = &topology.circuits[vc.circuit].name;
        let random =
            Stream::new(seed, format_args!("queue.{}.{}.{circuit}", link.name, topology.nodes[vc.from]));
        let config = link.queues[end].as_ref().expect("a router has a queue at every link");
        let entrance = Entrance {
            discipline: Discipline::new(config, link.lines[end].rate, random),
            held: VecDeque::new(),
            idle_since: 0,
            works: false,
            paced: is_paced(topology, (vcs, shapers), index),
            asked: None,
            came: 0,
            lost: 0,
            handed: 0,
        };
        (index, entrance)
    };
    vcs.iter().enumerate().filter(routed).map(entrance).collect()
}

/// Returns true if the shaper of a circuit direction sets the pace of its requests: the circuits with `shaping` that begin on its first line in their forward
/// direction may together send fewer whole cells per second than the line.
fn is_paced(topology: &Topology, (vcs, shapers): (&[Vc], &[Shaper]), index: usize) -> bool {
    let line = vcs[index].lines[0];
    let per_second = |pace: Pace| {
        let (num, den) = pace.ratio();
        u128::from(SECOND) * u128::from(den) / u128::from(num)
    };
    let fixed = |(vc, shaper): (&Vc, &Shaper)| match topology.circuits[vc.circuit].shaping {
        Some(pace) if vc.forward && !shaper.adapts() => Some(per_second(pace)),
        _ => None,
    };
    let on_line = vcs.iter().zip(shapers).filter(|(vc, _)| vc.lines[0] == line);
    let Framing::Cells { slot } = topology.links[line.link].lines[line.end].framing else {
        panic!("a circuit begins on an ATM link")
    };
    fixed((&vcs[index], &shapers[index])).is_some()
        && on_line.filter_map(fixed).sum::<u128>() < per_second(slot)
}

impl std::fmt::Debug for Entrance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entrance").field("held", &self.held).field("works", &self.works).finish()
    }
}
