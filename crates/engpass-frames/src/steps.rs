//! Routes and their steps.

use super::Verdict;

/// In place of an index, "none".
pub(crate) const NONE: u32 = u32::MAX;

/// The path of a flow direction: its first step, with the priority and TTL of its packets.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Index of the first step.
    pub first: u32,
    /// Number of lines; 0 if the route has decision steps, circuits, tunnels or holds.
    pub hops: u16,
    /// TTL with which its packets begin.
    pub ttl: u8,
    /// Priority of its packets.
    pub priority: u8,
}

/// One entry of the step table: a verdict on packets that have come to this place of their route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What the node at this step does with a packet.
    pub verdict: Verdict,
    /// Index of the router at this step; `u32::MAX` at a host or switch.
    pub router: u32,
    /// MTU of the line, circuit or tunnel that the step leads to, in bytes.
    pub mtu: u32,
    /// Line index: position of this line among the lines of the route. At the end of a route, the number of its lines.
    pub line_index: u16,
    /// The receiver of packets ahead of time (lookahead).
    pub lookahead: Lookahead,
    /// True if an arriving packet does not continue at once: a router's forwarding engine, a circuit, a tunnel, a policy or address resolution comes first.
    pub takes_time: bool,
}

/// The receiver to which a line hands packets ahead of time (lookahead).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookahead {
    /// No receiver: packets arrive in virtual time.
    None,
    /// The next port.
    NextPort,
    /// The host after the last hop, if only this line brings it work.
    Host,
}

impl Step {
    /// The end of a route.
    pub(crate) const END: Self = Self {
        verdict: Verdict::Up,
        router: NONE,
        mtu: 0,
        line_index: 0,
        lookahead: Lookahead::None,
        takes_time: false,
    };

    /// Returns the step that stands for a router that copies packets; it has no line.
    pub fn at_router(router: usize) -> Self {
        Self { router: router as u32, ..Self::END }
    }

    /// Returns the index of the frame port by which packets leave.
    ///
    /// # Panics
    /// If they do not leave by a frame port.
    #[inline(always)]
    pub fn port(&self) -> u32 {
        match self.verdict {
            Verdict::Out(port) => port,
            _ => unreachable!("only a line has a frame port"),
        }
    }

    /// Returns true if this step is a hop over one frame line.
    #[inline(always)]
    pub fn is_line(&self) -> bool {
        matches!(self.verdict, Verdict::Out(_))
    }

    /// Returns true if this step is the end of a route.
    #[inline(always)]
    pub fn is_end(&self) -> bool {
        self.verdict == Verdict::Up
    }

    /// Returns true if a router does what the verdict says.
    #[inline(always)]
    pub fn is_routed(&self) -> bool {
        self.router != NONE
    }

    /// Returns true if the step's line hands packets to the next port ahead of time.
    #[inline(always)]
    pub fn delivers_ahead(&self) -> bool {
        self.lookahead == Lookahead::NextPort
    }
}
