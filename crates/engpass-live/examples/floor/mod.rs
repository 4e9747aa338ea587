//! The same measurements with a minimal program that carries packets between two devices: an upper bound for this machine.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::pair::{Pair, session};
use crate::{flood, ping_pong, round_trip_of_veth, stream};

fn program() -> Option<OsString> {
    std::env::var_os("ENGPASS_FLOOR")
}

/// Returns whether the program is configured.
pub(crate) fn is_there() -> bool {
    program().is_some()
}

/// The program running between a pair of hosts, until it is dropped.
struct Floor(Child);

impl Floor {
    fn between(pair: &Pair, packets: &str) -> Self {
        let program = program().expect("`ENGPASS_FLOOR` names the program");
        let [a, b] = &pair.names;
        // The same scheduling weight as the driver requests.
        let [setsid, words @ ..] = session(-20);
        let mut command = Command::new(setsid);
        command.args(words).arg(program).args(["forward", a, b, "lan", packets]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let said =
            BufReader::new(child.stdout.take().expect("the child's output is piped")).read_line(&mut line);
        assert!(said.is_ok() && line == "up\n", "the program printed `{line}` instead of `up`");
        Self(child)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // The program ends when its input does.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

pub(crate) fn round_trip() -> Value {
    let direct = round_trip_of_veth();
    let pair = Pair::new();
    let _floor = Floor::between(&pair, "single");
    pair.address(1500, false);
    let took = ping_pong(&pair);
    json!({ "p50_us": took[1], "p99_us": took[2], "veth_p50_us": direct[1], "added_p50_us": took[1] - direct[1] })
}

pub(crate) fn tcp(seconds: u64) -> Value {
    let pair = Pair::new();
    let _floor = Floor::between(&pair, "super");
    json!({ "bit_per_s": stream(&pair, 1500, seconds) })
}

pub(crate) fn packets(seconds: u64) -> Value {
    let pair = Pair::new();
    let _floor = Floor::between(&pair, "single");
    let [sent, received, rate] = flood(&pair, 22, 300_000, seconds);
    json!({ "packets_per_s": rate, "sent": sent, "received": received })
}
