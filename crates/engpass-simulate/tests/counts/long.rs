//! A longer run needs no more memory.

use engpass_simulate::watched;

use crate::dumbbell::{OC3, SACK, dumbbell};
use crate::{heap, point};

/// Returns the peak heap bytes of a run, including its timeline if it has one.
fn most(text: &str, duration: &str, samples: Option<usize>) -> i64 {
    let point = point(text, "base", &[("run.duration", duration)]);
    let before = heap::live();
    heap::begin();
    match samples {
        Some(samples) => {
            watched(&point.testbed, &point.topology, 1, samples, &|| false).expect("the simulation succeeds");
        }
        None => {
            crate::run(&point);
        }
    }
    heap::most() - before
}

/// Ten and a thousand seconds of two flows over a slow line, with occasional losses throughout.
#[test]
#[cfg_attr(feature = "event-log", ignore = "the log takes memory")]
fn memory_does_not_grow_with_run_duration() {
    let text = dumbbell(2, 2, SACK);
    assert_eq!(most(&text, "1000 s", None), most(&text, "10 s", None));
}

/// The number of samples of a timeline does not depend on the duration. (Flows limited by the receive window lose nothing; losses are listed, up to a bound.)
#[test]
#[cfg_attr(feature = "event-log", ignore = "the log takes memory")]
fn timeline_memory_does_not_grow_with_run_duration() {
    let text = dumbbell(2, OC3, "{ receive_buffer = \"8 KiB\" }");
    let [long, short] = ["500 s", "10 s"].map(|duration| most(&text, duration, Some(100)));
    // A list may have been a little longer at some time; a word per packet would be megabytes.
    assert!((0..4096).contains(&(long - short)), "{short} B in 10 s, {long} B in 500 s");
}
