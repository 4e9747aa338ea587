//! Any bytes as a log: it must be replayed, with or without a difference, or rejected with an error message. `cargo +nightly fuzz run log`.

#![no_main]

use std::cell::Cell;
use std::io::Cursor;
use std::path::Path;

use libfuzzer_sys::fuzz_target;

/// Number of polls before the replay is interrupted, because an instant may be days ahead.
const PATIENCE: u32 = 20;

fuzz_target!(|log: &[u8]| {
    let asked = Cell::new(0);
    let interrupted = || {
        asked.set(asked.get() + 1);
        asked.get() > PATIENCE
    };
    match engpass_live::replay_log(Path::new("fuzzed"), Cursor::new(log), &interrupted) {
        Ok(found) => assert!(
            found["inputs"].as_u64() > Some(0)
                || found["outputs"].as_u64() > Some(0)
                || !found["difference"].is_null()
        ),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
