//! Handshake messages and datagram headers: proofs of the run's token, tags and sequence numbers. Pure.
//!
//! Both sides of a connection prove that they know the token without sending it: each proof covers a fresh nonce of the other side.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// Length of a [`HandshakeMessage`] on the wire, in bytes.
pub const HEAD: usize = 64;
/// Length of a datagram's header without send time, in bytes.
pub(crate) const STAMP: usize = 12;
/// Length of a datagram's header with send time, in bytes.
pub(crate) const STAMP_WITH_TIME: usize = 20;

const MAGIC: [u8; 8] = *b"engpass1";
const MEASURED: u64 = 1 << 63;
const TIMED: u64 = 1 << 62;
const SEQUENCE: u64 = TIMED - 1;

/// The secret of one run: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token([u8; 16]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Parses 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))
    }

    /// Returns a hash of `parts`, each preceded by its length, with the token as the key.
    fn prove(&self, parts: &[&[u8]]) -> [u8; 16] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        for part in parts {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        hasher.finish128().as_bytes()
    }

    /// Returns the tag that marks the datagrams of one stream of a flow.
    pub(crate) fn tag(&self, flow: &str, stream: u16) -> u32 {
        let proof = self.prove(&[b"datagram", flow.as_bytes(), &stream.to_be_bytes()]);
        u32::from_be_bytes([proof[0], proof[1], proof[2], proof[3]])
    }
}

/// The four messages of a handshake, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the connecting side: proves the token and carries a fresh nonce.
    Hello = 1,
    /// From the listening side: proves the token over the nonce of the hello.
    Answer = 2,
    /// From the connecting side, over the nonce of the answer: proves that it receives packets at its address.
    Confirm = 3,
    /// From the listening side: data may follow.
    Ready = 4,
}

/// A message of the handshake, 64 bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeMessage {
    /// Kind of the message.
    pub kind: Kind,
    /// Index of the stream in its flow.
    pub stream: u16,
    /// Nonce of the sender.
    pub nonce: [u8; 16],
    /// Nonce of the other side that this message answers; zeros in a hello.
    pub echo: [u8; 16],
    proof: [u8; 16],
}

impl HandshakeMessage {
    /// Builds a message with its proof.
    pub fn new(token: &Token, flow: &str, kind: Kind, stream: u16, nonce: [u8; 16], echo: [u8; 16]) -> Self {
        let mut head = Self { kind, stream, nonce, echo, proof: [0; 16] };
        head.proof = head.proof_with(token, flow);
        head
    }

    fn proof_with(&self, token: &Token, flow: &str) -> [u8; 16] {
        let stream = self.stream.to_be_bytes();
        token.prove(&[b"head", &[self.kind as u8], flow.as_bytes(), &stream, &self.nonce, &self.echo])
    }

    /// Returns whether the message was made with this token for this flow.
    pub fn is_proven(&self, token: &Token, flow: &str) -> bool {
        // All bytes are compared, so that the time of the comparison does not depend on where they differ.
        let differences = self.proof.iter().zip(self.proof_with(token, flow));
        differences.fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }

    /// Encodes the message for the wire.
    pub fn to_bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = self.kind as u8;
        bytes[9] = 1;
        bytes[10..12].copy_from_slice(&self.stream.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.nonce);
        bytes[32..48].copy_from_slice(&self.echo);
        bytes[48..].copy_from_slice(&self.proof);
        bytes
    }

    /// Parses a message; `None` for anything that is not a handshake message of this version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEAD] = bytes.try_into().ok()?;
        if bytes[..8] != MAGIC || bytes[9] != 1 || bytes[12..16] != [0; 4] {
            return None;
        }
        let kind = match bytes[8] {
            1 => Kind::Hello,
            2 => Kind::Answer,
            3 => Kind::Confirm,
            4 => Kind::Ready,
            _ => return None,
        };
        let part = |at: usize| <[u8; 16]>::try_from(&bytes[at..at + 16]).expect("16 of 64 bytes");
        Some(Self {
            kind,
            stream: u16::from_be_bytes([bytes[10], bytes[11]]),
            nonce: part(16),
            echo: part(32),
            proof: part(48),
        })
    }
}

/// The listening side of handshakes. It keeps no state per peer: its nonce is a keyed hash of the peer's address, nonce and stream.
#[derive(Clone, Debug)]
pub struct HandshakeServer {
    token: Token,
    flow: String,
    streams: u16,
    secret: Token,
}

/// Reaction to a received handshake message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Send this message. No state changes.
    Answer([u8; HEAD]),
    /// The peer has proved the token from its address. Send this message and open the stream.
    Ready(u16, [u8; HEAD]),
    /// Not a handshake message, or one that no client sends: of a wrong kind, or with a stream number out of range.
    Malformed,
    /// The message was not made with the token of this run.
    NoToken,
    /// The message has a valid proof but does not contain our nonce for this peer: probably a replay.
    Replayed,
}

impl HandshakeServer {
    /// Creates the listening side for `streams` streams of a flow. `secret` must be random; it never leaves this side.
    pub fn new(token: Token, flow: &str, streams: u16, secret: [u8; 16]) -> Self {
        Self { token, flow: flow.to_owned(), streams, secret: Token(secret) }
    }

    fn nonce(&self, peer: &[u8], theirs: &[u8; 16], stream: u16) -> [u8; 16] {
        self.secret.prove(&[peer, theirs, &stream.to_be_bytes()])
    }

    /// Decides what to do with `bytes` from `peer` (its address as bytes).
    pub fn take(&self, peer: &[u8], bytes: &[u8]) -> Reply {
        let Some(head) = HandshakeMessage::parse(bytes) else { return Reply::Malformed };
        if !head.is_proven(&self.token, &self.flow) {
            return Reply::NoToken;
        }
        let ours = |kind, nonce| {
            HandshakeMessage::new(&self.token, &self.flow, kind, head.stream, nonce, head.nonce)
        };
        let nonce = self.nonce(peer, &head.nonce, head.stream);
        match head.kind {
            _ if head.stream >= self.streams => Reply::Malformed,
            Kind::Hello => Reply::Answer(ours(Kind::Answer, nonce).to_bytes()),
            // A confirm repeats the nonce of the hello, so our nonce can be computed again.
            Kind::Confirm if head.echo == nonce => {
                Reply::Ready(head.stream, ours(Kind::Ready, nonce).to_bytes())
            }
            Kind::Confirm => Reply::Replayed,
            Kind::Answer | Kind::Ready => Reply::Malformed,
        }
    }
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Sequence number within the stream, from 0.
    pub sequence: u64,
    /// True if the datagram belongs to the measurement window.
    pub measured: bool,
    /// Send time, realtime in ns.
    pub sent: Option<u64>,
}

impl DatagramHeader {
    /// Writes the header at the start of a datagram, without the send time if the datagram is too short for it.
    #[inline]
    pub fn write(&self, tag: u32, datagram: &mut [u8]) {
        let mut word = self.sequence & SEQUENCE;
        if self.measured {
            word |= MEASURED;
        }
        if let Some(sent) = self.sent.filter(|_| datagram.len() >= STAMP_WITH_TIME) {
            word |= TIMED;
            datagram[STAMP..STAMP_WITH_TIME].copy_from_slice(&sent.to_be_bytes());
        }
        datagram[..4].copy_from_slice(&tag.to_be_bytes());
        datagram[4..STAMP].copy_from_slice(&word.to_be_bytes());
    }

    /// Reads the header; `None` if the tag differs or the datagram is too short.
    #[inline]
    pub fn read(tag: u32, datagram: &[u8]) -> Option<Self> {
        let head: &[u8; STAMP] = datagram.first_chunk()?;
        let (found, word) = head.split_first_chunk::<4>().expect("the head has 12 bytes");
        if u32::from_be_bytes(*found) != tag {
            return None;
        }
        let word = u64::from_be_bytes(word.try_into().expect("8 of 12 bytes are left"));
        let sent = if word & TIMED == 0 {
            None
        } else {
            let time = datagram.get(STAMP..STAMP_WITH_TIME)?;
            Some(u64::from_be_bytes(time.try_into().expect("the time has 8 bytes")))
        };
        Some(Self { sequence: word & SEQUENCE, measured: word & MEASURED != 0, sent })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLOW: &str = "stream";

    fn token(byte: u8) -> Token {
        Token([byte; 16])
    }

    #[test]
    fn handshake_ends_with_ready_and_rejects_strangers() {
        let token = token(1);
        let greeting = HandshakeServer::new(token, FLOW, 2, [9; 16]);
        let hello = HandshakeMessage::new(&token, FLOW, Kind::Hello, 1, [3; 16], [0; 16]);
        let Reply::Answer(answer) = greeting.take(b"peer", &hello.to_bytes()) else {
            panic!("expected an answer message")
        };
        let answer = HandshakeMessage::parse(&answer).expect("the answer is a handshake message");
        assert!(answer.is_proven(&token, FLOW) && answer.echo == hello.nonce);
        let confirm = HandshakeMessage::new(&token, FLOW, Kind::Confirm, 1, hello.nonce, answer.nonce);
        let Reply::Ready(1, ready) = greeting.take(b"peer", &confirm.to_bytes()) else {
            panic!("expected a ready message")
        };
        assert!(HandshakeMessage::parse(&ready).is_some_and(|head| head.is_proven(&token, FLOW)));
        // The same confirm from another address does not match that address's nonce.
        assert_eq!(greeting.take(b"other", &confirm.to_bytes()), Reply::Replayed);
        // Another run, another flow, and a stream index out of range.
        let stranger = HandshakeMessage::new(&self::token(2), FLOW, Kind::Hello, 1, [3; 16], [0; 16]);
        assert_eq!(greeting.take(b"peer", &stranger.to_bytes()), Reply::NoToken);
        let stranger = HandshakeMessage::new(&token, "other", Kind::Hello, 1, [3; 16], [0; 16]);
        assert_eq!(greeting.take(b"peer", &stranger.to_bytes()), Reply::NoToken);
        let stranger = HandshakeMessage::new(&token, FLOW, Kind::Hello, 2, [3; 16], [0; 16]);
        assert_eq!(greeting.take(b"peer", &stranger.to_bytes()), Reply::Malformed);
    }

    #[test]
    fn every_flipped_bit_of_a_handshake_message_is_rejected() {
        let token = token(1);
        let greeting = HandshakeServer::new(token, FLOW, 2, [9; 16]);
        let hello = HandshakeMessage::new(&token, FLOW, Kind::Hello, 0, [3; 16], [0; 16]).to_bytes();
        for bit in 0..HEAD * 8 {
            let mut bytes = hello;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(greeting.take(b"peer", &bytes), Reply::Malformed | Reply::NoToken), "bit {bit}");
        }
    }

    #[test]
    fn datagram_header_round_trips() {
        for (length, sent) in [(12, None), (19, None), (20, Some(77)), (100, Some(u64::MAX))] {
            let mut datagram = vec![0; length];
            let stamp = DatagramHeader { sequence: SEQUENCE - 5, measured: true, sent };
            stamp.write(42, &mut datagram);
            assert_eq!(DatagramHeader::read(42, &datagram), Some(stamp));
            assert_eq!(DatagramHeader::read(43, &datagram), None);
            assert_eq!(DatagramHeader::read(42, &datagram[..11]), None);
        }
        // A datagram that is too short for the send time goes without it.
        let mut datagram = [0; 12];
        DatagramHeader { sequence: 1, measured: false, sent: Some(5) }.write(42, &mut datagram);
        assert_eq!(
            DatagramHeader::read(42, &datagram),
            Some(DatagramHeader { sequence: 1, measured: false, sent: None })
        );
    }

    proptest! {
        /// No bytes at a data port cause a panic, and only messages made with the token get an answer.
        #[test]
        fn data_port_survives_random_bytes_and_gives_no_answer(bytes in prop::collection::vec(any::<u8>(), 0..130), tag: u32) {
            let greeting = HandshakeServer::new(token(1), FLOW, 2, [9; 16]);
            let reply = greeting.take(b"peer", &bytes);
            prop_assert!(matches!(reply, Reply::Malformed | Reply::NoToken));
            if let Some(stamp) = DatagramHeader::read(tag, &bytes) {
                prop_assert!(bytes.starts_with(&tag.to_be_bytes()), "{stamp:?}");
            }
        }

        /// A well-formed message with a random proof gets no answer.
        #[test]
        fn handshake_message_with_random_proof_gets_no_answer(kind in 1_u8..5, stream in 0_u16..3, rest in prop::collection::vec(any::<u8>(), 48)) {
            let mut bytes = [0; HEAD];
            bytes[..8].copy_from_slice(&MAGIC);
            bytes[8] = kind;
            bytes[9] = 1;
            bytes[10..12].copy_from_slice(&stream.to_be_bytes());
            bytes[16..].copy_from_slice(&rest);
            prop_assert!(HandshakeMessage::parse(&bytes).is_some_and(|head| head.to_bytes() == bytes));
            prop_assert_eq!(HandshakeServer::new(token(1), FLOW, 2, [9; 16]).take(b"peer", &bytes), Reply::NoToken);
        }
    }

    #[test]
    fn token_has_32_hexadecimal_digits() {
        assert!(Token::parse("0123456789abcdef0123456789ABCDEF").is_some());
        for bad in ["", "+123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcde", "ä"] {
            assert_eq!(Token::parse(bad), None);
        }
    }
}
