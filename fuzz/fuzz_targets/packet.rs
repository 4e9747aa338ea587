//! Any bytes as a read from a device: it must not panic, segmented packets must not be segmented again, and ICMP messages about them must be short.
//! `cargo +nightly fuzz run packet`.

#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;

/// Length of the virtio header in bytes.
const HEADER: usize = 12;

fuzz_target!(|given: &[u8]| {
    let router = [IpAddr::from([10, 0, 0, 9]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 9])];
    for packet in engpass_live::cut(given, &router) {
        assert_eq!(packet.alone.len(), packet.written.len() - HEADER);
        if let Some(told) = &packet.exceeded {
            let v4 = told[0] >> 4 == 4;
            assert!(told.len() <= if v4 { 576 } else { 1280 });
            assert!(!v4 || engpass_live::cut(&[&[0; HEADER], &told[..]].concat(), &router).len() == 1);
        }
        assert_eq!(engpass_live::cut(&packet.written, &router), [packet]);
    }
});
