//! Cache of the last points. Workers run the repeats of a point one after the other, so they request the same point many times.

use std::sync::{Arc, Mutex, PoisonError};

use engpass_testbed::{Campaign, Diagnostics, Point};

/// Number of cached points. All workers run repeats of the same point, or of two consecutive ones.
const KEPT: usize = 4;

/// A campaign and its most recently requested points.
pub(crate) struct Points {
    pub(crate) campaign: Campaign,
    /// Oldest first.
    last: Mutex<Vec<Read>>,
}

/// A cached point and its key.
struct Read {
    variant: String,
    sweep: Vec<(String, String)>,
    point: Arc<Point>,
}

impl Points {
    pub(crate) fn of(campaign: Campaign) -> Self {
        Self { campaign, last: Mutex::default() }
    }

    /// Returns the testbed of a variant at a point of the sweep. Concurrent calls wait, so callers must release the interpreter lock first.
    pub(crate) fn get(&self, variant: &str, sweep: &[(String, String)]) -> Result<Arc<Point>, Diagnostics> {
        // If reading a point panics, the cached points stay valid.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = last.iter().find(|read| read.variant == variant && read.sweep == sweep) {
            return Ok(Arc::clone(&read.point));
        }
        let point = Arc::new(self.campaign.point(variant, sweep)?);
        if last.len() == KEPT {
            last.remove(0);
        }
        last.push(Read { variant: variant.to_owned(), sweep: sweep.to_vec(), point: Arc::clone(&point) });
        Ok(point)
    }
}
