//! Marks in the table of steps: ports that are no lines.

/// The port of a step that is a circuit: the place of its entry is added to it.
pub(super) const ENTRY: u32 = 1 << 30;
/// The port of a step at which packets enter a tunnel: the place of the tunnel's direction is added to it.
pub(super) const WRAP: u32 = ENTRY | 1 << 29;
/// The port of a step at which they leave it.
pub(super) const UNWRAP: u32 = WRAP | 1 << 28;

/// The port of a step at which a router may hold packets: the place of the neighbour is added to it.
pub(super) const HOLD: u32 = UNWRAP | 1 << 27;

/// The tunnel of a direction, and whether it goes from the first end to the second.
pub(in crate::simulate) fn tunnel_of(direction: u32) -> (usize, bool) {
    (direction as usize / 2, direction.is_multiple_of(2))
}
