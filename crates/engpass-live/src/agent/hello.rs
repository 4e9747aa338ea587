//! The agent's first message: its version, the host and the host's capabilities.

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};

use crate::flow::Timer;
use crate::kernel_counters;
use crate::limits::Limits;
use crate::sys::{device, option, thread};

/// Version of the control protocol.
pub const PROTOCOL: u32 = 1;

fn text(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the `hello` event, with the timer's calibration.
pub(super) fn event(timer: &Timer, limits: &Limits, silence: Duration) -> Value {
    let memory = text("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    });
    json!({
        "event": "hello",
        "protocol": PROTOCOL,
        "version": env!("CARGO_PKG_VERSION"),
        "silence_ns": u64::try_from(silence.as_nanos()).unwrap_or(u64::MAX),
        "host": {
            "name": text("/proc/sys/kernel/hostname"),
            "kernel": text("/proc/sys/kernel/osrelease"),
            "machine": std::env::consts::ARCH,
            "cores": thread::cores(),
            "memory_bytes": memory.map(|kib| kib * 1024),
            "addresses": device::addresses(),
            "processor": processor(),
            "hypervisor": text("/proc/cpuinfo").map(|text| text.split_whitespace().any(|flag| flag == "hypervisor")),
            "clock_source": text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        },
        "settings": kernel_counters::settings(),
        "capabilities": capabilities(),
        "timer": timer.to_json(),
        "limits": limits,
    })
}

fn processor() -> Option<String> {
    let text = text("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

/// Tries socket options on unconnected sockets to find out which ones the kernel supports.
fn capabilities() -> Value {
    let udp = UdpSocket::bind("127.0.0.1:0");
    let takes =
        |level, name, value| udp.as_ref().is_ok_and(|udp| option::set(udp, level, name, value).is_ok());
    let tcp = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP));
    let zerocopy =
        tcp.as_ref().is_ok_and(|tcp| option::set(tcp, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).is_ok());
    let mptcp = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(option::MPTCP)));
    let packet = Socket::new(Domain::PACKET, Type::DGRAM, None);
    json!({
        "root": thread::is_root(),
        "buffer_force": takes(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 1 << 20),
        "packet_socket": packet.is_ok(),
        "timestamps": takes(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1),
        "udp_segment": takes(libc::SOL_UDP, option::UDP_SEGMENT, 1000),
        "udp_gro": takes(libc::SOL_UDP, option::UDP_GRO, 1),
        "zerocopy": zerocopy,
        "io_uring": io_uring::IoUring::new(2).is_ok(),
        "mptcp": mptcp.is_ok(),
    })
}
