//! How fast and how exact the driver of `emulate` is on this machine: `cargo run --release -p engpass-live --example emulate_speed [SECONDS]`, as root.
//!
//! It makes network namespaces and removes them, and prints a line for each figure.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "../tests/emulate/pair.rs"]
mod pair;

use pair::{Carried, Pair, config, ip, said};

const B: &str = pair::ADDRESSES[1];
const PORT: u16 = 5201;

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
        ["pong"] => pong(),
        ["ping", to, gap_us, times] => ping(to, number(gap_us), number(times)),
        [] => measure(5),
        [seconds] => measure(number(seconds)),
        _ => eprintln!("usage: emulate_speed [SECONDS]"),
    }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a whole number")
}

// What runs in the namespaces.

fn sink() {
    let (mut stream, _) =
        TcpListener::bind(("0.0.0.0", PORT)).and_then(|door| door.accept()).expect("a peer");
    let mut buffer = vec![0; 1 << 18];
    let (mut bytes, mut begin) = (0_u64, Instant::now());
    // The first second is the window's.
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
    let mut stream = loop {
        match TcpStream::connect((to, PORT)) {
            Ok(stream) => break stream,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let data = vec![0; 1 << 17];
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(seconds) {
        stream.write_all(&data).expect("the peer reads");
    }
}

fn count(seconds: u64) {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("a free port");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
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
    let socket = socket.expect("a socket");
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

fn pong() {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("a free port");
    let mut buffer = [0; 2048];
    while let Ok((got, from)) = socket.recv_from(&mut buffer) {
        let _ = socket.send_to(&buffer[..got], from);
    }
}

fn ping(to: &str, gap_us: u64, times: u64) {
    let socket = UdpSocket::bind(("0.0.0.0", 0)).expect("a socket");
    socket.connect((to, PORT)).expect("a route");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a time");
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

// What measures.

fn ethernet(mtu: u32) -> String {
    format!(
        "name = \"line\"\n[host.a]\n[host.b]\n[link.line]\nends = [\"a\", \"b\"]\nmedium = \"ethernet-100g\"\n\
         mtu = \"{mtu} B\"\n[traffic.any]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\nrate = \"1 Mbit/s\"\n[run]\nduration = \"1 s\"\n"
    )
}

const ATM: &str = r#"
name = "atm"
[host.a]
[host.b]
[switch.s]
kind = "atm"
output_buffer = "1000 cells"
[link.one]
ends = ["a", "s"]
medium = "oc-3c"
[link.two]
ends = ["s", "b"]
medium = "oc-3c"
[circuit.data]
from = "a"
to = "b"
[traffic.any]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "1 Mbit/s"
[run]
duration = "1 s"
"#;

fn lateness(status: &Value) -> String {
    let late = &status["lateness"];
    let us = |key: &str| late[key].as_f64().unwrap_or(0.0) / 1000.0;
    format!(
        "late p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.0} us, {}",
        us("p50_ns"),
        us("p99_ns"),
        us("p999_ns"),
        us("max_ns"),
        if late["valid"] == true { "valid" } else { "invalid" }
    )
}

/// What the driver's thread needs, kernel included: on a busy machine this says more than what got through.
fn cost(status: &Value) -> String {
    let sum = |key: &str| {
        let hosts = status["hosts"].as_array().expect("a list");
        hosts.iter().filter_map(|host| host[key].as_f64()).sum::<f64>()
    };
    let cpu = status["cpu_ns"].as_f64().expect("a number");
    let (packets, bytes) = (sum("received_packets").max(1.0), sum("received_bytes"));
    let full = format!("a full core: {:.0} packets/s, {:.1} Gbit/s", packets / cpu * 1e9, bytes * 8.0 / cpu);
    format!(
        "{:.0} ns of CPU a packet, {:.1} packets a write, {full}",
        cpu / packets,
        packets / sum("writes").max(1.0)
    )
}

fn measure(seconds: u64) {
    let time = seconds.to_string();
    let direct = round_trip_of_veth();
    println!("veth, round trip: p50 {:.1} us, p99 {:.1} us", direct[1], direct[2]);
    for clock in ["sleep", "hybrid", "spin"] {
        let pair = Pair::new();
        let carried = Carried::new(config(&pair, &ethernet(1500), &json!({ "clock": clock })));
        pair.address(1500, false);
        let mut pong = pair.start(1, &["pong"]);
        std::thread::sleep(Duration::from_millis(300));
        let took = said(pair.start(0, &["ping", B, "1000", "2000"]));
        pong.kill().and_then(|()| pong.wait()).expect("it runs");
        println!(
            "{clock}, round trip: p50 {:.1} us, p99 {:.1} us; added p50 {:.1} us",
            took[1],
            took[2],
            took[1] - direct[1]
        );
        carried.end();
    }
    for (name, mtu, more) in [
        ("TCP, super-packets, MTU 1500", 1500, json!({})),
        ("TCP, super-packets, MTU 9000", 9000, json!({})),
        ("TCP, wire-true, MTU 1500", 1500, json!({ "wire_true": true })),
    ] {
        let pair = Pair::new();
        let carried = Carried::new(config(&pair, &ethernet(mtu), &more));
        pair.address(mtu, false);
        let sink = pair.start(1, &["sink"]);
        pair.start(0, &["source", B, &time]).wait().expect("it ends");
        let rate = said(sink);
        let status = carried.end();
        println!("{name}: {:.2} Gbit/s; {}; {}", rate[0] / 1e9, cost(&status), lateness(&status));
    }
    for (name, testbed, more, size, offered) in [
        ("wire-true, 64 B", ethernet(1500), json!({ "wire_true": true }), "22", "300000"),
        // UDP in IP in AAL5 with LLC/SNAP: 64 B of payload take three cells; a line of 149.76 Mbit/s has room for 117736 of them in a second.
        ("ATM 155.52 Mbit/s, 64 B", ATM.to_owned(), json!({}), "64", "130000"),
    ] {
        let pair = Pair::new();
        let carried = Carried::new(config(&pair, &testbed, &more));
        pair.address(1500, false);
        let count = pair.start(1, &["count", &(seconds + 1).to_string()]);
        std::thread::sleep(Duration::from_millis(300));
        let sent = pair.start(0, &["blast", B, size, offered, &time]);
        let got = said(count);
        let status = carried.end();
        println!(
            "{name}: {:.0} packets/s received, {:.0} packets sent, {:.0} received; {}; {}",
            got[1],
            said(sent)[0],
            got[0],
            cost(&status),
            lateness(&status)
        );
    }
    idle(seconds);
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
    let mut pong = pair.start(1, &["pong"]);
    std::thread::sleep(Duration::from_millis(300));
    let took = said(pair.start(0, &["ping", B, "1000", "2000"]));
    pong.kill().and_then(|()| pong.wait()).expect("it runs");
    took
}

fn idle(seconds: u64) {
    let pair = Pair::new();
    let carried = Carried::new(config(&pair, ATM, &json!({})));
    println!(
        "clock of its own choice: {}, {}",
        carried.ready["clock"]["mode"], carried.ready["clock"]["why"]
    );
    pair.address(1500, false);
    std::thread::sleep(Duration::from_secs(1));
    let cpu = || carried.ask("status")["ok"]["cpu_ns"].as_f64().expect("a number");
    let before = cpu();
    std::thread::sleep(Duration::from_secs(seconds));
    let share = (cpu() - before) / (seconds as f64 * 1e9);
    println!("idle: {:.2} % of a core", share * 100.0);
    carried.end();
}
