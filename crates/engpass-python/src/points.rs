//! The last point of each worker. A worker runs the repeats of a point one after the other, so it requests the same point many times.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use engpass_testbed::{Campaign, Diagnostics, Point};

/// Maximum number of points kept: that many workers have one each.
const KEPT: usize = 64;

/// A campaign and the point that each worker requested last.
pub(crate) struct Points {
    pub(crate) campaign: Campaign,
    /// At most one for each thread, oldest first. A thread replaces its own, so that it also frees what it has built.
    last: Mutex<Vec<Read>>,
}

/// A cached point and its key.
struct Read {
    worker: ThreadId,
    variant: String,
    sweep: Vec<(String, String)>,
    point: Arc<Point>,
}

impl Points {
    pub(crate) fn of(campaign: Campaign) -> Self {
        Self { campaign, last: Mutex::default() }
    }

    /// Returns the testbed of a variant at a point of the sweep. It is built outside the lock: workers build different points at the same time.
    pub(crate) fn get(&self, variant: &str, sweep: &[(String, String)]) -> Result<Arc<Point>, Diagnostics> {
        let known = self
            .last()
            .iter()
            .find(|read| read.variant == variant && read.sweep == sweep)
            .map(|read| Arc::clone(&read.point));
        if let Some(point) = known {
            return Ok(point);
        }
        let worker = thread::current().id();
        let point = Arc::new(self.campaign.point(variant, sweep)?);
        let read =
            Read { worker, variant: variant.to_owned(), sweep: sweep.to_vec(), point: Arc::clone(&point) };
        let mut last = self.last();
        let place = last.iter().position(|read| read.worker == worker);
        let replaced = place.or_else(|| (last.len() == KEPT).then_some(0)).map(|index| last.remove(index));
        last.push(read);
        drop(last);
        // To free a testbed takes time; no other worker waits for it.
        drop(replaced);
        Ok(point)
    }

    fn last(&self) -> MutexGuard<'_, Vec<Read>> {
        // No holder can leave it half changed, even in a panic.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
