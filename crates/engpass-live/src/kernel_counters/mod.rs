//! Counters of the kernel, read before traffic starts and after it has stopped.

mod cores;
mod parse;

use std::fs;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

pub(crate) use cores::{Cores, shares};

use crate::sys::{clock, device, thread};

/// Reads all counters that this process can see: those of its network namespace.
pub(crate) fn read() -> Value {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut snmp = parse::headed(&text("/proc/net/snmp"));
    // `netstat` (TcpExt) and the tables of IPv6 add counters that `snmp` lacks.
    for (group, counters) in parse::headed(&text("/proc/net/netstat")) {
        snmp.entry(group).or_insert(counters);
    }
    for group in ["Udp6", "Ip6"] {
        snmp.insert(group.to_owned(), parse::prefixed(&text("/proc/net/snmp6"), group));
    }
    json!({
        "at_ns": clock::now(),
        "realtime_ns": clock::realtime(),
        "snmp": snmp,
        "softnet": parse::softnet(&text("/proc/net/softnet_stat")),
        "interfaces": interfaces(&text("/proc/net/dev")),
        "cores": Cores::read().to_json(),
        "self": thread::used_by_process(),
    })
}

/// Returns the counters of each interface, with its queue disciplines if `tc` is installed.
fn interfaces(table: &str) -> Value {
    let mut all = parse::interfaces(table);
    for discipline in disciplines() {
        let name = discipline["dev"].as_str().unwrap_or_default().to_owned();
        if let Some(Value::Object(interface)) = all.get_mut(&name)
            && let Value::Array(list) = interface.entry("qdiscs").or_insert_with(|| json!([]))
        {
            list.push(discipline);
        }
    }
    Value::Object(all)
}

/// Returns the queue disciplines of this namespace according to `tc`; empty without `tc`.
fn disciplines() -> Vec<Value> {
    let mut tc = Command::new("tc");
    tc.args(["-s", "-j", "qdisc", "show"]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = tc.output().ok().filter(|output| output.status.success());
    let parsed = output.and_then(|output| serde_json::from_slice(&output.stdout).ok());
    parsed.unwrap_or_default()
}

/// Returns the root queue discipline of an interface.
pub(crate) fn discipline_of(interface: &str) -> Option<String> {
    let found = disciplines().into_iter().find(|one| one["dev"] == interface && one["root"] == true);
    found.and_then(|one| one["kind"].as_str().map(str::to_owned))
}

/// Returns the interface that has this address.
pub(crate) fn interface_of(address: IpAddr) -> Option<String> {
    device::addresses().into_iter().find(|own| own.address == address).map(|own| own.interface)
}

/// Returns a value of `/proc/sys`, as a number if it is one.
fn setting(path: &str) -> Value {
    let text = fs::read_to_string(format!("/proc/sys/{path}")).unwrap_or_default();
    let text = text.trim().replace('\t', " ");
    if text.is_empty() {
        Value::Null
    } else {
        text.parse::<i64>().map_or_else(|_| json!(text), |number| json!(number))
    }
}

/// Returns the settings of this host that affect traffic.
pub(crate) fn settings() -> Value {
    const PATHS: [&str; 14] = [
        "net/core/rmem_max",
        "net/core/wmem_max",
        "net/core/rmem_default",
        "net/core/wmem_default",
        "net/core/default_qdisc",
        "net/core/netdev_max_backlog",
        "net/ipv4/tcp_rmem",
        "net/ipv4/tcp_wmem",
        "net/ipv4/tcp_congestion_control",
        "net/ipv4/tcp_timestamps",
        "net/ipv4/tcp_sack",
        "net/ipv4/tcp_window_scaling",
        "net/ipv4/tcp_ecn",
        "net/ipv4/tcp_mtu_probing",
    ];
    let name = |path: &str| path.rsplit('/').next().expect("the path is not empty").to_owned();
    let mut all: Map<String, Value> = PATHS.iter().map(|path| (name(path), setting(path))).collect();
    all.retain(|_, value| !value.is_null());
    let congestion = |path: &str| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let allowed = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
    let available = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    all.insert("congestion".to_owned(), json!(congestion(available)));
    all.insert("congestion_allowed".to_owned(), json!(congestion(allowed)));
    Value::Object(all)
}
