//! The queue in front of a circuit that begins at a router (docs/model.md, "Circuits that end at routers").

use std::collections::{BTreeMap, VecDeque};

use engpass_model::random::Stream;
use engpass_testbed::Topology;
use engpass_testbed::topology::NodeKind;

use crate::acted::Mechanism;
use crate::agenda::{Event, Group};
use crate::cell::{LineId, Vc};
use crate::engine::Engine;
use crate::outcome::Place;
use crate::queue::{self, Discipline, Dropped, Length};
use crate::resolve::kind;

/// Packets that wait for one direction of a circuit.
pub(crate) struct Entrance {
    discipline: Discipline,
    /// Accepted packets of which the line has not begun the last cell; of a discipline that holds packets, only the one in work.
    held: VecDeque<queue::Packet>,
    /// Since when nothing has been held.
    idle_since: u64,
    /// The line has not begun the last cell of the packet in work.
    works: bool,
    /// The instant of the last question that is on the agenda.
    asked: Option<u64>,
    came: u64,
    lost: u64,
    handed: u64,
}

impl Entrance {
    /// Packets that came, were lost, were handed to the shaper, and wait.
    pub(crate) fn counts(&self) -> (u64, u64, u64, u64) {
        let waiting = match &self.discipline {
            Discipline::Scheduler(scheduler) => scheduler.waiting().len(),
            _ => self.held.len() - usize::from(self.works),
        };
        (self.came, self.lost, self.handed, waiting as u64)
    }
}

/// The queues of all circuits that begin at routers, by direction.
pub(crate) fn entrances(topology: &Topology, vcs: &[Vc], seed: u64) -> BTreeMap<usize, Entrance> {
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
            asked: None,
            came: 0,
            lost: 0,
            handed: 0,
        };
        (index, entrance)
    };
    vcs.iter().enumerate().filter(routed).map(entrance).collect()
}

impl Engine<'_> {
    fn entrance(&mut self, vc: usize) -> &mut Entrance {
        self.entrances.get_mut(&vc).expect("the circuit begins at a router")
    }

    /// A packet comes to the queue of a circuit.
    pub(crate) fn joins_entrance(&mut self, now: u64, vc: usize, packet: usize) {
        let this = &self.packets[packet];
        let mut view = queue::Packet {
            index: packet,
            bytes: self.sdu(vc, this.ip()),
            flow: this.discipline_flow,
            priority: this.priority,
            markable: this.ect,
            marked: this.ce,
            came: now,
        };
        let this = self.entrance(vc);
        this.came += 1;
        let mut dropped = Dropped::new();
        let found = Length::of(&this.held);
        let verdict = match &mut this.discipline {
            Discipline::DropTail(config) => Some(queue::admits(config, found, &mut view)),
            Discipline::Red(red) => Some(red.admits(now, found, this.idle_since, &mut view)),
            Discipline::Scheduler(scheduler) => {
                scheduler.put(now, view, &mut dropped);
                None
            }
        };
        match verdict {
            Some(Ok(())) => {
                this.held.push_back(view);
                self.packets[packet].ce = view.marked;
            }
            Some(Err(cause)) => dropped.push((view, cause)),
            None => {}
        }
        self.lose_at_entrance(now, vc, &dropped);
        self.asks_at(now, vc);
    }

    fn lose_at_entrance(&mut self, now: u64, vc: usize, dropped: &Dropped) {
        let LineId { link, end } = self.vcs[vc].lines[0];
        self.entrance(vc).lost += dropped.len() as u64;
        for (packet, cause) in dropped {
            let place = Place::Queue { link, end, cause: *cause };
            self.ledger.lose_carrier(now, place, self.packets[packet.index].datagram);
        }
    }

    /// The queue will be asked for its next packet, if none is in work by then; once at an instant, when all has arrived that does.
    fn asks_at(&mut self, at: u64, vc: usize) {
        let position = self.vcs[vc].lines[0].position();
        let this = self.entrance(vc);
        if !this.works && this.asked != Some(at) {
            this.asked = Some(at);
            self.agenda.put(at, Group::PortTakes, position, Event::AsksForPacket { vc });
        }
    }

    /// The queue is asked for its next packet.
    pub(crate) fn asks_for_packet(&mut self, now: u64, vc: usize) {
        let this = self.entrance(vc);
        if this.works {
            return;
        }
        this.asked = None;
        let mut dropped = Dropped::new();
        let (next, ready) = match &mut this.discipline {
            Discipline::Scheduler(scheduler) => {
                let taken = scheduler.take(now, &mut dropped);
                let ready = scheduler.ready(now);
                this.held.extend(taken);
                (taken, ready.filter(|_| taken.is_none()))
            }
            _ => (this.held.front().copied(), None),
        };
        self.lose_at_entrance(now, vc, &dropped);
        if let Some(ready) = ready {
            self.asks_at(ready, vc);
        }
        let Some(next) = next else { return };
        let this = self.entrance(vc);
        this.works = true;
        this.handed += 1;
        self.packets[next.index].ce = next.marked;
        self.acted.note(Mechanism::IntoCircuit);
        // Not when its first cell is emitted: an answer may come before that.
        self.shapers[vc].begins_frame(now);
        if self.shapers[vc].has_adapted() {
            self.acted.note(Mechanism::AdaptiveAtRouter);
        }
        self.hand_to_shaper(now, vc, next.index);
    }

    /// The last cell of the packet in work has come to the line: it is known when the line begins it.
    pub(crate) fn last_cell_waits(&mut self, now: u64, vc: usize) {
        let line = self.vcs[vc].lines[0];
        let begins = self.line(line).all_left() - self.unit(line).time(1);
        let adapts = self.shapers[vc].adapts().then(|| self.shapers[vc].next());
        let at = begins.max(now + 1).max(adapts.unwrap_or(0));
        self.agenda.put(at, Group::TransmissionEnds, line.position(), Event::LastCellBegins { vc });
    }

    /// The packet in work counts no more, and the queue is asked for the next one.
    pub(crate) fn last_cell_begins(&mut self, now: u64, vc: usize) {
        let this = self.entrance(vc);
        this.works = false;
        this.held.pop_front();
        if this.held.is_empty() {
            this.idle_since = now;
        }
        self.asks_at(now, vc);
    }
}

impl std::fmt::Debug for Entrance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entrance").field("held", &self.held).field("works", &self.works).finish()
    }
}
