//! Measures speed and timing of the `emulate` driver on this machine, as root:
//!
//!     cargo run --release -p engpass-live --example emulate_speed [SECONDS [PART...]]
//!
//! It creates network namespaces and removes them again. It prints a line of JSON for each of [`PARTS`], or for those named. The parts of [`floor`] need the
//! program `benches/floor/floor.c`, whose path is in `ENGPASS_FLOOR`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

#[path = "floor/mod.rs"]
mod floor;
#[path = "../tests/emulate/pair.rs"]
mod pair;

use pair::{ATM, Carried, Pair, config, ip, said};

const B: &str = pair::ADDRESSES[1];
const PORT: u16 = 5201;

/// A measurement that takes about this many seconds.
type Part = fn(u64) -> Value;

/// The measurements by name.
const PARTS: [(&str, Part); 14] = [
    ("round-trip-sleep", |_| round_trip("sleep")),
    ("round-trip-hybrid", |_| round_trip("hybrid")),
    ("round-trip-spin", |_| round_trip("spin")),
    ("release-sleep", |seconds| release("sleep", seconds)),
    ("release-spin", |seconds| release("spin", seconds)),
    ("tcp-1500", |seconds| tcp(1500, false, seconds)),
    ("tcp-9000", |seconds| tcp(9000, false, seconds)),
    ("tcp-wire-true", |seconds| tcp(1500, true, seconds)),
    ("packets-wire-true", |seconds| packets(&ethernet(1500), true, 22, 300_000, seconds)),
    // UDP in IP in AAL5 with LLC/SNAP: 64 B of payload take three cells. A line of 149.76 Mbit/s carries 117736 such packets per second.
    ("packets-atm", |seconds| packets(&atm(), false, 64, 130_000, seconds)),
    ("idle", idle),
    ("floor-round-trip", |_| floor::round_trip()),
    ("floor-tcp-1500", floor::tcp),
    ("floor-packets", floor::packets),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["sink"] => sink(),
        ["source", to, seconds] => source(to, number(seconds)),
        ["count", seconds] => count(number(seconds)),
        ["blast", to, bytes, per_second, seconds] => {
            blast(to, number(bytes) as usize, number(per_second), number(seconds));
        }
        ["drip", to, gap_us, seconds] => drip(to, number(gap_us), number(seconds)),
        ["pong"] => pong(),
        ["ping", to, gap_us, times] => ping(to, number(gap_us), number(times)),
        [] => measure(5, &[]),
        [seconds, ref parts @ ..] => measure(number(seconds), parts),
    }
}

/// Restarts this program as a session leader: scheduling weights apply to sessions, and a driver may raise only the weight of its own session. `engpass` does
/// the same for the drivers that it starts.
fn lead() {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in brackets: state, parent, group, session.
    let session = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(3));
    if session == Some(std::process::id().to_string().as_str()) {
        return;
    }
    let own = std::env::current_exe().expect("the path of this program is known");
    let error = Command::new("setsid").arg("--wait").arg(own).args(std::env::args().skip(1)).exec();
    eprintln!("no session of its own, so the driver is not heavy: setsid: {error}");
}

fn measure(seconds: u64, parts: &[&str]) {
    let unknown = parts.iter().find(|part| PARTS.iter().all(|(name, _)| name != *part));
    if let Some(unknown) = unknown {
        let names = PARTS.map(|(name, _)| name).join(", ");
        eprintln!("there is no part `{unknown}`; there are {names}");
        std::process::exit(2);
    }
    lead();
    let all = |name: &str| parts.is_empty() && (floor::is_there() || !name.starts_with("floor"));
    for (name, part) in PARTS.iter().filter(|(name, _)| all(name) || parts.contains(name)) {
        let mut found = part(seconds);
        found["part"] = json!(name);
        println!("{found}");
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a whole number")
}

// Programs that run in the namespaces.

fn sink() {
    let (mut stream, _) =
        TcpListener::bind(("0.0.0.0", PORT)).and_then(|door| door.accept()).expect("a peer connects");
    let mut buffer = vec![0; 1 << 18];
    let (mut bytes, mut begin) = (0_u64, Instant::now());
    // The measurement begins with the first read if it comes within a second.
    let mut last = begin;
    while let Ok(got) = stream.read(&mut buffer) {
        if got == 0 {
            break;
        }
        last = Instant::now();
        bytes += got as u64;
        if begin.elapsed() < Duration::from_secs(1) && bytes > 0 && bytes == got as u64 {
            begin = last;
        }
    }
    println!("{}", bytes as f64 * 8.0 / (last - begin).as_secs_f64());
}

fn source(to: &str, seconds: u64) {
    let to = SocketAddr::new(to.parse().expect("the address is valid"), PORT).into();
    let mut stream = loop {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("the socket opens");
        // The default congestion control may pace itself. Set another one before connecting, because a socket that paces when it connects goes on pacing.
        socket.set_tcp_congestion(b"cubic").expect("every kernel has CUBIC");
        match socket.connect(&to) {
            Ok(()) => break TcpStream::from(socket),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let data = vec![0; 1 << 17];
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        stream.write_all(&data).expect("the peer reads the data");
    }
}

fn count(seconds: u64) {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("the port is free");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("the time-out is valid");
    socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20).expect("the buffer size is valid");
    let mut buffer = [0; 2048];
    let (mut packets, mut first, mut last) = (0_u64, None, Instant::now());
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        if socket.recv(&mut buffer).is_ok() {
            packets += 1;
            last = Instant::now();
            first.get_or_insert(last);
        }
    }
    let took = first.map_or(1.0, |first| (last - first).as_secs_f64());
    println!("{packets} {}", packets as f64 / took);
}

fn blast(to: &str, bytes: usize, per_second: u64, seconds: u64) {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).and_then(|socket| {
        socket.connect((to, PORT))?;
        Ok(socket)
    });
    let socket = socket.expect("the socket opens");
    let data = vec![0; bytes];
    let (begin, mut sent) = (Instant::now(), 0_u64);
    while begin.elapsed() < Duration::from_secs(seconds) {
        let due = (begin.elapsed().as_nanos() * u128::from(per_second) / 1_000_000_000) as u64;
        while sent < due {
            let _ = socket.send(&data);
            sent += 1;
        }
    }
    println!("{sent}");
}

/// Sends one small packet at a time with a sleep between two, and does not catch up. Packets that are due together would measure the duration of a write, not
/// the lateness of the driver.
fn drip(to: &str, gap_us: u64, seconds: u64) {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("the socket opens");
    socket.connect((to, PORT)).expect("the host has a route");
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        let _ = socket.send(&[0; 64]);
        std::thread::sleep(Duration::from_micros(gap_us));
    }
}

fn pong() {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("the port is free");
    let mut buffer = [0; 2048];
    while let Ok((got, from)) = socket.recv_from(&mut buffer) {
        let _ = socket.send_to(&buffer[..got], from);
    }
}

fn ping(to: &str, gap_us: u64, times: u64) {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("the socket opens");
    socket.connect((to, PORT)).expect("the host has a route");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("the time-out is valid");
    let mut buffer = [0; 64];
    let mut took: Vec<u64> = Vec::new();
    for _ in 0..times {
        let begin = Instant::now();
        if socket.send(&buffer).is_ok() && socket.recv(&mut buffer).is_ok() {
            took.push(begin.elapsed().as_nanos() as u64);
        }
        std::thread::sleep(Duration::from_micros(gap_us));
    }
    took.sort_unstable();
    let at = |share: usize| took.get(took.len() * share / 1000).copied().unwrap_or(0) as f64 / 1000.0;
    println!("{} {:.1} {:.1}", took.len(), at(500), at(990));
}

// Measurements.

fn ethernet(mtu: u32) -> String {
    line(mtu, "")
}

fn line(mtu: u32, more: &str) -> String {
    format!(
        "name = \"line\"\n[host.a]\n[host.b]\n[link.line]\nends = [\"a\", \"b\"]\nmedium = \"ethernet-100g\"\n\
         mtu = \"{mtu} B\"\n{more}[traffic.any]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\nrate = \"1 Mbit/s\"\n[run]\nduration = \"1 s\"\n"
    )
}

/// Returns the ATM testbed without the propagation delay.
fn atm() -> String {
    ATM.replace("delay = \"2 ms\"\n", "")
}

/// Returns the driver's lateness and its CPU time, kernel included. On a busy machine these are more meaningful than the throughput.
fn about(status: &Value) -> Value {
    let sum = |key: &str| {
        let hosts = status["hosts"].as_array().expect("the value is a list");
        hosts.iter().filter_map(|host| host[key].as_f64()).sum::<f64>()
    };
    let cpu = status["cpu_ns"].as_f64().expect("a number");
    let (packets, bytes) = (sum("received_packets").max(1.0), sum("received_bytes"));
    let late = &status["lateness"];
    json!({
        "packets_written": packets,
        "cpu_ns_a_packet": cpu / packets,
        "cpu_s_a_gigabyte": cpu / bytes.max(1.0),
        "packets_a_write": packets / sum("writes").max(1.0),
        "late_p50_ns": late["p50_ns"],
        "late_p99_ns": late["p99_ns"],
        "late_p999_ns": late["p999_ns"],
        "late_max_ns": late["max_ns"],
        "valid": late["valid"],
    })
}

fn round_trip(clock: &str) -> Value {
    let direct = round_trip_of_veth();
    let pair = Pair::new();
    let carried = Carried::new(config(&pair, &ethernet(1500), &json!({ "clock": clock })));
    pair.address(1500, false);
    let took = ping_pong(&pair);
    let mut found = about(&carried.end());
    found["p50_us"] = json!(took[1]);
    found["p99_us"] = json!(took[2]);
    found["veth_p50_us"] = json!(direct[1]);
    found["added_p50_us"] = json!(took[1] - direct[1]);
    found
}

fn ping_pong(pair: &Pair) -> Vec<f64> {
    let mut pong = pair.start(1, &["pong"]);
    std::thread::sleep(Duration::from_millis(300));
    let took = said(pair.start(0, &["ping", B, "1000", "1000"]));
    pong.kill().and_then(|()| pong.wait()).expect("the child process is running");
    took
}

/// Measures the lateness of packets that become due while the driver sleeps, if its clock lets it sleep.
fn release(clock: &str, seconds: u64) -> Value {
    let pair = Pair::new();
    let carried = Carried::new(config(&pair, &line(1500, "delay = \"1 ms\"\n"), &json!({ "clock": clock })));
    pair.address(1500, false);
    let count = pair.start(1, &["count", &(seconds + 1).to_string()]);
    std::thread::sleep(Duration::from_millis(300));
    pair.start(0, &["drip", B, "250", &seconds.to_string()]).wait().expect("the child process ends");
    said(count);
    about(&carried.end())
}

fn tcp(mtu: u32, wire_true: bool, seconds: u64) -> Value {
    let pair = Pair::new();
    let carried = Carried::new(config(&pair, &ethernet(mtu), &json!({ "wire_true": wire_true })));
    let rate = stream(&pair, mtu, seconds);
    let mut found = about(&carried.end());
    found["bit_per_s"] = json!(rate);
    found
}

/// Returns the throughput of a TCP stream in bit/s.
fn stream(pair: &Pair, mtu: u32, seconds: u64) -> f64 {
    pair.address(mtu, false);
    let sink = pair.start(1, &["sink"]);
    pair.start(0, &["source", B, &seconds.to_string()]).wait().expect("the child process ends");
    said(sink)[0]
}

fn packets(testbed: &str, wire_true: bool, bytes: u32, offered: u32, seconds: u64) -> Value {
    let pair = Pair::new();
    let carried = Carried::new(config(&pair, testbed, &json!({ "wire_true": wire_true })));
    let [sent, received, rate] = flood(&pair, bytes, offered, seconds);
    let mut found = about(&carried.end());
    found["packets_per_s"] = json!(rate);
    found["sent"] = json!(sent);
    found["received"] = json!(received);
    found
}

/// Sends datagrams at the offered rate. Returns the numbers sent and received, and the received packets per second.
fn flood(pair: &Pair, bytes: u32, offered: u32, seconds: u64) -> [f64; 3] {
    pair.address(1500, false);
    let count = pair.start(1, &["count", &(seconds + 1).to_string()]);
    std::thread::sleep(Duration::from_millis(300));
    let sent = pair.start(0, &["blast", B, &bytes.to_string(), &offered.to_string(), &seconds.to_string()]);
    let got = said(count);
    [said(sent)[0], got[0], got[1]]
}

fn round_trip_of_veth() -> Vec<f64> {
    let pair = Pair::new();
    ip(&[
        "-n",
        &pair.names[0],
        "link",
        "add",
        "lan",
        "type",
        "veth",
        "peer",
        "name",
        "lan",
        "netns",
        &pair.names[1],
    ]);
    pair.address(1500, false);
    ping_pong(&pair)
}

fn idle(seconds: u64) -> Value {
    let pair = Pair::new();
    let carried = Carried::new(config(&pair, &atm(), &json!({})));
    pair.address(1500, false);
    std::thread::sleep(Duration::from_secs(1));
    let clock = carried.ready["clock"].clone();
    let cpu = || carried.ask("status")["ok"]["cpu_ns"].as_f64().expect("a number");
    let before = cpu();
    std::thread::sleep(Duration::from_secs(seconds));
    let share = (cpu() - before) / (seconds as f64 * 1e9);
    let mut found = about(&carried.end());
    found["cpu_share"] = json!(share);
    found["clock"] = clock;
    found
}
