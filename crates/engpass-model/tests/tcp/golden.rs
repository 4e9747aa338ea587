//! A table of goodputs by loss, buffer and kind of recovery. It shows the effect of every change of TCP in review.
//!
//! `UPDATE=1 cargo test -p engpass-model --test tcp golden` updates it.

use std::fmt::Write;
use std::path::Path;

use engpass_model::random::Stream;
use engpass_model::tcp::{Profile, TcpParameters};
use engpass_model::time::Time;

use crate::bench::{Bench, Loss, Pipe, ms};
use crate::delivery::{RECOVERIES, congestion};

fn cell(p: &TcpParameters, loss: u64, queue: u64) -> String {
    let mut forward = Pipe::new(Some(10_000_000), ms(20));
    forward.queue = queue;
    forward.loss = Loss::Random { millionths: loss, stream: Stream::new(1, "golden") };
    let mut bench = Bench::new(p, p, forward, Pipe::new(Some(10_000_000), ms(20))).transfer(1 << 40, 16_384);
    let goodput = bench.goodput(Time::ZERO, Time::from_secs(60));
    format!("{:>5.0} {:>3}", goodput / 1e3, bench.a.stats().timeouts)
}

fn table() -> String {
    let mut text = String::from(
        "10 Mbit/s, 40 ms round trip, MTU 1500, 60 s: goodput in kbit/s, and retransmission timeouts\n",
    );
    let head = |text: &mut String, names: &[&str]| {
        write!(text, "\n{:<10}{:>9}", "loss", "queue").expect("writing to a string cannot fail");
        for name in names {
            write!(text, "  {name:>11}").expect("writing to a string cannot fail");
        }
        text.push('\n');
    };
    let rows = |text: &mut String, columns: &[TcpParameters]| {
        for loss in [0, 1_000, 10_000, 50_000] {
            for queue in [10_000, 50_000, 200_000] {
                write!(text, "{:<10}{:>9}", format!("{} %", loss as f64 / 1e4), format!("{queue} B"))
                    .expect("writing to a string cannot fail");
                for column in columns {
                    write!(text, "  {:>11}", cell(column, loss, queue))
                        .expect("writing to a string cannot fail");
                }
                text.push('\n');
            }
        }
    };
    head(&mut text, &["plain", "reno", "new-reno", "sack", "rack-tlp"]);
    let recoveries = RECOVERIES.map(|recovery| TcpParameters {
        recovery,
        congestion: congestion("reno"),
        ..Profile::Linux6.parameters(1500)
    });
    rows(&mut text, &recoveries);
    head(&mut text, &Profile::ALL.map(Profile::name));
    rows(&mut text, &Profile::ALL.map(|profile| profile.parameters(1500)));
    text
}

#[test]
#[allow(clippy::disallowed_methods)] // The variable decides whether to write the file, not how to run.
fn tcp_transfers_match_the_golden_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tcp/golden.txt");
    let table = table();
    if std::env::var("UPDATE").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &table).expect("the table can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the table is in the repository");
    assert!(golden == table, "the table has changed: look at it, then run with UPDATE=1\n{table}");
}
