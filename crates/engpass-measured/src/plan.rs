//! From a point to the requests to its agents.

use engpass_model::source::{Live, Transport};
use engpass_model::tcp::TcpConfig;
use engpass_model::tcp::parameters::Nagle;
use engpass_model::unit::{Duration, Share, Size};
use engpass_testbed::Point;
use engpass_testbed::topology::{FlowPath, NodeId};
use indexmap::IndexSet;
use serde::Serialize;

use crate::failure::Failure;
use crate::flow::{Flow, Way};
use crate::kind;
use crate::request::{Asked, Engine, FlowRequests, Limits, Prepare, Requests, Series, Socket, StopRule};

const SECOND_NS: u64 = 1_000_000_000;
/// Shortest interval of a time series.
const LEAST_INTERVAL_NS: u64 = 100_000_000;
/// Shortest interval of a time series whose samples a stop rule uses.
const LEAST_SAMPLE_NS: u64 = 20_000_000;
/// Intervals that a stop rule needs before its first test.
const LEAST_SAMPLES: u64 = 40;
/// Time beyond its plan after which an agent gives up a flow.
const BEYOND_NS: u64 = 10 * SECOND_NS;
/// An MTU is needed to resolve TCP parameters, but any will do, because the choice of congestion control does not depend on it.
const ANY_MTU: u64 = 1500;

/// Returns the time in whole nanoseconds, rounded down.
pub(crate) fn ns(time: Duration) -> u64 {
    time.0 / 1000
}

/// Returns the word by which a file writes this value.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("a config serializes to JSON");
    value.as_str().expect("the config value is a string").to_owned()
}

/// The times of a run in the time of the file, without time dilation.
pub(crate) struct Run {
    pub(crate) warmup_ns: u64,
    pub(crate) duration_ns: u64,
    /// Longest duration that a stop rule allows; without one, `duration_ns`.
    most_ns: u64,
    /// Precision of a stop rule, as a share of the mean; `None` without one.
    pub(crate) precision: Option<f64>,
}

impl Run {
    pub(crate) fn of(point: &Point, asked: &Asked) -> Self {
        let run = &point.testbed.run;
        let ignored = asked.fixed || asked.engine == Engine::Emulate;
        Self {
            warmup_ns: run.warmup.map_or(0, ns),
            duration_ns: ns(run.duration),
            most_ns: ns(if ignored { run.duration } else { run.most() }),
            precision: run.precision.filter(|_| !ignored).map(Share::fraction),
        }
    }

    /// Returns the length in ns of the intervals of a time series: a tenth of the window, or shorter for a stop rule.
    fn interval_ns(&self, window_ns: u64) -> u64 {
        let (least, wanted) = match self.precision {
            None => (LEAST_INTERVAL_NS, window_ns / 10),
            Some(_) => (LEAST_SAMPLE_NS, (self.duration_ns - self.warmup_ns) / LEAST_SAMPLES),
        };
        wanted.max(least).min(SECOND_NS)
    }
}

/// Plans the flows of a point that still send after the warm-up. Fails for traffic that agents cannot make, and if no flow is left. Traffic of cell
/// generators is left out if the network is emulated, because the model makes it.
pub(crate) fn flows<'a>(point: &'a Point, asked: &Asked) -> Result<Vec<Flow<'a>>, Failure> {
    let run = Run::of(point, asked);
    let mut found = Vec::new();
    let mut sends = false;
    for (index, (name, traffic)) in point.testbed.traffic.iter().enumerate() {
        if asked.engine == Engine::Emulate && traffic.cells().is_some() {
            continue;
        }
        sends = true;
        let kind = kind::of(name, traffic)?;
        let (start, stop) = traffic.window();
        let slow = u64::from(asked.slow);
        let begin = start.map_or(0, ns) * slow;
        let end = run.most_ns.min(stop.map_or(u64::MAX, ns)) * slow;
        let opened = begin.max(run.warmup_ns * slow);
        if end <= opened {
            continue;
        }
        found.push(Flow {
            name,
            traffic,
            schedule: kind.schedule(asked.seed).map(|schedule| schedule.slowed(slow)),
            kind,
            sender: traffic.ends().0,
            receivers: traffic.receivers(),
            start_ns: begin,
            warmup_ns: opened - begin,
            duration_ns: end - opened,
            ways: Way::of(point, index),
        });
    }
    if !sends && asked.engine == Engine::Emulate {
        return Err(Failure::new(
            "the only traffic of this testbed is from cell generators: no host sends anything",
            "add a `udp-stream` or a `tcp-stream`, or use `--engine simulate`",
        ));
    }
    if found.is_empty() {
        return Err(Failure::new(
            "no traffic is sent after the warm-up",
            "start it earlier, or increase the duration of the run",
        ));
    }
    Ok(found)
}

/// Returns the requests to the agents of a point.
///
/// # Errors
/// For traffic that agents cannot make, and if nothing is sent after the warm-up.
pub fn requests(point: &Point, asked: &Asked) -> Result<Requests, Failure> {
    let planned = flows(point, asked)?;
    let run = Run::of(point, asked);
    let series = |flow: &Flow<'_>| {
        let told = flow.kind.is_answered();
        let hosts = if told { vec![flow.sender] } else { flow.receivers.clone() };
        let of = |host: &str| Series {
            flow: flow.name.to_owned(),
            host: host.to_owned(),
            interval_ns: run.interval_ns(flow.duration_ns),
            warmup_ns: flow.warmup_ns,
            of: if told { "messages" } else { "bytes" }.to_owned(),
            bits: 8 * if told { flow.kind.message().message_bytes } else { 1 },
        };
        hosts.into_iter().map(of).collect::<Vec<_>>()
    };
    Ok(Requests {
        stop: run.precision.map(|precision| StopRule {
            asked: precision,
            series: planned.iter().flat_map(series).collect(),
        }),
        flows: planned.iter().map(|flow| of_flow(flow, point, asked, &run)).collect(),
        notes: notes(&planned, point, asked),
    })
}

/// Returns the deviations of real hosts from the file that are known before a run, as sentences.
pub(crate) fn notes(flows: &[Flow<'_>], point: &Point, asked: &Asked) -> Vec<String> {
    let mut notes = unset_keys(point, asked.engine);
    notes.extend(refused_congestion(flows, point, asked));
    let marked =
        flows.iter().filter(|flow| flow.traffic.transfer().is_some_and(|transfer| transfer.sentinels));
    notes.extend(marked.map(|flow| {
        format!(
            "agents send no `sentinels` for `{}`: its transfer lasts from the first to the last datagram that arrives",
            flow.name
        )
    }));
    notes
}

fn of_flow(flow: &Flow<'_>, point: &Point, asked: &Asked, run: &Run) -> FlowRequests {
    let message = flow.kind.message();
    let default = Live::default();
    let live = flow.traffic.live().unwrap_or(&default);
    let window_ns = flow.duration_ns;
    let common = Prepare {
        kind: message.kind.to_owned(),
        message_bytes: message.message_bytes,
        warmup_ns: Some(flow.warmup_ns),
        duration_ns: Some(window_ns),
        interval_ns: Some(run.interval_ns(window_ns)),
        limits: Some(Limits { duration_ns: flow.warmup_ns + window_ns + BEYOND_NS }),
        streams: message.streams,
        transport: message.transport.map(|transport| {
            match transport {
                Transport::Tcp => "tcp",
                Transport::Udp => "udp",
            }
            .to_owned()
        }),
        response_bytes: message.response_bytes,
        mptcp: live.mptcp,
        segmentation: live.segmentation,
        ..Prepare::default()
    };
    let [to_send, to_receive] = sockets(flow, live, point, asked);
    let some = |cores: &Vec<u32>| (!cores.is_empty()).then(|| cores.clone());
    // If the sender has a schedule, the receiver takes timestamps and reports the gaps between datagrams.
    let gaps = flow.schedule.is_some() && message.kind == "udp-stream";
    FlowRequests {
        name: flow.name.to_owned(),
        kind: flow.traffic.kind().to_owned(),
        sender: flow.sender.to_owned(),
        receivers: flow.receivers.iter().map(|host| (*host).to_owned()).collect(),
        start_ns: flow.start_ns,
        warmup_ns: flow.warmup_ns,
        duration_ns: window_ns,
        send: Prepare {
            schedule: flow.schedule.clone(),
            pacing: live.pacing.map(word),
            burst_messages: live.burst.map(Into::into),
            bytes: flow.stream_bytes(),
            method: live.method.map(word),
            cores: some(&live.send_cores),
            socket: Some(to_send),
            ..common.clone()
        },
        receive: Prepare {
            gaps: gaps.then_some(true),
            truncate: live.truncate,
            cores: some(&live.receive_cores),
            socket: Some(to_receive),
            ..common
        },
        group: flow.kind.group(),
    }
}

/// Returns the socket options of the sender and of the receiver.
fn sockets(flow: &Flow<'_>, live: &Live, point: &Point, asked: &Asked) -> [Socket; 2] {
    let both = Socket {
        dscp: live.dscp.map(|dscp| dscp.0),
        dont_fragment: live.dont_fragment.or_else(|| may_fragment(flow, point, asked).then_some(false)),
        ttl: flow.traffic.ttl().filter(|ttl| *ttl != 64 || flow.kind.group().is_some()),
        priority: Some(flow.traffic.priority()).filter(|priority| *priority > 0),
        ..Socket::default()
    };
    let bytes = |size: Option<Size>| size.map(Size::bytes);
    if flow.kind.is_udp() {
        return [
            Socket { send_buffer_bytes: bytes(live.send_buffer), ..both.clone() },
            Socket { receive_buffer_bytes: bytes(flow.traffic.receive_buffer()), ..both },
        ];
    }
    tcp_of_ends(flow, point).map(|tcp| Socket {
        mss_bytes: bytes(tcp.mss),
        send_buffer_bytes: bytes(tcp.send_buffer),
        receive_buffer_bytes: bytes(tcp.receive_buffer),
        nodelay: tcp.nagle.map(|nagle| nagle == Nagle::Off),
        congestion: match &tcp.congestion {
            Some(congestion) => Some(congestion.kind().to_owned()),
            None => asked.congestion.as_ref().and_then(|known| {
                let wanted = of_model(&tcp);
                known.known.contains(&wanted).then_some(wanted)
            }),
        },
        ..both.clone()
    })
}

/// Returns true if routers of an emulated network may fragment the flow's datagrams, as in the model. Linux sets "don't fragment" on packets, unless the MTU
/// of the route is locked, which it is not if a sender on this path discovers the MTU.
fn may_fragment(flow: &Flow<'_>, point: &Point, asked: &Asked) -> bool {
    let node = |node: NodeId| point.topology.nodes[node].as_str();
    let is_own = |path: &FlowPath| node(path.from) == flow.sender && flow.receivers.contains(&node(path.to));
    let discovers = point.testbed.hosts[flow.sender].tcp.discovers_path_mtu();
    let on_path = || point.topology.flows.iter().any(|path| path.discovers_mtu && is_own(path));
    asked.engine == Engine::Emulate
        && flow.traffic.tcp().is_none()
        && flow.kind.message().kind == "udp-stream"
        && (discovers || on_path())
}

/// Returns the TCP settings of sender and receiver: those of the traffic take precedence over those of the hosts.
fn tcp_of_ends(flow: &Flow<'_>, point: &Point) -> [TcpConfig; 2] {
    let own = flow.traffic.tcp().expect("the flow uses TCP");
    [flow.sender, flow.receivers[0]].map(|host| own.over(&point.testbed.hosts[host].tcp))
}

/// Returns the congestion control of the model.
pub(crate) fn of_model(tcp: &TcpConfig) -> String {
    tcp.resolve(ANY_MTU).congestion.kind().to_owned()
}

/// Returns the congestion control of the sender in the model, if the file names none.
pub(crate) fn unnamed_congestion(flow: &Flow<'_>, point: &Point) -> Option<String> {
    let [tcp, _] = tcp_of_ends(flow, point);
    tcp.congestion.is_none().then(|| of_model(&tcp))
}

/// Returns a sentence for each flow whose sockets cannot have the congestion control of the model, because the kernel refuses it.
fn refused_congestion(flows: &[Flow<'_>], point: &Point, asked: &Asked) -> IndexSet<String> {
    let Some(known) = &asked.congestion else { return IndexSet::new() };
    let mut notes = IndexSet::new();
    for flow in flows.iter().filter(|flow| flow.traffic.tcp().is_some()) {
        for tcp in tcp_of_ends(flow, point).iter().filter(|tcp| tcp.congestion.is_none()) {
            let wanted = of_model(tcp);
            if !known.known.contains(&wanted) {
                notes.insert(format!(
                    "TCP of `{}` uses this host's default congestion control, `{}`, but the model uses `{wanted}`: root can add it to `net.ipv4.tcp_allowed_congestion_control`",
                    flow.name, known.own
                ));
            }
        }
    }
    notes
}

/// Returns a sentence for each end of a flow whose file has TCP keys that no socket option sets.
pub fn unset_keys(point: &Point, engine: Engine) -> Vec<String> {
    const SET: &[&str] = &["mss", "send_buffer", "receive_buffer", "nagle", "congestion"];
    let by_routes = |key: &str| engine == Engine::Emulate && key == "path_mtu";
    let mut notes = IndexSet::new();
    for traffic in point.testbed.traffic.values() {
        let Some(own) = traffic.tcp() else { continue };
        let (from, to) = traffic.ends();
        for host in [from, to] {
            let given = serde_json::to_value(own.over(&point.testbed.hosts[host].tcp));
            let given = given.expect("a config serializes to JSON");
            let given = given.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
            let keys =
                given.map(|(key, _)| key).filter(|key| !SET.contains(&key.as_str()) && !by_routes(key));
            let keys: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
            if !keys.is_empty() {
                notes.insert(format!(
                    "TCP of host `{host}` is the kernel's: {} of `tcp` cannot be set for a socket",
                    keys.join(", ")
                ));
            }
        }
    }
    notes.into_iter().collect()
}
