//! Bonds in the network: links of a host or switch that form one interface (docs/model.md, "Bonds").

use engpass_model::bond::BondMode;
use engpass_model::forward::{Headers, PacketView};
use engpass_testbed::topology::{BondPath, NodeId, NodeKind};

use super::Engine;
use crate::acted::Mechanism;
use crate::bond::{bond_of, is_single};
use crate::cell::LineId;
use crate::event_queue::{Event, Group, Sender};
use crate::packet::Out;
use crate::resolve::kind;

impl Engine<'_> {
    /// Returns the bond that chooses the member for packets that leave on this path segment, if any.
    pub(crate) fn bond_on(&self, out: Out) -> Option<usize> {
        let Out::Line(LineId { link, end }) = out else { return None };
        bond_of(&self.topology.bonds, &self.topology.links, self.topology.links[link].ends[end], link)
    }

    /// Returns the index of a member in the bond that chooses it.
    fn member(&self, bond: usize, out: Out) -> usize {
        let line = self.first_line(out);
        self.topology.bonds[bond]
            .links
            .iter()
            .position(|link| *link == line.link)
            .expect("the link is a member of the bond")
    }

    /// Returns the line of a member at the bond's end. The bond sees the carrier of this line.
    fn own_line(&self, bond: usize, member: usize) -> LineId {
        let path = &self.topology.bonds[bond];
        let link = path.links[member];
        LineId { link, end: usize::from(self.topology.links[link].ends[0] != path.node) }
    }

    /// Returns the line whose events can change the choice for packets that leave on this path segment.
    pub(crate) fn seen_line(&self, out: Out) -> LineId {
        self.bond_on(out)
            .map_or_else(|| self.first_line(out), |bond| self.own_line(bond, self.member(bond, out)))
    }

    /// Returns the index of the path segment in `group` that a bond chooses for a packet with these headers on its `turn`; `None` if the choice
    /// depends on a turn that is not given.
    pub(crate) fn bonded(
        &self,
        bond: usize,
        group: &[Out],
        view: &PacketView<'_>,
        turn: Option<u64>,
    ) -> Option<usize> {
        let (state, path) = (&self.bonds[bond], &self.topology.bonds[bond]);
        let count = path.links.len() as u64;
        let carries =
            |member: &usize| state.is_up(*member) && self.outages.is_seen_up(self.own_line(bond, *member));
        let member = match &path.config.mode {
            BondMode::ActiveBackup(_) => state.last_active,
            BondMode::Hash(config) => {
                let hash = config.layers.hash(view) as usize;
                let up: Vec<usize> = (0..path.links.len()).filter(carries).collect();
                if up.is_empty() { hash % path.links.len() } else { up[hash % up.len()] }
            }
            BondMode::RoundRobin(_) => {
                // The first packet takes turn 1.
                let turn = turn? + 1;
                let mut tried = (turn..turn + count).map(|turn| (turn % count) as usize);
                tried.find(carries).unwrap_or((turn % count) as usize)
            }
        };
        group.iter().position(|out| self.member(bond, *out) == member)
    }

    /// Chooses the member of a bond for a packet with the headers `view` that leaves a node, and counts the packet.
    pub(crate) fn leaves_by_bond(
        &mut self,
        node: NodeId,
        bond: usize,
        group: &[Out],
        view: &PacketView<'_>,
    ) -> Out {
        let turn = self.bonds[bond].sent.get(&node).copied().unwrap_or(0);
        let member = self.bonded(bond, group, view, Some(turn)).expect("a bond chooses one of its members");
        *self.bonds[bond].sent.entry(node).or_default() += 1;
        self.acted.chooses(node, group, member);
        group[member]
    }

    /// Returns the path segment on which the ready packet of a sender leaves its host.
    pub(crate) fn leaves_host(&mut self, sender: Sender) -> Out {
        let packet = self.packet_in_work(sender);
        let first = self.ways[packet.way].first;
        let host = match first {
            Out::Line(line) => self.topology.links[line.link].ends[line.end],
            Out::Circuit(_) | Out::Tunnel(_) => return first,
        };
        let group = self.group_at(packet.way, host);
        let Some(bond) = self.bond_on(first).filter(|_| group.len() > 1) else { return first };
        let heads = self.heads(sender);
        let fragment = packet.bytes < self.ledger.datagram(packet.datagram).bytes();
        let macs = self.macs(packet.way, self.first_line(first), first);
        self.leaves_by_bond(host, bond, &group, &PacketView { heads: &heads, fragment, macs })
    }

    /// Returns the last bytes of the MAC addresses of frames that a host or router sent at `framed_at` and that continue on this path segment.
    pub(crate) fn macs(&self, way: usize, framed_at: LineId, out: Out) -> [u8; 2] {
        let mut last = out;
        loop {
            let node = self.end_of(last);
            let group = self.group_at(way, node);
            match kind(&self.topology, node) {
                NodeKind::Switch(_) if !group.is_empty() => last = group[0],
                _ => break,
            }
        }
        let LineId { link, end } = self.first_line(last);
        [framed_at, LineId { link, end: 1 - end }].map(|line| self.address(line))
    }

    /// Returns the last byte of the address of a transmitter. All members of a bond have the address of the first one.
    fn address(&self, LineId { link, end }: LineId) -> u8 {
        let node = self.topology.links[link].ends[end];
        let own = self.topology.bonds.iter().position(|path| path.node == node && path.links.contains(&link));
        let LineId { link, end } = own.map_or(LineId { link, end }, |bond| self.own_line(bond, 0));
        (2 * link + end + 1) as u8
    }

    /// Returns true if another member of the host's bond than this link is active.
    pub(crate) fn is_unheard(&self, host: NodeId, link: usize) -> bool {
        let bonds = self.topology.bonds.iter().zip(&self.bonds);
        let ours = bonds.filter(|(path, _)| path.node == host && is_single(path));
        let member = |path: &BondPath| path.links.iter().position(|member| *member == link);
        ours.into_iter().any(|(path, state)| member(path).is_some_and(|member| state.active != Some(member)))
    }

    /// Handles a change of carrier that a node sees: a bond there checks its members at once or later.
    pub(crate) fn bonds_see(&mut self, now: u64, line: LineId) {
        let node = self.topology.links[line.link].ends[line.end];
        let bonds = self.topology.bonds.iter();
        let Some(bond) =
            bonds.into_iter().position(|path| path.node == node && path.links.contains(&line.link))
        else {
            return;
        };
        if self.bonds[bond].looks.is_none() {
            let interval = self.topology.bonds[bond].config.monitor.interval.0;
            let at = if interval == 0 { now } else { now.div_ceil(interval) * interval };
            self.will_look(bond, at);
        }
    }

    fn will_look(&mut self, bond: usize, at: u64) {
        self.bonds[bond].looks = Some(at);
        // After all link changes of that instant.
        self.agenda.put(at, Group::BondLooks, (bond, 0), Event::BondLooks { bond });
    }

    /// Lets a bond check the carriers of its members.
    pub(crate) fn bond_looks(&mut self, now: u64, bond: usize) {
        let path = self.topology.bonds[bond].clone();
        let carriers: Vec<bool> = (0..path.links.len())
            .map(|member| self.outages.is_seen_up(self.own_line(bond, member)))
            .collect();
        let state = &mut self.bonds[bond];
        let before = state.kept.clone();
        state.check_carriers(&path, &carriers);
        let (waits, changed) = (!state.otherwise.is_empty(), state.kept != before);
        state.looks = None;
        if changed {
            self.acted.note(Mechanism::BondMonitor);
        }
        if waits {
            self.will_look(bond, now + path.config.monitor.interval.0);
        }
    }

    /// Returns the headers of a packet that policies see.
    pub(crate) fn heads_shown(&self, packet: usize) -> Headers {
        let this = &self.packets[packet];
        match this.carries {
            Some(of) => self.outer_heads(of.tunnel),
            None => match this.keepalive {
                Some(end) => self.outer_heads(self.keepalives[end].tunnel ^ 1),
                None => self.heads_of(this.discipline_flow as usize),
            },
        }
    }
}
