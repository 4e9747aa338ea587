//! Requests to agents.

use engpass_measured::{Asked, Congestion, Engine, FlowRequests, Requests, Socket, requests, unset_keys};
use serde_json::{Value, json};

use crate::{DIRECT, ROUTED, RUN, asked, bulk, point};

const THREE: &str = r#"
[host.a]
tcp = { congestion = "reno", rto_minimum = "1 s" }
[host.b]
[link.cable]
ends = ["a", "b"]
medium = "ethernet-1g"
[traffic.bulk]
kind = "tcp-stream"
from = "a"
to = "b"
message = "1 kB"
streams = 3
tcp = { congestion = "cubic", nagle = "off" }
live = { dscp = "ef", send_cores = [1], method = "sendfile" }
[traffic.paced]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "8 Mbit/s"
live = { pacing = "busy" }
[traffic.probe]
kind = "request-response"
from = "b"
to = "a"
request = "100 B"
response = "200 B"
transport = "udp"
every = "10 ms"
[run]
duration = "200 ms"
warmup = "100 ms"
"#;

fn of(text: &str, asked: &Asked) -> Requests {
    requests(&point(text), asked).unwrap_or_else(|failure| panic!("{failure}"))
}

fn first(text: &str, asked: &Asked) -> FlowRequests {
    of(text, asked).flows.remove(0)
}

fn schedule(flow: &FlowRequests) -> Value {
    serde_json::to_value(&flow.send.schedule).unwrap()
}

#[test]
fn each_end_gets_its_own_part_of_a_flow() {
    let [bulk, paced, probe] = &of(THREE, &asked(Engine::Measure)).flows[..] else { panic!("three flows") };
    assert_eq!((bulk.sender.as_str(), &bulk.receivers[..]), ("a", &["b".to_owned()][..]));
    let wanted = Socket {
        dscp: Some(46),
        nodelay: Some(true),
        congestion: Some("cubic".to_owned()),
        ..Socket::default()
    };
    assert_eq!(bulk.send.socket, Some(wanted));
    assert_eq!((bulk.send.method.as_deref(), &bulk.send.cores), (Some("sendfile"), &Some(vec![1])));
    assert_eq!((bulk.receive.method.as_deref(), &bulk.receive.cores), (None, &None));
    assert_eq!((bulk.warmup_ns, bulk.send.duration_ns), (100_000_000, Some(100_000_000)));
    assert_eq!(schedule(paced), json!({ "kind": "cbr", "rate_bit_per_s": 8_000_000 }));
    assert_eq!((paced.send.pacing.as_deref(), paced.receive.gaps), (Some("busy"), Some(true)));
    // 100 B every 10 ms are 80 kbit/s of requests.
    assert_eq!(schedule(probe), json!({ "kind": "cbr", "rate_bit_per_s": 80_000 }));
    assert_eq!((probe.send.transport.as_deref(), probe.send.response_bytes), (Some("udp"), Some(200)));
}

#[test]
fn periods_below_a_nanosecond_have_exact_rates() {
    let rate = |keys: &str| {
        let send = requests(&bulk(DIRECT, "request-response", keys), &asked(Engine::Measure))
            .unwrap()
            .flows
            .remove(0)
            .send;
        send.schedule.unwrap().rate_bit_per_s
    };
    let sizes = "request = \"125 B\"\nresponse = \"125 B\"\n";
    // 1000 bits every 500 ps and every 1500 ps.
    assert_eq!(rate(&format!("{sizes}every = \"500 ps\"")), 2_000_000_000_000);
    assert_eq!(rate(&format!("{sizes}every = \"1500 ps\"")), 666_666_666_666);
    // At most the rate that an agent accepts, and at least 1 bit/s.
    assert_eq!(rate(&format!("{sizes}every = \"1 ps\"")), 10_000_000_000_000);
    assert_eq!(rate(&format!("{sizes}every = \"1010 s\"")), 1);
}

#[test]
fn shortest_burst_of_an_agent_is_a_nanosecond() {
    let keys = "message = \"1 kB\"\nrate = \"1 Mbit/s\"\non = \"500 ps\"\noff = \"500 ps\"";
    let flow = requests(&bulk(DIRECT, "udp-on-off", keys), &asked(Engine::Measure)).unwrap().flows.remove(0);
    let schedule = flow.send.schedule.unwrap();
    assert_eq!((schedule.on_ns, schedule.off_ns), (Some(1), Some(0)));
}

#[test]
fn each_traffic_has_its_own_measurement_window() {
    let text = THREE.replace("rate = \"8 Mbit/s\"", "rate = \"8 Mbit/s\"\nstart = \"150 ms\"");
    let text = text.replace("every = \"10 ms\"", "every = \"10 ms\"\nstop = \"160 ms\"");
    let flows = of(&text, &asked(Engine::Measure)).flows;
    let window = |flow: &FlowRequests| (flow.start_ns, flow.warmup_ns, flow.duration_ns);
    assert_eq!(window(&flows[1]), (150_000_000, 0, 50_000_000));
    assert_eq!(window(&flows[2]), (0, 100_000_000, 60_000_000));
    // Traffic that ends in the warm-up is not made.
    let early = THREE.replace("every = \"10 ms\"", "every = \"10 ms\"\nstop = \"100 ms\"");
    assert_eq!(of(&early, &asked(Engine::Measure)).flows.len(), 2);
}

#[test]
fn settings_without_a_socket_option_are_named() {
    let notes = unset_keys(&point(THREE), Engine::Measure);
    assert_eq!(notes, ["TCP of host `a` is the kernel's: `rto_minimum` of `tcp` cannot be set for a socket"]);
    // Routes of an emulated network set the path MTU.
    let discovered = point(&THREE.replace("rto_minimum = \"1 s\"", "path_mtu = \"discovered\""));
    assert_eq!(unset_keys(&discovered, Engine::Measure).len(), 1);
    assert!(unset_keys(&discovered, Engine::Emulate).is_empty());
}

#[test]
fn rate_of_a_tcp_stream_is_a_write_schedule_per_connection() {
    let text = THREE.replace("streams = 3", "streams = 3\nrate = \"1 Mbit/s\"");
    let flow = first(&text, &asked(Engine::Measure));
    assert_eq!(schedule(&flow), json!({ "kind": "cbr", "rate_bit_per_s": 1_000_000 }));
    assert_eq!(flow.send.streams, Some(3));
}

const VIDEO: &str = "message = \"1 kB\"\nrate = \"1 Mbit/s\"\n";
const FRAMES: &str = "frame_rate = \"25 fps\", group_of_pictures = 4, intra_size = \"500 %\"";

#[test]
fn agents_get_the_frames_of_a_video() {
    let single = format!(
        "{DIRECT}[traffic.film]\nkind = \"video\"\nfrom = \"a\"\nto = \"b\"\n{VIDEO}{}\n{RUN}",
        FRAMES.replace(", ", "\n")
    );
    let group = format!(
        "{DIRECT}[traffic.film]\nkind = \"multicast\"\nfrom = \"a\"\nto = [\"b\"]\n{VIDEO}video = {{ {FRAMES} }}\n{RUN}"
    );
    for text in [single, group] {
        let of_slow = |slow: u32| schedule(&first(&text, &Asked { slow, ..asked(Engine::Emulate) }));
        let wanted = |rate: u64, frames: u64| json!({ "kind": "video", "rate_bit_per_s": rate, "micro_frames_per_s": frames, "group_of_pictures": 4, "intra_size_ppb": 5_000_000_000u64 });
        assert_eq!(of_slow(1), wanted(1_000_000, 25_000_000));
        assert_eq!(of_slow(10), wanted(100_000, 2_500_000));
    }
}

#[test]
fn time_dilation_stretches_schedules_and_windows() {
    let keys = "message = \"1 kB\"\nrate = \"1 Mbit/s\"\nstart = \"30 ms\"";
    let text = format!(
        "{DIRECT}[traffic.bulk]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\n{keys}\n[run]\nduration = \"200 ms\"\nwarmup = \"100 ms\"\n"
    );
    let flow = first(&text, &Asked { slow: 10, ..asked(Engine::Emulate) });
    assert_eq!(schedule(&flow), json!({ "kind": "cbr", "rate_bit_per_s": 100_000 }));
    assert_eq!((flow.start_ns, flow.warmup_ns, flow.duration_ns), (300_000_000, 700_000_000, 1_000_000_000));
}

#[test]
fn stop_rule_watches_receivers_or_answers() {
    let text =
        THREE.replace("warmup = \"100 ms\"", "warmup = \"100 ms\"\nprecision = \"5 %\"\nlongest = \"1 s\"");
    let stop = of(&text, &asked(Engine::Measure)).stop.unwrap();
    let series: Vec<_> = stop
        .series
        .iter()
        .map(|one| (one.flow.as_str(), one.host.as_str(), one.of.as_str(), one.bits))
        .collect();
    assert_eq!(
        series,
        [("bulk", "b", "bytes", 8), ("paced", "b", "bytes", 8), ("probe", "b", "messages", 800)]
    );
    assert_eq!(of(&text, &asked(Engine::Measure)).flows[0].duration_ns, 900_000_000);
    let fixed = of(&text, &Asked { fixed: true, ..asked(Engine::Measure) });
    assert_eq!((fixed.stop, fixed.flows[0].duration_ns), (None, 100_000_000));
}

#[test]
fn cells_are_made_by_the_model_only() {
    let cells = r#"
[host.a]
[host.b]
[link.wire]
ends = ["a", "b"]
medium = "oc-3c"
[traffic.cells]
kind = "cbr"
from = "a"
to = "b"
rate = "10 Mbit/s cells"
[circuit.vc]
from = "a"
to = "b"
"#;
    let both = format!(
        "{cells}[traffic.paced]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\n{RUN}"
    );
    let refused = |text: &str, engine: Engine| requests(&point(text), &asked(engine)).unwrap_err().cause;
    assert_eq!(first(&both, &asked(Engine::Emulate)).name, "paced");
    assert!(refused(&both, Engine::Measure).contains("it sends cells, but hosts cannot"));
    assert!(refused(&format!("{cells}{RUN}"), Engine::Emulate).contains("no host sends anything"));
}

#[test]
fn sockets_of_an_emulated_network_get_the_congestion_control_of_the_model() {
    let text = format!(
        "{DIRECT}[traffic.bulk]\nkind = \"tcp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\n{RUN}"
    );
    let text = text.replace("[host.b]", "[host.b]\ntcp = { congestion = \"bbr\" }");
    let of_known = |known: &[&str]| {
        let known = known.iter().map(|name| (*name).to_owned()).collect();
        let congestion = Some(Congestion { own: "reno".to_owned(), known });
        let found = of(&text, &Asked { congestion, ..asked(Engine::Emulate) });
        let flow = &found.flows[0];
        let ends = [&flow.send, &flow.receive].map(|end| end.socket.clone().unwrap().congestion);
        (ends, found.notes)
    };
    let (ends, notes) = of_known(&["cubic", "reno"]);
    assert_eq!((ends, notes), ([Some("cubic".to_owned()), Some("bbr".to_owned())], vec![]));
    let (ends, notes) = of_known(&["reno"]);
    assert_eq!(ends, [None, Some("bbr".to_owned())]);
    let told = "TCP of `bulk` uses this host's default congestion control, `reno`, but the model uses `cubic`: root can add it to `net.ipv4.tcp_allowed_congestion_control`";
    assert_eq!(notes, [told]);
}

/// By default the DF flag is off, as in the model and unlike in Linux; a setting of the file is kept.
#[test]
fn path_mtu_discovery_clears_dont_fragment_of_datagrams() {
    let flag = |host: &str, keys: &str| {
        let links = ROUTED.replace("[host.a]", &format!("[host.a]\n{host}"));
        let point = bulk(&links, "udp-stream", &format!("message = \"1 kB\"\n{keys}"));
        requests(&point, &asked(Engine::Emulate)).unwrap().flows[0].send.socket.clone().unwrap().dont_fragment
    };
    let discovers = "tcp = { path_mtu = \"discovered\" }";
    assert_eq!(flag("", ""), None);
    assert_eq!(flag(discovers, ""), Some(false));
    assert_eq!(flag(discovers, "live = { dont_fragment = true }"), Some(true));
}

#[test]
fn stream_with_a_count_ends_after_its_messages() {
    let counted = |kind: &str, keys: &str| {
        let point = bulk(DIRECT, kind, &format!("message = \"1 kB\"\ncount = 50\n{keys}"));
        requests(&point, &asked(Engine::Measure)).unwrap_or_else(|failure| panic!("{failure}"))
    };
    // Of each connection.
    assert_eq!(counted("tcp-stream", "streams = 3").flows[0].send.bytes, Some(50_000));
    let marked = counted("udp-stream", "sentinels = true");
    assert_eq!((marked.flows[0].send.bytes, marked.flows[0].receive.bytes), (Some(50_000), None));
    assert!(marked.notes[0].starts_with("agents send no `sentinels` for `bulk`"), "{:?}", marked.notes);
}
