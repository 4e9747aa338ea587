//! Cell generators.

use engpass_cells::Generator;

/// A cell generator, kept to count at the end how many cells it has sent.
pub(super) struct Source {
    pub(super) flow: usize,
    pub(super) generator: Generator,
    /// The port that the generator feeds, and its channel there.
    pub(super) feeds: (usize, usize),
    /// If the line of the generator's NIC is bypassed: that line, and the delay from the generator's instants to the departures of cells there.
    pub(super) bypassed: Option<(usize, u64)>,
    /// Number of cells already removed from `generator`.
    pub(super) before: u64,
}

impl Source {
    /// Removes cells before `instant` from the generator; only their number is kept.
    pub(super) fn forget_before(&mut self, instant: u64) {
        loop {
            let mut next = self.generator.clone();
            let Some(cells) = next.next_cells().filter(|cells| cells.last < instant) else { return };
            self.before += cells.count;
            self.generator = next;
        }
    }
}
