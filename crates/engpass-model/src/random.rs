//! Random streams derived from a seed and an element name, so that adding an element does not change the numbers of the others.

mod logarithm;

use std::fmt::{self, Write};

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The element that draws from a stream: the complete list of stream names.
///
/// The random numbers of a run depend on these texts, so they must never change, even if the code is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label<'a> {
    /// A traffic table: pauses, phases, and the first of its connections.
    Traffic(&'a str),
    /// A further connection of a traffic table.
    Connection(&'a str, u32),
    /// Times and lengths of the datagrams of a traffic table.
    Arrivals(&'a str),
    /// The phase of the TCP heartbeats of a host.
    Heartbeat(&'a str),
    /// Loss, jitter and reordering on a link, in the direction away from a node.
    Line(&'a str, &'a str),
    /// The queue discipline of a link at a node, after this number of outages.
    Queue(&'a str, &'a str, u32),
    /// The queue of a router for a circuit: the circuit's first link, the router, the circuit.
    CircuitQueue(&'a str, &'a str, &'a str),
    /// The discard policy of an ATM link at a switch, for the queue of this class (0 if there is one queue).
    Discard(&'a str, &'a str, usize),
    /// An event table.
    Event(&'a str),
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Traffic(name) | Self::Connection(name, 0) => write!(f, "traffic.{name}"),
            Self::Connection(name, stream) => write!(f, "traffic.{name}.{stream}"),
            Self::Arrivals(name) => write!(f, "traffic.{name}.arrivals"),
            Self::Heartbeat(host) => write!(f, "host.{host}.tcp"),
            Self::Line(link, node) => write!(f, "line.{link}.{node}"),
            Self::Queue(link, node, 0) => write!(f, "queue.{link}.{node}"),
            Self::Queue(link, node, outages) => write!(f, "queue.{link}.{node}.{outages}"),
            Self::CircuitQueue(link, node, circuit) => write!(f, "queue.{link}.{node}.{circuit}"),
            Self::Discard(link, node, class) => write!(f, "discard.{link}.{node}.{class}"),
            Self::Event(name) => write!(f, "event.{name}"),
        }
    }
}

/// The random stream of one element in one run.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of the element with this `name` in a run with this `seed`.
    pub fn new(seed: u64, name: impl fmt::Display) -> Self {
        let mut hash = Fnv::default();
        write!(hash, "{name}").expect("writing to a hash cannot fail");
        let mut state = [0; 16];
        state[..8].copy_from_slice(&apart(seed).to_le_bytes());
        state[8..].copy_from_slice(&hash.0.to_le_bytes());
        let mut stream = Self(Pcg64Mcg::from_seed(state));
        // In a multiplicative generator, similar seeds give similar first numbers, so these are skipped.
        for _ in 0..4 {
            stream.bits();
        }
        stream
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniformly distributed in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's multiplication without rejection. Its bias is below bound / 2^64.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with this mean, rounded down to an integer.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        // In units of 2^-53, so in (0, 1]: the logarithm is finite.
        let uniform = (self.bits() >> 11) + 1;
        logarithm::quickly(uniform, mean).unwrap_or_else(|| logarithm::exactly(uniform, mean))
    }
}

/// FNV-1a hash of a text written piece by piece. Unlike a hasher of the standard library, its value never changes.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Write for Fnv {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let next = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = piece.bytes().fold(self.0, next);
        Ok(())
    }
}

/// Maps seeds such that neighbouring seeds give different numbers.
///
/// The generator makes its state odd, so an even seed would give the numbers of the next odd one. Even seeds are therefore scattered (the
/// finalizer of SplitMix64: Steele, Lea and Flood 2014). Odd seeds stay as they are, so that earlier results can be reproduced.
fn apart(seed: u64) -> u64 {
    if !seed.is_multiple_of(2) {
        return seed;
    }
    let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A changed name would change every result that draws from the stream.
    #[test]
    fn random_stream_names_are_frozen() {
        let frozen = [
            (Label::Traffic("a"), "traffic.a"),
            (Label::Connection("a", 0), "traffic.a"),
            (Label::Connection("a", 3), "traffic.a.3"),
            (Label::Arrivals("a"), "traffic.a.arrivals"),
            (Label::Heartbeat("h"), "host.h.tcp"),
            (Label::Line("l", "n"), "line.l.n"),
            (Label::Queue("l", "n", 0), "queue.l.n"),
            (Label::Queue("l", "n", 2), "queue.l.n.2"),
            (Label::CircuitQueue("l", "n", "c"), "queue.l.n.c"),
            (Label::Discard("l", "n", 1), "discard.l.n.1"),
            (Label::Event("e"), "event.e"),
        ];
        for (label, text) in frozen {
            assert_eq!(label.to_string(), text);
        }
    }

    #[test]
    fn same_name_and_seed_give_the_same_numbers() {
        let draw = |seed, name| Stream::new(seed, name).bits();
        assert_eq!(draw(1, "traffic.a"), draw(1, "traffic.a"));
        assert_ne!(draw(1, "traffic.a"), draw(2, "traffic.a"));
        assert_ne!(draw(1, "traffic.a"), draw(1, "traffic.b"));
    }

    #[test]
    fn seeds_start_with_different_numbers() {
        let mut drawn: Vec<_> = (0..1000).map(|seed| Stream::new(seed, "traffic.a").bits()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 1000);
    }

    #[test]
    fn random_numbers_have_their_means() {
        let mut stream = Stream::new(7, "test");
        let mean = (0..100_000).map(|_| stream.exponential(1_000_000)).sum::<u64>() as f64 / 1e5;
        assert!((mean - 1e6).abs() < 1.5e4, "{mean}");
        let mean = (0..100_000).map(|_| stream.below(1000)).sum::<u64>() as f64 / 1e5;
        assert!((mean - 499.5).abs() < 5.0, "{mean}");
    }
}
