//! Generators of cells, as the network keeps them.

use engpass_cells::Generator;

/// A generator, kept to count at the end what it has sent.
pub(super) struct Source {
    pub(super) flow: usize,
    pub(super) generator: Generator,
    /// The port and the channel that it fills.
    pub(super) fills: (usize, usize),
    /// The NIC's line, and how much later than the generator says its cells leave it, where they are announced to the switch at once.
    pub(super) passed: Option<(usize, u64)>,
    /// Cells that its generator has given and forgotten.
    pub(super) before: u64,
}

impl Source {
    /// Forget cells before `instant`: they only have a number from now on.
    pub(super) fn forget_before(&mut self, instant: u64) {
        loop {
            let mut next = self.generator.clone();
            let Some(cells) = next.next_cells().filter(|cells| cells.last < instant) else { return };
            self.before += cells.count;
            self.generator = next;
        }
    }
}
