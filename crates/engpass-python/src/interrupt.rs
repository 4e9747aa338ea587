//! What a run and the interpreter tell each other while the run lasts: how far it is, and that it shall end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engpass_network::simulate::RunControl;
use engpass_testbed::Point;
use pyo3::prelude::*;

/// Virtual time is told in parts of a whole run.
const PARTS: u64 = 1 << 20;

/// A flag that ends runs early, and an account of those that are under way.
#[pyclass(name = "Interrupt", module = "engpass._engpass", frozen)]
pub(crate) struct Interrupt(Arc<Shared>);

#[derive(Default)]
struct Shared {
    set: AtomicBool,
    /// Parts of runs that are done, of all that are under way.
    parts: AtomicU64,
}

#[pymethods]
impl Interrupt {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// End all runs that were given this flag, now and later.
    fn set(&self) {
        self.0.set.store(true, Ordering::Relaxed);
    }

    /// Whether it is set.
    fn is_set(&self) -> bool {
        self.0.set.load(Ordering::Relaxed)
    }

    /// How much of the runs under way is done: the sum of their shares of virtual time.
    fn under_way(&self) -> f64 {
        self.0.parts.load(Ordering::Relaxed) as f64 / PARTS as f64
    }
}

impl Interrupt {
    /// What watches the run of a point.
    pub(crate) fn watch(&self, point: &Point) -> Watching {
        let end = point.testbed.run.duration.0.max(1);
        Watching { shared: Arc::clone(&self.0), end, told: AtomicU64::new(0) }
    }
}

/// Looks at one run; it takes back what it has told when the run is over.
pub(crate) struct Watching {
    shared: Arc<Shared>,
    /// When the run ends, in picoseconds.
    end: u64,
    /// Parts of this run that are in the account.
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
