//! `engpass-agent`: the agent as a separate program, for hosts without Python. See `docs/agent.md`.

use std::io::{stdin, stdout};
use std::process::ExitCode;
use std::time::Duration;

use engpass_live::{Limits, nanoseconds, run};

const USAGE: &str =
    "usage: engpass-agent [--max-rate RATE] [--max-bytes SIZE] [--max-time TIME] [--silence TIME]
values have units, as in --max-rate '1 Gbit/s' --silence '60 s'";

fn options(mut words: impl Iterator<Item = String>) -> Result<(Limits, Duration), String> {
    let [mut rate, mut bytes, mut time] = [None, None, None];
    let mut silence = Duration::from_secs(60);
    while let Some(word) = words.next() {
        let value = words.next();
        match (word.as_str(), value) {
            ("--max-rate", Some(value)) => rate = Some(value),
            ("--max-bytes", Some(value)) => bytes = Some(value),
            ("--max-time", Some(value)) => time = Some(value),
            ("--silence", Some(value)) => silence = Duration::from_nanos(nanoseconds(&value)?),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok((Limits::parse(rate.as_deref(), bytes.as_deref(), time.as_deref())?, silence))
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok((limits, silence)) => ExitCode::from(run(stdin(), stdout(), limits, silence).exit_code()),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}
