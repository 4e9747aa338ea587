//! Port values of the steps that are no lines.

/// A step that is a circuit has this port value plus the index of its entry.
pub(super) const ENTRY: u32 = 1 << 30;
/// A step at which packets enter a tunnel has this port value plus the index of the tunnel direction.
pub(super) const WRAP: u32 = ENTRY | 1 << 29;
/// A step at which packets leave a tunnel has this port value plus the index of the tunnel direction.
pub(super) const UNWRAP: u32 = WRAP | 1 << 28;

/// A step at which a router may hold packets has this port value plus the index of the neighbour.
pub(super) const HOLD: u32 = UNWRAP | 1 << 27;

/// Returns the tunnel of a direction, and whether the direction goes from the tunnel's first end to its second.
pub(in crate::simulate) fn tunnel_of(direction: u32) -> (usize, bool) {
    (direction as usize / 2, direction.is_multiple_of(2))
}
