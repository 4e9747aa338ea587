//! What routers and tunnels do to the lengths of packets, for the books: each line knows what has happened before it.

use engpass_model::wire::layers::Change;

/// What happens to the lengths of packets on a way.
#[derive(Clone)]
pub(super) struct Lengths {
    /// What has happened to packets.
    pub(super) changes: Vec<Change>,
    /// No packet is longer.
    pub(super) least: u64,
    /// By tunnel that packets are in, the same before they entered it.
    before: Vec<(usize, u64)>,
}

impl Lengths {
    /// Of packets that their sender cuts for an MTU.
    pub(super) fn new(mtu: u64) -> Self {
        Self { changes: Vec::new(), least: mtu, before: Vec::new() }
    }

    /// A router sends packets on where no longer ones pass.
    pub(super) fn cut(&mut self, mtu: u64) {
        // An MTU that is no smaller than those before it cuts nothing.
        if mtu < self.least {
            self.changes.push(Change::Cut(mtu));
            self.least = mtu;
        }
    }

    /// Packets enter a tunnel that adds so many bytes.
    pub(super) fn wrap(&mut self, added: u64) {
        self.before.push((self.changes.len(), self.least));
        self.changes.push(Change::Wrap(added));
        self.least += added;
    }

    /// They leave it.
    pub(super) fn unwrap(&mut self) {
        let (changes, least) = self.before.pop().expect("packets are in a tunnel");
        self.changes.truncate(changes);
        self.least = least;
    }
}
