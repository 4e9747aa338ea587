//! `same-networks FOLDER COUNT SEED` writes random testbed files, from the strategies of the engine's property tests.
//!
//! The name of a file begins with its strategy. A larger COUNT only adds files.

use std::path::Path;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

#[path = "../../engine/crates/engpass-simulate/tests/networks/mod.rs"]
mod networks;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, count, seed] = &arguments[..] else { panic!("give a folder, a count and a seed") };
    let count: usize = count.parse().expect("the count is a number");
    let seed: u64 = seed.parse().expect("the seed is a number");
    let folder = Path::new(folder);
    // Each strategy gets a quarter.
    write(folder, "frames", count.div_ceil(4), seed, networks::frames());
    write(folder, "cells", (count + 2) / 4, seed, networks::network());
    write(folder, "cells-tcp", (count + 1) / 4, seed, networks::network_with_tcp());
    write(folder, "port", count / 4, seed, networks::port());
}

fn write(folder: &Path, name: &str, count: usize, seed: u64, drawn: impl Strategy<Value = networks::Drawn>) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    for number in 1..=count {
        let tree = drawn.new_tree(&mut runner).expect("the strategies refuse few values");
        let text = networks::text::text(&tree.current().0);
        std::fs::write(folder.join(format!("{name}-{number:05}.toml")), text)
            .expect("the folder can be written");
    }
}
