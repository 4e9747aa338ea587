//! Two hosts on this machine with a driver between them. The example that measures speed uses it too.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use engpass_live::emulate;
use serde_json::{Value, json};

/// IPv4 addresses of the two hosts.
pub(crate) const ADDRESSES: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
/// IPv6 addresses of the two hosts.
pub(crate) const ADDRESSES_6: [&str; 2] = ["fd09::1", "fd09::2"];

/// Returns a command prefix that starts a program in a new session with this nice value (-20 is the highest weight). The scheduler weighs sessions.
pub(crate) fn session(weight: i32) -> [String; 5] {
    let weigh = format!("echo {weight} 2>/dev/null >/proc/self/autogroup; exec \"$@\"");
    ["setsid", "sh", "-c", &weigh, "-"].map(str::to_owned)
}

/// Two hosts on an OC-3c link through a switch, with 2 ms of delay.
pub(crate) const ATM: &str = r#"
name = "atm"
[host.a]
[host.b]
[switch.s]
kind = "atm"
output_buffer = "4000 cells"
[link.one]
ends = ["a", "s"]
medium = "oc-3c"
[link.two]
ends = ["s", "b"]
medium = "oc-3c"
delay = "2 ms"
[circuit.data]
from = "a"
to = "b"
mtu = "9180 B"
[traffic.any]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "1 Mbit/s"
[run]
duration = "1 s"
"#;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Two namespaces, deleted on drop.
pub(crate) struct Pair {
    /// Names of the namespaces.
    pub(crate) names: [String; 2],
}

impl Pair {
    /// Creates two namespaces.
    pub(crate) fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("engpass-test-{}-{number}-{end}", std::process::id());
        let pair = Self { names: ["a", "b"].map(name) };
        for name in &pair.names {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        pair
    }

    /// Configures the device `lan` of both: addresses, and routes to each other.
    pub(crate) fn address(&self, mtu: u32, gateway: bool) {
        let mtu = mtu.to_string();
        for (end, name) in self.names.iter().enumerate() {
            let other = 1 - end;
            ip(&["-n", name, "link", "set", "lan", "addrgenmode", "none", "mtu", &mtu, "txqueuelen", "4096"]);
            let prefix = if gateway { "/24" } else { "/32" };
            ip(&["-n", name, "address", "add", &format!("{}{prefix}", ADDRESSES[end]), "dev", "lan"]);
            ip(&["-n", name, "address", "add", &format!("{}/128", ADDRESSES_6[end]), "dev", "lan", "nodad"]);
            ip(&["-n", name, "link", "set", "lan", "up"]);
            if !gateway {
                ip(&["-n", name, "route", "add", ADDRESSES[other], "dev", "lan"]);
            }
            ip(&["-n", name, "route", "add", ADDRESSES_6[other], "dev", "lan"]);
        }
    }

    /// Runs this program in a namespace with these arguments. Its session has less weight than the driver's, like users' programs, and more than other
    /// programs on a busy machine.
    pub(crate) fn start(&self, end: usize, words: &[&str]) -> Child {
        let own = std::env::current_exe().expect("the path of this program is known");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end]]).args(session(-10)).arg(own).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("`ip` is installed")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// Runs `ip`, which must succeed.
pub(crate) fn ip(words: &[&str]) {
    let done = Command::new("ip").args(words).output().expect("`ip` is installed");
    assert!(done.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Waits for a program to end. Returns the numbers that it printed.
pub(crate) fn said(child: Child) -> Vec<f64> {
    let output = child.wait_with_output().expect("the child process ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// A driver that runs a testbed between a pair.
pub(crate) struct Carried {
    socket: PathBuf,
    running: Option<JoinHandle<Value>>,
    /// Its ready line.
    pub(crate) ready: Value,
}

/// Returns the driver's configuration for a pair.
pub(crate) fn config(pair: &Pair, testbed: &str, more: &Value) -> Value {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let socket = std::env::temp_dir().join(format!("engpass-test-{}-{number}", std::process::id()));
    let host = |end: usize| {
        let netns = format!("/run/netns/{}", pair.names[end]);
        let name = ["a", "b"][end];
        json!({ "name": name, "netns": netns, "device": "lan", "addresses": [ADDRESSES[end], ADDRESSES_6[end]] })
    };
    let mut config = json!({ "testbed": testbed, "hosts": [host(0), host(1)], "socket": socket });
    for (key, value) in more.as_object().expect("the value is a JSON object") {
        config[key] = value.clone();
    }
    config
}

impl Carried {
    /// Starts the driver and waits until it is ready.
    pub(crate) fn new(config: Value) -> Self {
        let socket = PathBuf::from(config["socket"].as_str().expect("the config has a socket path"));
        let (sender, receiver) = channel();
        let running = std::thread::Builder::new().name("driver".to_owned()).spawn(move || {
            let mut ready = |line: &Value| sender.send(line.clone()).expect("the test waits for the driver");
            emulate(&config.to_string(), &mut ready).unwrap_or_else(|error| panic!("{error}"))
        });
        let running = running.expect("the driver thread starts");
        let ready = receiver.recv().expect("the driver starts");
        Self { socket, running: Some(running), ready }
    }

    /// Sends a request and returns the answer.
    pub(crate) fn ask(&self, what: &str) -> Value {
        let mut stream = UnixStream::connect(&self.socket).expect("the socket listens");
        stream.write_all(format!("{{\"do\":\"{what}\"}}\n").as_bytes()).expect("the socket listens");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("the driver answers");
        serde_json::from_str(&line).expect("the answer is JSON")
    }

    /// Waits for the end of the driver, without a request to stop. Returns the driver's last status.
    pub(crate) fn wait(mut self) -> Value {
        self.running
            .take()
            .map(|running| running.join().expect("the child process ends"))
            .expect("the driver was started")
    }

    /// Stops the driver. Returns its last status.
    pub(crate) fn end(self) -> Value {
        self.ask("stop");
        self.wait()
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.ask("stop");
            let _ = running.join();
        }
    }
}
