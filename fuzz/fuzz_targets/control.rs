//! Any bytes as a line of the agent's control protocol: it must not panic. `cargo +nightly fuzz run control`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    engpass_live::parse(line);
});
