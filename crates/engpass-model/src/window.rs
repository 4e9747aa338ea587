//! The measurement window of a run.

/// The measured part of a run: after `from` (from the start if it is `None`), up to and including `end`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Begin in picoseconds, excluded.
    pub from: Option<u64>,
    /// End in picoseconds, included.
    pub end: u64,
}

impl Window {
    /// Returns whether the instant `at` lies in the window.
    #[inline]
    pub fn holds(&self, at: u64) -> bool {
        self.from.is_none_or(|from| at > from) && at <= self.end
    }

    /// Returns whether a transmission from `begin` to `end`, in picoseconds, lies completely in the window.
    #[inline]
    pub fn holds_all(&self, begin: u64, end: u64) -> bool {
        end <= self.end && self.from.is_none_or(|from| begin >= from)
    }

    /// Returns the window extended by the warm-up before it.
    pub fn with_warmup(self) -> Self {
        Self { from: None, ..self }
    }
}
