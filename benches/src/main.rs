//! `engpass-measure WORKLOAD ENGINE TIMES [VARIANT] [PATH=VALUE]...`: run a workload, and print what it took as JSON.
//!
//! `engpass-measure WORKLOAD` prints the testbed.
//!
//! WORKLOAD is `line:HOPS`, `dumbbell:FLOWS` or a testbed file, ENGINE is `simulate`, `unbooked` (the same without its ledger) or `oracle`. Every run has the same seed: what
//! differs between them is the machine.

use std::process::ExitCode;

use engpass_bench::dumbbell::dumbbell;
use engpass_bench::measure::{Measured, Which, measure};
use engpass_bench::workload::{line, point};
use serde_json::{Value, json};

const SEED: u64 = 1;
/// TCP of the dumbbell: what other simulators are measured with.
const NEW_RENO: &str = "{ congestion = \"reno\", recovery = \"new-reno\" }";

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
    match workload.split_once(':') {
        Some(("line", hops)) => Ok(line(number(hops)?)),
        Some(("dumbbell", flows)) => Ok(dumbbell(number(flows)?, "155 Mbit/s", NEW_RENO)),
        _ => std::fs::read_to_string(workload).map_err(|wrong| format!("`{workload}`: {wrong}")),
    }
}

fn run(text: &str, engine: &str, times: usize, rest: &[String]) -> Result<Value, String> {
    let which = match engine {
        "simulate" => Which::Simulate,
        "unbooked" => Which::Unbooked,
        "oracle" => Which::Oracle,
        other => return Err(format!("`{other}` is not `simulate`, `unbooked` or `oracle`")),
    };
    let (overrides, variants): (Vec<_>, Vec<_>) = rest.iter().partition(|argument| argument.contains('='));
    let overrides: Vec<_> = overrides.iter().filter_map(|argument| argument.split_once('=')).collect();
    let point = point(text, variants.first().map_or("base", |variant| variant.as_str()), &overrides);
    let runs: Vec<Measured> = (0..times.max(1)).map(|_| measure(&point, which, SEED)).collect();
    let first = &runs[0];
    if runs.iter().any(|run| run.seen != first.seen) {
        return Err("equal runs differ".into());
    }
    Ok(json!({
        "wall_s": runs.iter().map(|run| run.wall.as_secs_f64()).collect::<Vec<_>>(),
        "cpu_s": runs.iter().map(|run| run.cpu.as_secs_f64()).collect::<Vec<_>>(),
        "simulated_s": point.testbed.run.duration.0 as f64 / 1e12,
        "cell_hops": first.seen.cell_hops(),
        "lost": first.seen.lost,
        "flows": first.seen.flows,
        "events": first.events,
        "peak_kib": peak_kib(),
    }))
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

/// The most memory that this process has had, in KiB, where the system says so.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
