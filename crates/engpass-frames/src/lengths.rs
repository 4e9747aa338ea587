//! Packet lengths along a route: fragmentation by routers and headers of tunnels, recorded for every line.

use engpass_model::wire::layers::Change;

/// Changes of packet lengths from the sender to a point of a route.
#[derive(Clone)]
pub(crate) struct Lengths {
    /// Fragmentations and added headers up to this point of the route.
    pub(crate) changes: Vec<Change>,
    /// Upper bound of the packet length, in bytes.
    pub(crate) least: u64,
    /// For each tunnel that packets are in: the number of changes, and `least`, before they entered it.
    before: Vec<(usize, u64)>,
}

impl Lengths {
    /// Creates the state at the sender, which fragments packets for `mtu`.
    pub(crate) fn new(mtu: u64) -> Self {
        Self { changes: Vec::new(), least: mtu, before: Vec::new() }
    }

    /// Records that a router forwards packets over a line with this MTU.
    pub(crate) fn fragment(&mut self, mtu: u64) {
        // An MTU that is no smaller than those before it fragments nothing.
        if mtu < self.least {
            self.changes.push(Change::Cut(mtu));
            self.least = mtu;
        }
    }

    /// Records that packets enter a tunnel that adds `added` bytes.
    pub(crate) fn wrap(&mut self, added: u64) {
        self.before.push((self.changes.len(), self.least));
        self.changes.push(Change::Wrap(added));
        self.least += added;
    }

    /// Records that packets leave the tunnel that they entered last.
    pub(crate) fn unwrap(&mut self) {
        let (changes, least) = self.before.pop().expect("the packet is in a tunnel");
        self.changes.truncate(changes);
        self.least = least;
    }
}
