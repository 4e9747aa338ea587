//! Any bytes at a data port: never a panic, never an answer to what was not made with the token. `cargo +nightly fuzz run data`.

#![no_main]

use engpass_live::{Greeting, Head, Reply, Stamp, Token};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let token = Token::parse("00112233445566778899aabbccddeeff").expect("32 digits");
    let greeting = Greeting::new(token, "flow", 3, [7; 16]);
    if let Reply::Answer(_) | Reply::Ready(..) = greeting.take(b"10.0.0.1:5", data) {
        let head = Head::parse(data).expect("only a head is answered");
        assert!(head.is_proven(&token, "flow"));
    }
    if let Some(stamp) = Stamp::read(0x1234_5678, data) {
        // What was read is written the same way, but for the rest of the datagram.
        let mut copy = data.to_vec();
        stamp.write(0x1234_5678, &mut copy);
        assert_eq!(Stamp::read(0x1234_5678, &copy), Some(stamp));
    }
});
