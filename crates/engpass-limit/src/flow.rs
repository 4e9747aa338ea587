//! All lanes of a flow together: its limiters, and its bounds.

use std::collections::BTreeMap;
use std::ops::Range;

use engpass_outcome::{Bottleneck, BottleneckKind};
use engpass_testbed::Topology;
use engpass_testbed::topology::NodeKind;

use super::cut::{LevelBound, LevelBounds, ParallelResources};
use super::max_min::{Allocation, allocate};
use super::need::Spot;
use super::need::{Demand, Limiter, Resources};
use super::summary::{NAMED, list};
use super::{Others, ROUNDING, fraction};

/// A flow with all its lanes.
#[derive(Clone, Copy)]
pub(super) struct Flow<'d, 'a> {
    /// Index of the flow.
    pub(super) index: usize,
    pub(super) lanes: &'d [Demand<'a>],
}

/// A limiter of a flow: a possible bottleneck, with all lanes that need it.
pub(super) struct LimiterRow {
    /// Pairs of a lane's index in the flow and the limiter's index in the lane. A lane has two entries if it needs a line for two circuits.
    members: Vec<(usize, usize)>,
}

/// Returns the lanes of every flow, which are consecutive, in the order of the flows.
pub(super) fn lanes_of(demands: &[Demand<'_>]) -> Vec<Range<usize>> {
    let mut lanes: Vec<Range<usize>> = Vec::new();
    for flow in demands.chunk_by(|one, other| one.flow == other.flow) {
        let first = flow[0].index;
        lanes.push(first..first + flow.len());
    }
    lanes
}

impl<'d, 'a> Flow<'d, 'a> {
    /// Returns the flow's first lane. Properties that do not depend on the path are equal for all lanes.
    pub(super) fn first(&self) -> &'d Demand<'a> {
        &self.lanes[0]
    }

    /// Returns the sum of the connections of all lanes.
    pub(super) fn connections(&self) -> f64 {
        self.lanes.iter().map(Demand::streams).sum()
    }

    /// Returns the limiters of all lanes: those on the paths in their order, then those at the ends.
    pub(super) fn rows(&self) -> Vec<LimiterRow> {
        let mut known: BTreeMap<(u8, &str), usize> = BTreeMap::new();
        let mut rows: Vec<LimiterRow> = Vec::new();
        for (lane, demand) in self.lanes.iter().enumerate() {
            for (place, limiter) in demand.limiters.iter().enumerate() {
                let row = *known
                    .entry((limiter.kind() as u8, &limiter.bottleneck.title))
                    .or_insert_with(|| rows.len());
                if row == rows.len() {
                    rows.push(LimiterRow { members: Vec::new() });
                }
                rows[row].members.push((lane, place));
            }
        }
        if self.lanes.len() > 1 {
            rows.sort_by_key(|row| order(row.limiter(self)));
        }
        rows
    }

    /// Returns the flow's fair share: its goodput if all lanes need all their resources, in bit/s.
    pub(super) fn fair(&self, all: &Allocation) -> f64 {
        self.lanes.iter().map(|lane| all.rates[lane.index] * lane.payload_bits).sum()
    }

    /// Returns the bound that each limiter in `rows` sets on the flow.
    pub(super) fn bounds(
        &self,
        topology: &Topology,
        resources: &Resources,
        rows: &[LimiterRow],
    ) -> Vec<Bound> {
        let own = |lane: &Demand<'_>, limiter: &Limiter| super::bound(resources, lane, limiter);
        let alone = |most: f64| Bound { most, is_full: true, together: None };
        if let [lane] = self.lanes
            && lane.is_one_way()
        {
            return rows.iter().map(|row| alone(own(lane, row.limiter(self)))).collect();
        }
        let sent = |lane: &Demand<'_>| {
            let sending = lane.limiters.iter().filter(|limiter| sends(limiter.kind()));
            sending.map(|limiter| own(lane, limiter)).fold(f64::INFINITY, f64::min)
        };
        let cuts = LevelBounds::new(topology, self.lanes, &self.lanes.iter().map(sent).collect::<Vec<_>>());
        let bound = |row: &LimiterRow| {
            let limiter = row.limiter(self);
            if let Some(LevelBound { most, is_full, beside }) = limiter.place.and_then(|place| cuts.at(place))
            {
                return Bound { most, is_full, together: Some(together(topology, limiter, &beside)) };
            }
            let members = || row.members.iter().map(|(lane, limiter)| (&self.lanes[*lane], *limiter));
            let each = members().map(|(lane, limiter)| own(lane, &lane.limiters[limiter]));
            if is_own(limiter.kind()) {
                return alone(each.sum());
            }
            // Lanes that share a resource together get no more of it than if all needed as little as the lane that needs least.
            let ahead: Vec<f64> = members().map(|(lane, limiter)| lane.limiters[limiter].ahead).collect();
            let most = each.zip(&ahead).map(|(most, ahead)| if *ahead > 0.0 { most - ahead } else { most });
            alone(most.fold(0.0, f64::max) + ahead.iter().sum::<f64>())
        };
        rows.iter().map(bound).collect()
    }
}

/// The bound that a limiter sets on a flow.
pub(super) struct Bound {
    /// Largest goodput, in bit/s.
    pub(super) most: f64,
    /// True if the bound does not depend on another place.
    is_full: bool,
    /// The bottleneck, if several parallel resources together bound the flow.
    pub(super) together: Option<Bottleneck>,
}

/// Returns the index of the smallest bound.
pub(super) fn tightest(bounds: &[Bound]) -> usize {
    (0..bounds.len()).fold(0, |tightest, one| {
        let [known, new] = [tightest, one].map(|index| &bounds[index]);
        // Rounding must not decide between equal bounds. The first one wins, unless it depends on another place and a later one does not.
        let is_less = new.most < known.most * (1.0 - ROUNDING);
        let is_as_low = new.most <= known.most * (1.0 + ROUNDING);
        if is_less || (is_as_low && new.is_full && !known.is_full) { one } else { tightest }
    })
}

impl LimiterRow {
    /// Returns the limiter as the flow's first lane that needs it has it.
    pub(super) fn limiter<'d>(&self, flow: &Flow<'d, '_>) -> &'d Limiter {
        let (lane, limiter) = self.members[0];
        &flow.lanes[lane].limiters[limiter]
    }

    /// Returns the number of the flow's connections that need the limiter, and the share of the flow's packets that do.
    pub(super) fn share(&self, flow: &Flow<'_, '_>) -> (f64, f64) {
        let of = |(lane, limiter): &(usize, usize)| {
            let demand = &flow.lanes[*lane];
            (demand.streams(), demand.streams() * demand.limiters[*limiter].share)
        };
        let members: Vec<(f64, f64)> = self.members.iter().map(of).collect();
        let mut connections = 0.0;
        for (place, (streams, _)) in members.iter().enumerate() {
            let again = place > 0 && self.members[place - 1].0 == self.members[place].0;
            connections += if again { 0.0 } else { *streams };
        }
        let packets: f64 = members.iter().map(|(_, packets)| packets).sum();
        (connections, packets / flow.connections())
    }

    /// Returns, for every lane that needs the limiter, the limiter's resources: the only ones that the lane then needs.
    fn only(&self, flow: &Flow<'_, '_>) -> BTreeMap<usize, Vec<usize>> {
        let mut only: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (lane, limiter) in &self.members {
            let demand = &flow.lanes[*lane];
            only.entry(demand.index).or_default().extend(&demand.limiters[*limiter].resources);
        }
        only
    }
}

/// The goodput that a flow would have if it needed only one of its limiters and the other flows needed all their resources.
pub(super) struct SingleLimit {
    pub(super) goodput: f64,
    /// Shares of the link that the flow then takes, and that each other flow takes, by index; 0 and empty if the limiter is not a link.
    pub(super) own: f64,
    pub(super) others: Vec<(usize, f64)>,
    /// Share of the link that all other flows take together.
    pub(super) share: f64,
}

/// Computes the goodput that `flow` would have if it needed only the limiter `row` and the other flows needed all their resources. Lanes that do not need the
/// limiter get their fair share.
///
/// The smallest of these goodputs is the flow's max-min fair rate. Take the lanes that stop first while all rates rise, and the resource that stops them. Up to
/// that level no other resource of the flow was used up. Therefore leaving the others out changes nothing before, and all lanes of the flow that need this
/// resource stop there.
pub(super) fn alone(
    resources: &Resources,
    demands: &[Demand<'_>],
    all: &Allocation,
    flow: &Flow<'_, '_>,
    row: &LimiterRow,
) -> SingleLimit {
    let only = row.only(flow);
    let allocation = allocate(&resources.capacities, demands, &only);
    let (limiter, mut goodput) = (row.limiter(flow), 0.0);
    for lane in flow.lanes {
        let rates = if only.contains_key(&lane.index) { &allocation.rates } else { &all.rates };
        goodput += rates[lane.index] * lane.payload_bits;
    }
    // Lanes that need less leave more to other flows, and this may lower the flow's own rate.
    if flow.lanes.len() > 1 {
        goodput = f64::max(goodput, flow.fair(all));
    }
    let on_a_line = matches!(limiter.kind(), BottleneckKind::Link | BottleneckKind::Acknowledgements);
    let line = limiter.resources[0];
    let mut alone = SingleLimit { goodput, own: 0.0, others: Vec::new(), share: 0.0 };
    if !on_a_line {
        return alone;
    }
    for demand in demands {
        let share = fraction(allocation.of(demand.index, line), resources.capacities[line]);
        match alone.others.last_mut() {
            _ if demand.flow == flow.index => alone.own += share,
            Some((last, sum)) if *last == demand.flow => *sum += share,
            _ => alone.others.push((demand.flow, share)),
        }
    }
    alone.others.retain(|(_, share)| *share > 0.0);
    alone.share = alone.others.iter().map(|(_, share)| share).sum();
    alone
}

impl SingleLimit {
    /// Returns the other flows on a line as `flow` sees them. They were found for the equivalent flow `found_for`, so the two are exchanged.
    pub(super) fn others_of(&self, found_for: usize, flow: usize) -> Others {
        let others = self.others.iter().map(|(one, _)| *one);
        let mut first: Vec<usize> = others.filter(|one| *one != flow).take(NAMED).collect();
        if self.others.binary_search_by_key(&flow, |(one, _)| *one).is_ok() {
            first.push(found_for);
            first.sort_unstable();
            first.truncate(NAMED);
        }
        Others { count: self.others.len(), share: self.share, first }
    }
}

/// Returns whether a bottleneck of this kind bounds the payload that a lane sends, lost packets included; for TCP it bounds the payload that arrives.
fn sends(kind: BottleneckKind) -> bool {
    use BottleneckKind::{Application, SendingBus, SendingHost, SendingMemory, SendingPath, SocketBuffers};
    matches!(kind, Application | SendingBus | SendingHost | SendingMemory | SendingPath | SocketBuffers)
}

/// Returns whether every connection has its own resource of this kind.
fn is_own(kind: BottleneckKind) -> bool {
    use BottleneckKind::{Application, ReceivingPath, SendingPath, SocketBuffers};
    matches!(kind, Application | ReceivingPath | SendingPath | SocketBuffers)
}

/// Returns the sort key of limiters: those on the paths to the receiver (shapers last), routers, hosts, those on the paths back, socket buffers, applications.
/// Each group is in the order of the path, with parallel resources in the order of the file.
fn order(limiter: &Limiter) -> (u8, usize, usize) {
    let beside = |spot| match spot {
        Spot::Line(hop) | Spot::Leg(hop, _) => hop.link,
        Spot::Node(node) => node,
    };
    let (level, beside) = limiter.place.map_or((0, 0), |place| (place.level, beside(place.spot)));
    let rank = match (limiter.kind(), limiter.place) {
        (BottleneckKind::Router, _) => 2,
        (BottleneckKind::SocketBuffers, _) => 5,
        (BottleneckKind::Application, _) => 6,
        (_, None) => 3,
        (_, Some(place)) if place.back => 4,
        (BottleneckKind::Shaper, _) => 1,
        _ => 0,
    };
    (rank, level, beside)
}

/// Returns the bottleneck that a limiter forms with parallel resources.
fn together(topology: &Topology, limiter: &Limiter, beside: &ParallelResources) -> Bottleneck {
    let back = limiter.place.is_some_and(|place| place.back);
    let (kind, what, mut names): (_, _, Vec<&String>) = match beside {
        ParallelResources::Links(links) => {
            let names = links.iter().map(|link| &topology.links[*link].name).collect();
            let kind = if back { BottleneckKind::Acknowledgements } else { BottleneckKind::Link };
            (kind, "links", names)
        }
        ParallelResources::Nodes(nodes) => {
            let routers = nodes.iter().filter(|node| matches!(topology.kind(**node), NodeKind::Router(_)));
            let names = routers.map(|node| &topology.nodes[*node]).collect();
            (BottleneckKind::Router, "routers", names)
        }
    };
    names.dedup();
    // Several circuits over one link, or a router beside a circuit, have only one name.
    if names.len() < 2 {
        return limiter.bottleneck.clone();
    }
    let quoted: Vec<String> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
    let acks = if back { "acknowledgements on " } else { "" };
    Bottleneck { kind, name: None, title: format!("{acks}{what} {}", list(&quoted, names.len())) }
}
