//! `engpass-agent`: the agent as a program of its own, for hosts without Python. See `docs/agent.md`.

use std::io::{stdin, stdout};
use std::process::ExitCode;
use std::time::Duration;

use engpass_live::{Limits, run};

const USAGE: &str = "usage: engpass-agent [--max-rate BIT_PER_S] [--max-bytes BYTES] [--max-time NS] [--silence NS]";

fn options(mut words: impl Iterator<Item = String>) -> Option<(Limits, Duration)> {
    let (mut limits, mut silence) = (Limits::default(), Duration::from_secs(60));
    while let Some(word) = words.next() {
        let value: u64 = words.next()?.parse().ok()?;
        match word.as_str() {
            "--max-rate" => limits.rate_bit_per_s = Some(value),
            "--max-bytes" => limits.bytes = Some(value),
            "--max-time" => limits.duration_ns = Some(value),
            "--silence" => silence = Duration::from_nanos(value),
            _ => return None,
        }
    }
    Some((limits, silence))
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Some((limits, silence)) => ExitCode::from(run(stdin(), stdout(), limits, silence).exit_code()),
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
