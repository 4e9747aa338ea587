//! Any bytes as a testbed file, and the bytes after a zero byte as a `--set`: it must not panic, and every error needs a finding.
//! Run it with `cargo +nightly fuzz run testbed`, with `crates/engpass-testbed/tests/files` as a seed corpus.

#![no_main]

use engpass_testbed::{Source, load};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (file, set) = data.iter().position(|byte| *byte == 0).map_or((data, &[][..]), |at| data.split_at(at));
    let set = String::from_utf8_lossy(set);
    let overrides: Vec<(String, String)> = (set.trim_start_matches('\0').split_once('='))
        .map(|(path, value)| (path.to_string(), value.to_string()))
        .into_iter()
        .collect();
    let found = match Source::from_bytes("fuzz.toml", file) {
        Err(found) => found,
        Ok(source) => match load(&source, &overrides, Some(300)) {
            Err(found) => found,
            Ok(campaign) => {
                for variant in campaign.variants() {
                    campaign.point(variant, &[]).expect("the first point of a checked file is valid");
                }
                campaign.warnings().render(false);
                return;
            }
        },
    };
    assert!(found.has_errors() && !found.render(false).is_empty());
});
