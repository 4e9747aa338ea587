//! Captures of a network whose packets come from outside.

use engpass_testbed::Topology;

use super::InjectedNetwork;
use crate::simulate::{CaptureSink, SWEEP, SimError};

impl InjectedNetwork {
    /// Keep what passes these transmitters (`2 * link + end`) for [`Self::hand_on`]. Nothing was put in yet.
    pub fn capture(&mut self, ports: &[usize]) {
        self.network.tap(&self.testbed, &self.topology, ports);
    }

    /// The graph, with the flows that packets of captures are of: the generators, and behind them one for every way.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Hand on what has passed, up to where nothing earlier can come; returns that instant, in picoseconds, if there is one.
    ///
    /// # Errors
    /// [`SimError::Interrupted`] when the capture breaks off.
    pub fn hand_on(&mut self, capture: &mut dyn CaptureSink) -> Result<Option<u64>, SimError> {
        let swept = self.network.next_sweep;
        // Where cells are, ports were advanced to the last sweep; without any, everything up to now has passed.
        let told = if swept == u64::MAX { Some(self.reached) } else { swept.checked_sub(SWEEP + 1) };
        if let Some(told) = told {
            self.network.hand_on(told, capture)?;
        }
        Ok(told)
    }

    /// Hand on all that has passed: the last call.
    ///
    /// # Errors
    /// [`SimError::Interrupted`] when the capture breaks off.
    pub fn end_capture(&mut self, capture: &mut dyn CaptureSink) -> Result<(), SimError> {
        self.network.advance_all(self.reached);
        self.network.hand_on(self.reached, capture)
    }
}
