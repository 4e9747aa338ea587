//! Any bytes as a line of the agent's control protocol: never a panic. `cargo +nightly fuzz run control`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    engpass_live::parse(line);
});
