//! Interrupts runs from Python and reports their progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engpass_simulate::RunControl;
use engpass_testbed::Point;
use pyo3::prelude::*;

/// Progress of a run is counted in fractions of its virtual time: this many per run.
const PARTS: u64 = 1 << 20;

/// A flag that ends runs early, and the progress of the active runs.
#[pyclass(name = "Interrupt", module = "engpass._engpass", frozen)]
pub(crate) struct Interrupt(Arc<Shared>);

#[derive(Default)]
struct Shared {
    set: AtomicBool,
    /// Sum of the completed fractions of all active runs.
    parts: AtomicU64,
}

#[pymethods]
impl Interrupt {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Ends all current and future runs that use this flag.
    fn set(&self) {
        self.0.set.store(true, Ordering::Relaxed);
    }

    /// Whether the flag is set.
    fn is_set(&self) -> bool {
        self.0.set.load(Ordering::Relaxed)
    }

    /// Progress of the active runs: the sum of their completed fractions of virtual time.
    fn under_way(&self) -> f64 {
        self.0.parts.load(Ordering::Relaxed) as f64 / PARTS as f64
    }
}

impl Interrupt {
    /// Creates the progress and cancellation callback for the run of a point.
    pub(crate) fn watch(&self, point: &Point) -> Watching {
        let end = point.testbed.run.duration.0.max(1);
        Watching { shared: Arc::clone(&self.0), end, told: AtomicU64::new(0) }
    }
}

/// Callback of one run. When it is dropped, the progress of its run is subtracted again.
pub(crate) struct Watching {
    shared: Arc<Shared>,
    /// End of the run in picoseconds.
    end: u64,
    /// Completed fractions of this run that are included in the shared sum.
    told: AtomicU64,
}

impl RunControl for Watching {
    fn interrupted(&self) -> bool {
        self.shared.set.load(Ordering::Relaxed)
    }

    fn reached(&self, ps: u64) {
        let parts = (u128::from(ps.min(self.end)) * u128::from(PARTS) / u128::from(self.end)) as u64;
        let before = self.told.swap(parts, Ordering::Relaxed);
        self.shared.parts.fetch_add(parts.saturating_sub(before), Ordering::Relaxed);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.shared.parts.fetch_sub(self.told.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
