//! Points that were read: the repeats of a point follow each other, in several workers.

use std::sync::{Arc, Mutex, PoisonError};

use engpass_testbed::{Campaign, Diagnostics, Point};

/// Points that are kept. Workers are at the repeats of the same one, or of two that follow each other.
const KEPT: usize = 4;

/// A campaign and the points that were asked for last.
pub(crate) struct Points {
    pub(crate) campaign: Campaign,
    /// The oldest first.
    last: Mutex<Vec<Read>>,
}

/// A point, and what it was asked for with.
struct Read {
    variant: String,
    sweep: Vec<(String, String)>,
    point: Arc<Point>,
}

impl Points {
    pub(crate) fn of(campaign: Campaign) -> Self {
        Self { campaign, last: Mutex::default() }
    }

    /// The testbed of a variant at a point of the sweep. Whoever asks for the same one meanwhile waits: do not hold the interpreter.
    pub(crate) fn get(&self, variant: &str, sweep: &[(String, String)]) -> Result<Arc<Point>, Diagnostics> {
        // A panic while a point is read leaves those that were there.
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
