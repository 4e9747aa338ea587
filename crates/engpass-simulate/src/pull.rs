//! Pull: advances a cell port up to an instant, and before it the ports that send cells to it.
//!
//! A cell that a port takes after `t` arrives at the next port after `t` plus the lookahead: the time of a cell and the propagation
//! delay. A port therefore knows all arrivals up to `t` once every port before it has taken its own up to `t` less the lookahead.

use super::cell_ports::{CellNetwork, Port};
use super::shared_state::SharedState;

/// A ring: ports on common cycles. Every port of a ring waits for every other one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ring {
    /// Ports of the ring. Upstream ports come before downstream ports, as far as a cycle allows.
    ports: Vec<usize>,
    /// Ports outside the ring that send cells into it.
    upstream: Vec<usize>,
}

/// The pull in progress: a stack of steps.
#[derive(Debug, Default)]
pub(super) struct Worklist {
    /// Each step waits for the steps behind it. Empty between two pulls.
    steps: Vec<Pull>,
    /// Number of pulls so far.
    pulls: u64,
}

/// A port or a ring that must take its arrivals up to and including `until`.
#[derive(Clone, Copy, Debug)]
struct Pull {
    target: Target,
    until: u64,
    /// Index of the upstream port that is looked at next.
    next: usize,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Port(usize),
    Ring(usize),
}

impl Ring {
    /// Returns the ports of the ring.
    pub(super) fn ports(&self) -> impl Iterator<Item = usize> {
        self.ports.iter().copied()
    }
}

impl CellNetwork {
    /// Takes all arrivals at `port` up to and including `until`. No event before `until` may still be open.
    pub(super) fn advance(&mut self, port: usize, until: u64, shared: &mut SharedState) {
        self.advance_with_upstream(port, until, shared, |_| true);
        self.collect_departures(&shared.vcs);
    }

    /// Takes all arrivals up to and including `until` at every port.
    pub(super) fn advance_all(&mut self, until: u64, shared: &mut SharedState) {
        (0..self.ports.len()).for_each(|port| self.advance(port, until, shared));
    }

    /// Takes all arrivals at `port` up to and including `until`, and before them those at its upstream ports, as far as `draw` returns true for them.
    ///
    /// A port that comes up twice in one pull takes all arrivals up to `until`; if it is in a ring, all ports of the ring do. Therefore no port has work three
    /// times, however many paths lead to it and however short the links are.
    pub(super) fn advance_with_upstream(
        &mut self,
        port: usize,
        until: u64,
        shared: &mut SharedState,
        draw: impl Fn(&Port) -> bool,
    ) {
        let until = until.min(shared.window.end);
        if self.ports[port].upstream.is_empty() {
            return self.take(port, until, shared);
        }
        self.worklist.pulls += 1;
        self.add_to_worklist(port, until, until);
        while let Some(step) = self.worklist.steps.last_mut() {
            let Pull { target, until: needed, next } = *step;
            step.next += 1;
            let upstream = match target {
                Target::Port(port) => &self.ports[port].upstream,
                Target::Ring(ring) => &self.rings[ring].upstream,
            };
            if let Some(&before) = upstream.get(next) {
                let this = &self.ports[before];
                if let Some(earlier) = needed.checked_sub(this.lookahead)
                    && draw(this)
                {
                    self.add_to_worklist(before, earlier, until);
                }
                continue;
            }
            self.worklist.steps.pop();
            match target {
                Target::Port(port) => self.take(port, needed, shared),
                Target::Ring(ring) => self.take_arrivals_in_ring(ring, needed, shared),
            }
        }
    }

    /// Puts `port`, or its ring, on the worklist, unless it has taken all arrivals up to `needed`. The pull goes up to `until`.
    #[inline]
    fn add_to_worklist(&mut self, port: usize, needed: u64, until: u64) {
        let this = &mut self.ports[port];
        if this.is_advanced_to(needed) {
            return;
        }
        let again = std::mem::replace(&mut this.pulled, self.worklist.pulls) == self.worklist.pulls;
        let (target, until) = match this.ring {
            Some(ring) if again => (Target::Ring(ring), until),
            _ => (Target::Port(port), if again { until } else { needed }),
        };
        self.worklist.steps.push(Pull { target, until, next: 0 });
    }

    /// Takes all arrivals at all ports of a ring up to and including `until`. Arrivals from outside the ring must be announced.
    fn take_arrivals_in_ring(&mut self, ring: usize, until: u64, shared: &mut SharedState) {
        // `take` does not look at rings.
        let ports = std::mem::take(&mut self.rings[ring].ports);
        let least = ports.iter().map(|&port| self.ports[port].lookahead).min().expect("a ring has ports");
        let mut done = false;
        while !done {
            // No transmission that is not announced begins before `next`. Therefore no such cell arrives before `next + least`.
            let next = ports
                .iter()
                .map(|&port| self.next_transmission(port, shared))
                .min()
                .expect("a ring has ports");
            let sure = next.saturating_add(least - 1);
            done = true;
            for &port in &ports {
                let reach = self.announced_until(port).max(sure).min(until);
                self.take(port, reach, shared);
                done &= reach == until;
            }
        }
        self.rings[ring].ports = ports;
    }

    /// Returns the earliest instant at which `port` begins a transmission that it has not announced, as far as its arrivals are announced.
    fn next_transmission(&self, port: usize, shared: &SharedState) -> u64 {
        let heads = shared.channels[port].iter().map(|channel| channel.head());
        heads.chain([self.ports[port].next_waiting()]).min().unwrap_or(u64::MAX)
    }

    /// Returns the last instant up to which all arrivals at `port` are announced, from the horizons of the ports before it.
    fn announced_until(&self, port: usize) -> u64 {
        let announced = self.ports[port].upstream.iter().map(|&before| {
            let Port { horizon, lookahead, .. } = self.ports[before];
            horizon.map_or(lookahead - 1, |horizon| horizon.saturating_add(lookahead))
        });
        announced.min().unwrap_or(u64::MAX)
    }
}

/// Returns the rings among ports, given the upstream ports of each: the strongly connected components with more than one port (Tarjan 1972, with a stack in
/// place of recursion).
pub(super) fn find_rings(upstream: &[&[usize]]) -> Vec<Ring> {
    const NONE: usize = usize::MAX;
    // The order in which ports were first seen, the least such number that each one reaches within its component, and the component.
    let [mut number, mut low, mut home] = [NONE; 3].map(|none| vec![none; upstream.len()]);
    let (mut seen, mut components, mut open, mut rings) = (0, 0, Vec::new(), Vec::new());
    for root in 0..upstream.len() {
        // Stack of ports from the root on, each with the index of its next upstream port.
        let mut path = if number[root] == NONE { vec![(root, 0)] } else { Vec::new() };
        while let Some((port, next)) = path.last_mut() {
            let port = *port;
            if number[port] == NONE {
                (number[port], low[port]) = (seen, seen);
                seen += 1;
                open.push(port);
            }
            if let Some(&before) = upstream[port].get(*next) {
                *next += 1;
                if number[before] == NONE {
                    path.push((before, 0));
                } else if home[before] == NONE {
                    low[port] = low[port].min(number[before]);
                }
                continue;
            }
            path.pop();
            if let Some(&(after, _)) = path.last() {
                low[after] = low[after].min(low[port]);
            }
            if low[port] == number[port] {
                let first = open
                    .iter()
                    .rposition(|&other| other == port)
                    .expect("the port is on the stack of open ports");
                let ports: Vec<usize> = open.drain(first..).rev().collect();
                ports.iter().for_each(|&port| home[port] = components);
                if ports.len() > 1 {
                    let all = ports.iter().flat_map(|&port| upstream[port]).copied();
                    let outside = all.filter(|&before| home[before] != components).collect();
                    rings.push(Ring { ports, upstream: outside });
                }
                components += 1;
            }
        }
    }
    rings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_rings_lists_cyclic_ports_and_their_upstream() {
        // 0 leads to the ring 1, 2, 3, which leads to 4 and to the ring 5, 6; 7 leads to both.
        let upstream: [&[usize]; 8] = [&[], &[0, 3], &[1, 7], &[2], &[3], &[6, 3], &[5, 7], &[]];
        let rings = find_rings(&upstream);
        let first = Ring { ports: vec![2, 3, 1], upstream: vec![7, 0] };
        let second = Ring { ports: vec![6, 5], upstream: vec![7, 3] };
        assert_eq!(rings, [first, second]);
    }

    #[test]
    fn acyclic_ports_form_no_ring() {
        let chain: Vec<Vec<usize>> =
            (0..100_000).map(|port: usize| port.checked_sub(1).into_iter().collect()).collect();
        let upstream: Vec<&[usize]> = chain.iter().map(Vec::as_slice).collect();
        assert_eq!(find_rings(&upstream), []);
    }
}
