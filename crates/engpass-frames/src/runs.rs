//! Routes without decision steps, as runs of steps.

use engpass_testbed::Topology;
use engpass_testbed::topology::{NodeId, NodeKind, PathSegment};

use super::verdict::tunnel_of;
use super::{Frames, Step, Verdict};

/// State of the layout of a route without decision steps.
struct Run<'a> {
    topology: &'a Topology,
    /// Path segments inside tunnels that are still to be laid out.
    within: &'a [PathSegment],
    /// Number of lines so far.
    line_index: u16,
    /// Directions of the tunnels that packets are in.
    inside: Vec<u32>,
    /// True if routers resolve addresses for packets outside tunnels, too.
    resolves: bool,
}

/// Returns the first node that is no switch, at the end of `leg` or of the path segments behind it.
fn first_station(topology: &Topology, leg: PathSegment, behind: &[PathSegment]) -> NodeId {
    let ends = [leg].into_iter().chain(behind.iter().copied()).map(|leg| topology.last_hop(leg).to);
    let mut stations = ends.filter(|node| !matches!(topology.kind(*node), NodeKind::Switch(_)));
    stations.next().expect("a path does not end at a switch")
}

impl Frames {
    /// Adds a route without decision steps to the step table. `within` holds the path segments inside its tunnels, one tunnel after the other. Routers resolve
    /// addresses if `resolves` is true, and always within tunnels.
    pub(crate) fn add_run(
        &mut self,
        topology: &Topology,
        legs: &[PathSegment],
        within: &[PathSegment],
        resolves: bool,
    ) {
        let mut run = Run { topology, within, line_index: 0, inside: Vec::new(), resolves };
        for (place, leg) in legs.iter().enumerate() {
            self.add_leg(&mut run, *leg, &legs[place + 1..]);
        }
        self.steps.push(Step { line_index: run.line_index, ..Step::END });
        self.tunnels.in_stack(self.steps.len(), 0);
    }

    /// Adds a path segment of a route without decision steps; `behind` holds the path segments that follow it.
    fn add_leg(&mut self, run: &mut Run<'_>, leg: PathSegment, behind: &[PathSegment]) {
        let mut step = self.step(run.topology, &leg);
        if run.resolves || !run.inside.is_empty() {
            let station = || first_station(run.topology, leg, behind);
            if let Some(hold) = self.hold_before(run.topology, leg, station, &mut step) {
                self.add_step(run, hold);
            }
        }
        self.add_step(run, step);
        run.line_index += self.lines_in(step).len() as u16;
        let (PathSegment::Tunnel { tunnel, forward }, Verdict::Wrap(direction)) = (leg, step.verdict) else {
            return;
        };
        run.inside.push(direction);
        let [mut node, end] = run.topology.tunnels[tunnel].from_to(forward);
        while node != end {
            let (leg, behind) = run.within.split_first().expect("the path reaches the end of the tunnel");
            run.within = behind;
            self.add_leg(run, *leg, behind);
            node = run.topology.last_hop(*leg).to;
        }
        let step = self.unwrap_step(run.topology, direction);
        self.add_step(run, step);
        run.inside.pop();
    }

    fn add_step(&mut self, run: &Run<'_>, step: Step) {
        let stack = self.tunnels.stack(&run.inside);
        self.steps.push(Step { line_index: run.line_index, ..step });
        self.tunnels.in_stack(self.steps.len(), stack);
    }

    /// Returns the step at which packets leave a tunnel direction.
    pub(crate) fn unwrap_step(&mut self, topology: &Topology, direction: u32) -> Step {
        let (tunnel, forward) = tunnel_of(direction);
        let end = topology.tunnels[tunnel].from_to(forward)[1];
        let NodeKind::Router(router) = topology.kind(end) else { unreachable!("a tunnel ends at a router") };
        self.engines[router].never_ahead = true;
        Step {
            verdict: Verdict::Unwrap(direction),
            router: router as u32,
            mtu: u32::MAX,
            takes_time: true,
            ..Step::END
        }
    }
}
