//! Proportional rate reduction (RFC 9937): during fast recovery, lets data out in proportion to deliveries until the window has shrunk to the
//! threshold that the congestion control sets.

/// The state of one recovery, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    /// RecoverFS: the window before the loss, as Linux takes it.
    prior: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    out: u64,
    /// The window that follows from the last acknowledgment, in bytes.
    window: Option<u64>,
}

impl Reduction {
    /// Starts a recovery; the window was `prior` bytes before the loss.
    pub(super) fn new(prior: u64) -> Self {
        Self { prior, ..Self::default() }
    }

    /// Counts bytes that are sent.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// Returns the window in bytes, once an acknowledgment has set it.
    pub(super) fn window(&self) -> Option<u64> {
        self.window
    }

    /// Sets the window after `delivered` bytes were delivered (RFC 9937 section 6.2). `safe` is true if the acknowledgment advanced and no further
    /// loss was found.
    pub(super) fn on_delivery(
        &mut self,
        delivered: u64,
        safe: bool,
        in_flight: u64,
        threshold: u64,
        mss: u64,
    ) {
        self.delivered += delivered;
        let may_send = if in_flight > threshold {
            // "sndcnt = CEIL(prr_delivered * ssthresh / RecoverFS) - prr_out"
            (self.delivered * threshold).div_ceil(self.prior.max(1)).saturating_sub(self.out)
        } else {
            // Slow start towards the threshold if `safe`; otherwise only bytes that replace delivered ones.
            let left = self.delivered.saturating_sub(self.out).max(delivered);
            let faster = if safe { mss } else { 0 };
            (left + faster).min(threshold - in_flight)
        };
        // "Force a fast retransmit upon entering recovery".
        let least = if self.out == 0 { mss } else { 0 };
        self.window = Some(in_flight + may_send.max(least));
    }
}
