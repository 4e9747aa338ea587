//! Verdicts: what a node does with a packet that has come to a step of its route.
//!
//! A verdict is computed when the network is built. Only [`Verdict::Choose`] asks a policy for each packet. Losses and copies are no verdicts of a step: a packet
//! is lost where it finds no room, a line that is down or an expired TTL, and copies are made where the tree of a group branches (`branches.rs`).

/// What a node does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Sends it by this frame port: its index in [`Frames::ports`](super::Frames::ports).
    Out(u32),
    /// Sends it by a circuit, as cells: the index of the circuit's entry.
    Circuit(u32),
    /// Lets it enter a tunnel, which adds an outer header: the index of the tunnel direction.
    Wrap(u32),
    /// Lets it leave a tunnel, which removes the outer header: the index of the tunnel direction.
    Unwrap(u32),
    /// Holds it until the hardware address of this neighbour is known. The verdict on its line follows.
    Hold(u32),
    /// Asks the policy for the result of this decision.
    Choose(u32),
    /// Nothing, because no packet comes here: it marks the start of a possible result of the decision at this step.
    Result(u32),
    /// Gives it to its host, or to the router that copies it for the branches behind.
    Up,
}

/// Returns the tunnel of a direction, and whether the direction goes from the tunnel's first end to its second.
pub fn tunnel_of(direction: u32) -> (usize, bool) {
    (direction as usize / 2, direction.is_multiple_of(2))
}
