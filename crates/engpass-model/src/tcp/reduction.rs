//! Proportional rate reduction (RFC 9937): how much may be sent while fast recovery goes on, so that the window shrinks along
//! with what arrives. The congestion control only says to what.

/// The state of one recovery, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    /// RecoverFS: the window before the loss, as Linux takes it.
    prior: u64,
    /// prr_delivered.
    delivered: u64,
    /// prr_out.
    out: u64,
    /// The window that the last acknowledgment gave.
    window: Option<u64>,
}

impl Reduction {
    /// A recovery begins with the window `prior`.
    pub(super) fn new(prior: u64) -> Self {
        Self { prior, ..Self::default() }
    }

    /// Bytes went out.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// The window, where one is given.
    pub(super) fn window(&self) -> Option<u64> {
        self.window
    }

    /// `delivered` bytes arrived (RFC 9937 section 6.2). `safe` when the acknowledgment advanced and no further loss was found.
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
            // Slow start towards the threshold where that is safe, else as much as has left.
            let left = self.delivered.saturating_sub(self.out).max(delivered);
            let faster = if safe { mss } else { 0 };
            (left + faster).min(threshold - in_flight)
        };
        // "Force a fast retransmit upon entering recovery".
        let least = if self.out == 0 { mss } else { 0 };
        self.window = Some(in_flight + may_send.max(least));
    }
}
