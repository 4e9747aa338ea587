//! Tests the driver with real network namespaces. They need privileges; without them, each test prints that it was skipped and why.

mod pair;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use engpass_live::{emulate, replay};
use pair::{ADDRESSES, ADDRESSES_6, ATM, Carried, Pair, config, said};
use serde_json::{Value, json};

/// Hosts behind two routers, with a line that loses packets.
const FRAMES: &str = r#"
name = "frames"
[host.a]
[host.b]
[router.r]
[router.t]
[link.one]
ends = ["a", "r"]
medium = "ethernet-1g"
[link.two]
ends = ["r", "t"]
medium = "ethernet-1g"
loss = "1 %"
[link.three]
ends = ["t", "b"]
medium = "ethernet-1g"
[traffic.any]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "1 Mbit/s"
[run]
duration = "1 s"
"#;

type Test = (&'static str, fn());

const TESTS: [Test; 7] = [
    ("packets_take_as_long_as_the_network_says", packets_take_as_long_as_the_network_says),
    ("what_is_sent_arrives_unchanged", what_is_sent_arrives_unchanged),
    ("datagrams_arrive_one_by_one", datagrams_arrive_one_by_one),
    ("losses_are_made_good_and_the_replay_is_identical", losses_are_made_good_and_the_replay_is_identical),
    ("stations_find_each_other", stations_find_each_other),
    ("signals_end_it", signals_end_it),
    ("what_cannot_be_is_said", what_cannot_be_is_said),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["in-namespace", "pong", address] => pong(address),
        ["in-namespace", "ping", address, times] => ping(address, times.parse().expect("a number")),
        ["in-namespace", "volley", address] => volley(address),
        ["in-namespace", "echo", address] => echo(address),
        ["in-namespace", "send", address, bytes] => send(address, bytes.parse().expect("a number")),
        _ => return run(&words),
    }
    ExitCode::SUCCESS
}

fn run(words: &[&str]) -> ExitCode {
    if words.contains(&"--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let asked: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let chosen =
        TESTS.iter().filter(|(name, _)| asked.is_empty() || asked.iter().any(|word| name.contains(**word)));
    let why = missing();
    for (name, test) in chosen {
        match &why {
            Some(why) => println!("test {name} ... skipped: {why}"),
            None => {
                let before = around();
                test();
                assert_eq!(
                    around(),
                    before,
                    "namespaces, devices and files are as they were before `{name}`"
                );
                println!("test {name} ... ok");
            }
        }
    }
    ExitCode::SUCCESS
}

/// Returns why this process cannot create namespaces and devices, if so.
fn missing() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or("0");
    let have = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
    if have >> 12 & 1 == 0 || have >> 21 & 1 == 0 {
        return Some("it needs CAP_NET_ADMIN and CAP_SYS_ADMIN".to_owned());
    }
    if fs::File::options().read(true).write(true).open("/dev/net/tun").is_err() {
        return Some("this machine has no `/dev/net/tun`".to_owned());
    }
    let works = Command::new("ip").args(["netns", "list"]).output().is_ok_and(|done| done.status.success());
    (!works).then(|| "`ip netns` does not work here".to_owned())
}

/// Returns the namespaces, devices and files that these tests have created.
fn around() -> [BTreeSet<String>; 3] {
    let ours = format!("engpass-test-{}", std::process::id());
    ["/run/netns".into(), "/sys/class/net".into(), std::env::temp_dir()].map(|directory| {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| directory.starts_with("/sys") || name.starts_with(&ours)).collect()
    })
}

// Programs that run in the namespaces.

const PORT: u16 = 5201;

fn pong(address: &str) {
    let socket = UdpSocket::bind((address, PORT)).expect("the port is free");
    println!("1");
    let mut buffer = [0; 2048];
    while let Ok((got, from)) = socket.recv_from(&mut buffer) {
        let _ = socket.send_to(&buffer[..got], from);
    }
}

/// Prints the number of answers, and the shortest and the median round trip in microseconds.
fn ping(address: &str, times: usize) {
    let any = if address.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).expect("the socket opens");
    socket.connect((address, PORT)).expect("the host has a route");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("the time-out is valid");
    let mut took = Vec::new();
    for _ in 0..times {
        let begin = Instant::now();
        if socket.send(&[1; 200]).is_ok() && socket.recv(&mut [0; 2048]).is_ok() {
            took.push(begin.elapsed().as_micros());
        }
    }
    took.sort_unstable();
    println!("{} {} {}", took.len(), took.first().unwrap_or(&0), took.get(took.len() / 2).unwrap_or(&0));
}

/// Prints the number of datagrams that came back unchanged and in order.
fn volley(address: &str) {
    let any = if address.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).expect("the socket opens");
    socket.connect((address, PORT)).expect("the host has a route");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("the time-out is valid");
    let mut good = 0;
    for volley in 0..10_usize {
        // Equal sizes, except for one datagram that is shorter.
        let datagram = |number: usize| -> Vec<u8> {
            let size = if number == 20 + volley { 50 } else { 90 };
            (0..size).map(|at| (at * 7 + number * 13 + volley) as u8).collect()
        };
        for number in 0..80 {
            socket.send(&datagram(number)).expect("the datagram is sent");
        }
        for number in 0..80 {
            let mut buffer = [0; 2048];
            let Ok(got) = socket.recv(&mut buffer) else { break };
            good += u32::from(buffer[..got] == datagram(number));
        }
    }
    println!("{good}");
}

fn echo(address: &str) {
    let door = TcpListener::bind((address, PORT)).expect("the port is free");
    println!("1");
    let (mut stream, _) = door.accept().expect("a peer connects");
    let mut back = stream.try_clone().expect("the descriptor is duplicated");
    std::io::copy(&mut stream, &mut back).expect("the TCP connection is open");
    back.shutdown(std::net::Shutdown::Write).expect("the TCP connection is open");
}

/// Prints 1 if all bytes came back.
fn send(address: &str, bytes: usize) {
    let mut stream = TcpStream::connect((address, PORT)).expect("the socket listens");
    let mut back = stream.try_clone().expect("the descriptor is duplicated");
    let data: Vec<u8> = (0..bytes).map(|at| ((at * 7) ^ (at >> 8) ^ (at >> 16)) as u8).collect();
    let sent = data.clone();
    let sending = std::thread::spawn(move || {
        stream.write_all(&sent).expect("the TCP connection is open");
        stream.shutdown(std::net::Shutdown::Write).expect("the TCP connection is open");
    });
    let mut came = Vec::new();
    back.read_to_end(&mut came).expect("the TCP connection is open");
    sending.join().expect("the sending thread does not panic");
    println!("{}", u8::from(came == data));
}

/// A program in a namespace that is ready, and is killed on drop.
struct Listening(Child);

impl Listening {
    fn new(pair: &Pair, words: &[&str]) -> Self {
        let mut child = pair.start(1, words);
        let mut one = [0; 2];
        child
            .stdout
            .as_mut()
            .expect("the child's output is piped")
            .read_exact(&mut one)
            .expect("the child reports when it is ready");
        Self(child)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends `bytes` bytes there and back. Returns whether all came back unchanged.
fn there_and_back(pair: &Pair, address: &str, bytes: usize) -> bool {
    let _listening = Listening::new(pair, &["in-namespace", "echo", address]);
    said(pair.start(0, &["in-namespace", "send", address, &bytes.to_string()])) == [1.0]
}

// Tests.

fn packets_take_as_long_as_the_network_says() {
    for more in
        [json!({ "clock": "sleep" }), json!({ "clock": "hybrid" }), json!({ "slow": 10, "clock": "sleep" })]
    {
        let pair = Pair::new();
        let carried = Carried::new(config(&pair, ATM, &more));
        assert_eq!(carried.ready["event"], "ready");
        assert_eq!(carried.ready["ways"][0], json!({ "name": "a to b", "mtu": 9180, "routers": 0 }));
        pair.address(9180, false);
        let slow = more["slow"].as_f64().unwrap_or(1.0);
        for (address, header) in [(ADDRESSES[1], 28), (ADDRESSES_6[1], 48)] {
            let _pong = Listening::new(&pair, &["in-namespace", "pong", address]);
            let [answers, shortest, middle] =
                said(pair.start(0, &["in-namespace", "ping", address, "20"]))[..]
            else {
                panic!("expected three numbers")
            };
            // LLC/SNAP and the AAL5 trailer (RFC 2684), in cells of 424 bits; 2 ms each way. The switch forwards a cell once it has received all of it, so
            // the second line adds one cell.
            let cells = f64::from((200 + header + 8 + 8 + 47) / 48);
            let least = slow * (4000.0 + 2.0 * (cells + 1.0) * 424.0 / 149.76);
            assert_eq!(answers, 20.0);
            assert!(shortest >= least - 1.0, "{shortest} us instead of at least {least} us");
            assert!(middle < least + 60_000.0, "{middle} us instead of {least} us");
        }
        let status = carried.end();
        let [a, b] = [0, 1].map(|host| status["hosts"][host]["received_packets"].as_u64().expect("a number"));
        assert_eq!((a, b), (40, 40));
        assert_eq!(status["lateness"]["packets"], 80);
    }
}

fn what_is_sent_arrives_unchanged() {
    for more in [json!({}), json!({ "wire_true": true })] {
        let pair = Pair::new();
        let carried = Carried::new(config(&pair, ATM, &more));
        pair.address(1500, false);
        for address in [ADDRESSES[1], ADDRESSES_6[1]] {
            assert!(there_and_back(&pair, address, 3_000_001), "{address}");
        }
        let status = carried.end();
        let [reads, packets] =
            ["reads", "sent_packets"].map(|key| status["hosts"][0][key].as_u64().expect("a number"));
        // 12 MB there and back in packets of 1500 B.
        assert!(packets > 4000, "{packets}");
        assert_eq!(
            reads == packets,
            more == json!({ "wire_true": true }),
            "super-packets are read unless `wire_true` is set"
        );
    }
}

/// Datagrams stay separate, whether the driver wrote them together or not.
fn datagrams_arrive_one_by_one() {
    for more in [json!({}), json!({ "wire_true": true })] {
        let pair = Pair::new();
        let carried = Carried::new(config(&pair, ATM, &more));
        pair.address(1500, false);
        for address in [ADDRESSES[1], ADDRESSES_6[1]] {
            let _pong = Listening::new(&pair, &["in-namespace", "pong", address]);
            assert_eq!(said(pair.start(0, &["in-namespace", "volley", address])), [800.0], "{address}");
        }
        let status = carried.end();
        let [packets, writes] =
            ["received_packets", "writes"].map(|key| status["hosts"][1][key].as_u64().expect("a number"));
        assert_eq!(packets, 1600);
        assert!(writes <= packets && (writes == packets || more == json!({})), "{writes} writes");
        println!("{packets} datagrams in {writes} writes");
    }
}

fn losses_are_made_good_and_the_replay_is_identical() {
    let pair = Pair::new();
    let mut config = config(&pair, FRAMES, &json!({}));
    let log = format!("{}.log", config["socket"].as_str().expect("the config has a socket path"));
    config["log"] = json!(log);
    let carried = Carried::new(config);
    pair.address(1500, false);
    assert!(there_and_back(&pair, ADDRESSES[1], 2_000_000));
    let status = carried.end();
    let lost: u64 = (status["lost"].as_array().expect("the value is a list").iter())
        .map(|way| way["packets"].as_u64().expect("a number"))
        .sum();
    assert!(lost > 0, "a loss of 1 % affects some of thousands of packets");
    assert_eq!(status["log"]["error"], Value::Null);
    let found = replay(log.as_ref(), &|| false).expect("the log is readable");
    fs::remove_file(&log).expect("the file exists");
    assert_eq!((&found["identical"], &found["whole"]), (&json!(true), &json!(true)), "{found}");
    assert!(found["inputs"].as_u64().expect("a number") > 2500);
}

fn stations_find_each_other() {
    let pair = Pair::new();
    let mut config = config(&pair, FRAMES, &json!({}));
    for host in config["hosts"].as_array_mut().expect("the value is a list") {
        host["kind"] = json!("tap");
    }
    let carried = Carried::new(config);
    pair.address(1500, true);
    for address in [ADDRESSES[1], ADDRESSES_6[1]] {
        assert!(there_and_back(&pair, address, 300_000), "{address}");
    }
    let status = carried.end();
    assert_eq!(status["hosts"][0]["discarded"]["malformed"], 0);
}

fn signals_end_it() {
    for signal in ["TERM", "INT"] {
        let pair = Pair::new();
        let carried = Carried::new(config(&pair, ATM, &json!({})));
        kill(signal);
        if signal == "INT" && ignores_interrupts() {
            // A shell starts background programs with SIGINT ignored, and it must stay so: an interrupt is meant for the foreground.
            assert!(carried.ask("status")["ok"].is_object(), "the driver ignores SIGINT");
            kill("TERM");
        }
        assert_eq!(carried.wait()["hosts"][0]["sent_packets"].as_u64().map(|sent| sent < 100), Some(true));
    }
}

/// Sends a signal to this process.
fn kill(signal: &str) {
    let own = std::process::id().to_string();
    let done = Command::new("kill").args([&format!("-{signal}"), &own]).status();
    assert!(done.is_ok_and(|status| status.success()), "`kill` succeeds");
}

/// Returns whether this process was started with SIGINT ignored.
fn ignores_interrupts() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has `/proc/self/status`");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("`SigIgn` is listed");
    // The lowest bit is signal 1; SIGINT is 2.
    u64::from_str_radix(ignored.trim(), 16).expect("a hexadecimal number") & 2 != 0
}

fn what_cannot_be_is_said() {
    let pair = Pair::new();
    let refused = |config: &Value| {
        emulate(&config.to_string(), &mut |_| panic!("a rejected config was emulated"))
            .expect_err("the config is rejected")
            .to_string()
    };
    let mut there = config(&pair, ATM, &json!({}));
    there["hosts"][1]["netns"] = json!("/run/netns/engpass-nobody");
    let told = refused(&there);
    assert!(
        told.contains("host `b`: entering `/run/netns/engpass-nobody`") && told.contains("help: "),
        "{told}"
    );
    let mut there = config(&pair, ATM, &json!({}));
    there["hosts"][1]["device"] = json!("a-name-that-is-too-long");
    assert!(refused(&there).contains("host `b`: opening the device `a-name-that-is-too-long`"));
    let carried = Carried::new(config(&pair, ATM, &json!({})));
    let told = refused(&config(&pair, ATM, &json!({})));
    assert!(told.contains("another process has the device open"), "{told}");
    assert_eq!(carried.ask("dance")["error"]["code"], "bad-request");
    assert_eq!(carried.ask("end-window")["error"]["code"], "wrong-order");
    let mut there = config(&pair, ATM, &json!({ "log": "/proc/no/such" }));
    there["hosts"][0]["device"] = json!("lan2");
    there["hosts"][1]["device"] = json!("lan2");
    let told = refused(&there);
    assert!(
        told.contains("writing `/proc/no/such`") && told.contains("help: create its directory"),
        "{told}"
    );
    let told = replay("/proc/version".as_ref(), &|| false).expect_err("the file is not a log").to_string();
    assert!(told.contains("does not start like a log") && told.contains("help: use a log"), "{told}");
}
