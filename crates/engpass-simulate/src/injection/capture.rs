//! Captures with packet injection.

use engpass_testbed::Topology;

use super::InjectedNetwork;
use crate::{ADVANCE_INTERVAL, CaptureSink, SimError};

impl InjectedNetwork {
    /// Starts a capture at these transmitters (`2 * link + end`). Must be called before any injection. [`Self::deliver_records`] then delivers the records.
    pub fn capture(&mut self, ports: &[usize]) {
        self.network.tap(&self.testbed, &self.topology, ports);
    }

    /// Returns the topology with the flows that captured packets refer to: the generators, followed by one flow for every path.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Hands on the records up to the latest instant before which no more records can appear. Returns that instant, in picoseconds, if there is one.
    ///
    /// # Errors
    /// [`SimError::Interrupted`] if the capture stops.
    pub fn deliver_records(&mut self, capture: &mut dyn CaptureSink) -> Result<Option<u64>, SimError> {
        let swept = self.network.clock.next_advance;
        // With cells, ports were advanced only to the last sweep; without cells, all records up to now exist.
        let complete_until =
            if swept == u64::MAX { Some(self.reached) } else { swept.checked_sub(ADVANCE_INTERVAL + 1) };
        if let Some(complete_until) = complete_until {
            self.network.shared.deliver_records(complete_until, capture)?;
        }
        Ok(complete_until)
    }

    /// Hands on all remaining records, as the last call of a capture.
    ///
    /// # Errors
    /// [`SimError::Interrupted`] if the capture stops.
    pub fn end_capture(&mut self, capture: &mut dyn CaptureSink) -> Result<(), SimError> {
        self.network.cells.advance_all(self.reached, &mut self.network.shared);
        self.network.shared.deliver_records(self.reached, capture)
    }
}
