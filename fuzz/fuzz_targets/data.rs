//! Any bytes at a data port: it must not panic, and must not answer a handshake that was not made with the token. `cargo +nightly fuzz run data`.

#![no_main]

use engpass_live::{Greeting, HandshakeMessage, Kind, Reply, DatagramHeader, Token};
use libfuzzer_sys::fuzz_target;

const PEER: &[u8] = b"10.0.0.1:5";

fn is_answered(greeting: &Greeting, bytes: &[u8]) -> bool {
    matches!(greeting.take(PEER, bytes), Reply::Answer(_) | Reply::Ready(..))
}

fuzz_target!(|data: &[u8]| {
    let token = Token::parse("00112233445566778899aabbccddeeff").expect("the token has 32 digits");
    let greeting = Greeting::new(token, "flow", 3, [7; 16]);
    if is_answered(&greeting, data) {
        let head = HandshakeMessage::parse(data).expect("only a handshake message is answered");
        assert!(head.is_proven(&token, "flow"));
    }
    // Random bytes never contain a valid proof. Therefore the input also makes valid handshake messages, and flips some of their bits.
    if let Some((seed, changes)) = data.split_first_chunk::<35>() {
        let kind = [Kind::Hello, Kind::Answer, Kind::Confirm, Kind::Ready][usize::from(seed[0] % 4)];
        let stream = u16::from(seed[1]) << 8 | u16::from(seed[2]);
        let part = |at: usize| seed[at..at + 16].try_into().expect("the slice has 16 bytes");
        let whole = HandshakeMessage::new(&token, "flow", kind, stream, part(3), part(19)).to_bytes();
        if let Reply::Answer(answer) = greeting.take(PEER, &whole) {
            assert_eq!(kind, Kind::Hello);
            // The answer contains a nonce that only this peer can return.
            let echo = HandshakeMessage::parse(&answer).expect("an answer is a handshake message").nonce;
            let confirm = HandshakeMessage::new(&token, "flow", Kind::Confirm, stream, part(3), echo).to_bytes();
            assert!(matches!(greeting.take(PEER, &confirm), Reply::Ready(ready, _) if ready == stream));
            assert_eq!(greeting.take(b"10.0.0.2:5", &confirm), Reply::Replayed);
        } else {
            assert!(kind != Kind::Hello || stream >= 3);
        }
        let mut changed = whole;
        changed.iter_mut().zip(changes).for_each(|(byte, change)| *byte ^= change);
        assert!(changed == whole || !is_answered(&greeting, &changed), "{changed:?}");
    }
    if let Some(stamp) = DatagramHeader::read(0x1234_5678, data) {
        // Writing the header back gives the same bytes; the rest of the datagram does not matter.
        let mut copy = data.to_vec();
        stamp.write(0x1234_5678, &mut copy);
        assert_eq!(DatagramHeader::read(0x1234_5678, &copy), Some(stamp));
    }
});
