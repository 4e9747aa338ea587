//! Random numbers from (seed, element name): adding an element does not reshuffle the others.

mod logarithm;

use std::fmt::{self, Write};

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// The random stream of one element in one run.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of the element called `name` in the run with this `seed`.
    pub fn new(seed: u64, name: impl fmt::Display) -> Self {
        let mut hash = Fnv::default();
        write!(hash, "{name}").expect("any text has a hash");
        let mut state = [0; 16];
        state[..8].copy_from_slice(&apart(seed).to_le_bytes());
        state[8..].copy_from_slice(&hash.0.to_le_bytes());
        let mut stream = Self(Pcg64Mcg::from_seed(state));
        // Close seeds give close first numbers in a multiplicative generator: step away from them.
        for _ in 0..4 {
            stream.bits();
        }
        stream
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Evenly distributed in `0..bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's multiplication without rejection: the bias is below bound / 2^64.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with this mean, rounded to an integer.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        // Of 2^53, so in (0, 1]: the logarithm is finite.
        let uniform = (self.bits() >> 11) + 1;
        logarithm::quickly(uniform, mean).unwrap_or_else(|| logarithm::exactly(uniform, mean))
    }
}

/// The hash FNV-1a of a text, piece by piece: its value is fixed for ever, unlike that of a hasher of the standard library.
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

/// A seed that shares its numbers with no neighbour.
///
/// The generator's state is odd, so an even seed would give the numbers of the odd one after it. Even seeds are scattered
/// (the finalizer of SplitMix64: Steele, Lea and Flood 2014); odd ones keep the numbers that earlier results were made with.
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

    #[test]
    fn same_name_and_seed_same_numbers() {
        let draw = |seed, name| Stream::new(seed, name).bits();
        assert_eq!(draw(1, "traffic.a"), draw(1, "traffic.a"));
        assert_ne!(draw(1, "traffic.a"), draw(2, "traffic.a"));
        assert_ne!(draw(1, "traffic.a"), draw(1, "traffic.b"));
    }

    #[test]
    fn repeats_share_no_numbers() {
        let mut drawn: Vec<_> = (0..1000).map(|seed| Stream::new(seed, "traffic.a").bits()).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 1000);
    }

    #[test]
    fn means_are_right() {
        let mut stream = Stream::new(7, "test");
        let mean = (0..100_000).map(|_| stream.exponential(1_000_000)).sum::<u64>() as f64 / 1e5;
        assert!((mean - 1e6).abs() < 1.5e4, "{mean}");
        let mean = (0..100_000).map(|_| stream.below(1000)).sum::<u64>() as f64 / 1e5;
        assert!((mean - 499.5).abs() < 5.0, "{mean}");
    }
}
