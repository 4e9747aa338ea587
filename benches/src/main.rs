//! `engpass-measure WORKLOAD ENGINE TIMES [VARIANT] [PATH=VALUE]...` runs a workload and prints its measurements as JSON.
//!
//! `engpass-measure WORKLOAD` prints the testbed.
//!
//! WORKLOAD is `line:HOPS` (cells), `frames:HOPS`, `ways:HOPS:ECMP`, `phones:COUNT`, `dumbbell:FLOWS`, `dumbbell:FLOWS:TCP`,
//! `dumbbell:FLOWS:TCP:MBIT` (TCP is `new-reno`, the default, or `sack`), or a testbed file. ENGINE is `simulate`, `unbooked` (without the ledger),
//! `asking` (routers decide for every packet of flows with several paths, even if the answer is the same for all), or `oracle`. Every run has the
//! same seed, so only the machine makes runs differ.

use std::process::ExitCode;

use cpu_time::ThreadTime;
use engpass_bench::dumbbell::{NEW_RENO, OC3, SACK, dumbbell};
use engpass_bench::heap;
use engpass_bench::line::{frames, line, ways};
use engpass_bench::measure::{Measured, Which, measure};
use engpass_bench::phones::phones;
use engpass_bench::workload::point;
use serde_json::{Value, json};

const SEED: u64 = 1;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match answer(&arguments) {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            eprintln!("error: {wrong}");
            ExitCode::from(2)
        }
    }
}

fn answer(arguments: &[String]) -> Result<String, String> {
    match arguments {
        [workload] => text(workload),
        [workload, engine, times, rest @ ..] => {
            Ok(run(&text(workload)?, engine, number(times)?, rest)?.to_string())
        }
        _ => Err("give a workload, an engine and a number of times".into()),
    }
}

fn text(workload: &str) -> Result<String, String> {
    let words: Vec<&str> = workload.split(':').collect();
    match words[..] {
        ["line", hops] => Ok(line(number(hops)?)),
        ["frames", hops] => Ok(frames(number(hops)?)),
        ["ways", hops, ecmp] => Ok(ways(number(hops)?, ecmp)),
        ["phones", count] => Ok(phones(number(count)?)),
        ["dumbbell", flows] => Ok(dumbbell(number(flows)?, OC3, NEW_RENO)),
        ["dumbbell", flows, kind] => Ok(dumbbell(number(flows)?, OC3, tcp(kind)?)),
        ["dumbbell", flows, kind, mbit] => Ok(dumbbell(number(flows)?, number(mbit)? as u64, tcp(kind)?)),
        _ => std::fs::read_to_string(workload).map_err(|wrong| format!("`{workload}`: {wrong}")),
    }
}

fn tcp(kind: &str) -> Result<&'static str, String> {
    match kind {
        "new-reno" => Ok(NEW_RENO),
        "sack" => Ok(SACK),
        other => Err(format!("`{other}` is not `new-reno` or `sack`")),
    }
}

fn run(text: &str, engine: &str, times: usize, rest: &[String]) -> Result<Value, String> {
    let which = match engine {
        "simulate" => Which::Simulate,
        "unbooked" => Which::Unbooked,
        "asking" => Which::Asking,
        "oracle" => Which::Oracle,
        other => return Err(format!("`{other}` is not `simulate`, `unbooked`, `asking` or `oracle`")),
    };
    let (overrides, variants): (Vec<_>, Vec<_>) = rest.iter().partition(|argument| argument.contains('='));
    let overrides: Vec<_> = overrides.iter().filter_map(|argument| argument.split_once('=')).collect();
    let before = ThreadTime::now();
    let point = point(text, variants.first().map_or("base", |variant| variant.as_str()), &overrides);
    let load = before.elapsed();
    let runs: Vec<Measured> = (0..times.max(1)).map(|_| measure(&point, which, SEED)).collect();
    let first = &runs[0];
    if runs.iter().any(|run| run.seen != first.seen) {
        return Err("equal runs differ".into());
    }
    // Needed only to compare engines, which is done with few flows.
    let seen = (first.seen.flows.len() <= 100).then_some(&first.seen.flows);
    let goodput: f64 = first.goodput.iter().sum();
    let squares: f64 = first.goodput.iter().map(|goodput| goodput * goodput).sum();
    let flows = first.goodput.len();
    Ok(json!({
        "wall_s": runs.iter().map(|run| run.wall.as_secs_f64()).collect::<Vec<_>>(),
        "cpu_s": runs.iter().map(|run| run.cpu.as_secs_f64()).collect::<Vec<_>>(),
        "load_s": load.as_secs_f64(),
        "simulated_s": point.testbed.run.duration.0 as f64 / 1e12,
        "sent": first.seen.sent,
        "lost": first.seen.lost,
        "received": seen,
        "events": first.events,
        "goodput_bit_per_s": goodput,
        // Jain, Chiu and Hawe 1984.
        "jain": (squares > 0.0).then(|| goodput * goodput / (flows as f64 * squares)),
        "flows": flows,
        "heap_bytes": first.heap,
        "peak_kib": peak_kib(),
    }))
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

/// Peak memory of this process in KiB, if the system reports it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
