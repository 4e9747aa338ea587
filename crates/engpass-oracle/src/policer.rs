//! The policer of the forward direction of a circuit, at its first switch (docs/model.md, "Policing").

use engpass_model::shape::PolicingAction;
use engpass_model::time::Pace;
use engpass_testbed::topology::CircuitPath;

/// GCRA(T, tau) as virtual scheduling (ITU-T I.371, annex A).
#[derive(Debug)]
pub(crate) struct Policer {
    /// T in picoseconds, as a fraction.
    increment: Pace,
    /// Tau in picoseconds.
    tolerance: u64,
    /// The action on a non-conforming cell.
    pub(crate) action: PolicingAction,
    /// The theoretical arrival time of the next cell. The unit is a picosecond divided by the denominator of T.
    expected: u128,
}

impl Policer {
    /// Builds the policer of a circuit; `None` if it has none or enters no switch.
    pub(crate) fn of(circuit: &CircuitPath) -> Option<Self> {
        let enters = circuit.route.len() > 1;
        let (increment, tolerance, action) = circuit.policing.filter(|_| enters)?;
        Some(Self { increment, tolerance: tolerance.0, action, expected: 0 })
    }

    /// Returns true if a cell that arrives at `now` conforms.
    pub(crate) fn conforms(&mut self, now: u64) -> bool {
        let (num, den) = self.increment.ratio();
        let [arrival, tolerance] = [now, self.tolerance].map(|time| u128::from(time) * u128::from(den));
        // Less than a picosecond early is on time: arrivals are rounded.
        if self.expected.saturating_sub(arrival + tolerance) >= u128::from(den) {
            return false;
        }
        self.expected = self.expected.max(arrival) + u128::from(num);
        true
    }
}
