//! Any bytes as what a device gives: never a panic, and what was cut is not cut again. `cargo +nightly fuzz run packet`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|given: &[u8]| {
    for packet in engpass_live::cut(given) {
        assert_eq!(engpass_live::cut(&packet), [packet]);
    }
});
