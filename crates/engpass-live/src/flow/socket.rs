//! Opens sockets with the requested options and reports what the kernel granted.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Map, Value, json};
use socket2::{Domain, Protocol, Socket, Type};

use super::spec::{Kind, Role, Spec};
use crate::protocol_error::{Code, ErrorContext, ProtocolError, Result};
use crate::sys::option;
use crate::time::MICROSECOND;

/// Longest time that a call on a data socket blocks; it bounds the time until a stopped flow ends.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_millis(100);
/// Time for which a receiver sleeps, in ns, after it has emptied its socket while many small pieces arrive. It replaces waiting in the kernel, because a
/// wake-up for every packet costs the sending host (on one machine the sending thread itself) up to a third of its packets.
pub(crate) const NAP: u64 = 60 * MICROSECOND;
/// Default receive buffer of a UDP receiver, in bytes. It holds the datagrams that arrive while the thread does not run.
const UDP_BUFFER: u64 = 4 << 20;
/// Default receive buffer, in bytes, of a UDP receiver with GRO, which receives ten times as many datagrams.
const JOINED_BUFFER: u64 = 32 << 20;

/// Opens a socket for the flow and sets all options that precede the connection.
pub(crate) fn open(spec: &Spec, ip: IpAddr) -> Result<Socket> {
    let domain = if ip.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
    let socket = if spec.udp {
        Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).doing("open a UDP socket")?
    } else if spec.asked.mptcp {
        Socket::new(domain, Type::STREAM, Some(Protocol::from(option::MPTCP))).map_err(|error| {
            let help = "leave `mptcp` out, or set `net.mptcp.enabled`";
            ProtocolError::new(Code::NotSupported, format!("open an MPTCP socket: {error}"), help)
        })?
    } else {
        Socket::new(domain, Type::STREAM, Some(Protocol::TCP)).doing("open a TCP socket")?
    };
    if let Some(name) = &spec.asked.interface {
        socket.bind_device(Some(name.as_bytes())).doing("bind to the interface")?;
    }
    buffers(&socket, spec)?;
    marks(&socket, spec, ip)?;
    if spec.udp {
        for_datagrams(&socket, spec)?;
    } else {
        for_a_stream(&socket, spec)?;
    }
    Ok(socket)
}

fn buffers(socket: &Socket, spec: &Spec) -> Result<()> {
    let asked = &spec.asked.socket;
    let bytes = |value: u64| i32::try_from(value).unwrap_or(i32::MAX);
    if let Some(size) = asked.send_buffer_bytes {
        option::send_buffer(socket, bytes(size)).doing("set the send buffer")?;
    }
    let own = if spec.asked.segmentation { JOINED_BUFFER } else { UDP_BUFFER };
    let own = (spec.udp && spec.role == Role::Receive).then_some(own);
    if let Some(size) = asked.receive_buffer_bytes.or(own) {
        option::receive_buffer(socket, bytes(size)).doing("set the receive buffer")?;
    }
    Ok(())
}

fn marks(socket: &Socket, spec: &Spec, ip: IpAddr) -> Result<()> {
    let asked = &spec.asked.socket;
    if let Some(dscp) = asked.dscp {
        // RFC 2474 section 3: the DSCP is the upper six bits, above the two ECN bits.
        let tos = u32::from(dscp) << 2;
        let set = if ip.is_ipv4() { socket.set_tos_v4(tos) } else { socket.set_tclass_v6(tos) };
        set.doing("set the DSCP")?;
    }
    if let Some(ttl) = asked.ttl {
        let set =
            if ip.is_ipv4() { socket.set_ttl_v4(ttl.into()) } else { socket.set_unicast_hops_v6(ttl.into()) };
        set.doing("set the TTL")?;
    }
    if let Some(priority) = asked.priority {
        option::set(socket, libc::SOL_SOCKET, libc::SO_PRIORITY, priority.into())
            .doing("set the priority")?;
    }
    if let Some(whole) = asked.dont_fragment {
        let (level, name) = if ip.is_ipv4() {
            (libc::SOL_IP, libc::IP_MTU_DISCOVER)
        } else {
            (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER)
        };
        let mode = if whole { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT };
        option::set(socket, level, name, mode).doing("set the don't-fragment bit")?;
    }
    Ok(())
}

fn for_a_stream(socket: &Socket, spec: &Spec) -> Result<()> {
    let asked = &spec.asked.socket;
    if let Some(name) = &asked.congestion {
        socket.set_tcp_congestion(name.as_bytes()).map_err(|error| {
            let help = "name one of `hello.settings.congestion`; root may add to `net.ipv4.tcp_allowed_congestion_control`";
            ProtocolError::new(Code::NotSupported, format!("set congestion control `{name}`: {error}"), help)
        })?;
    }
    if let Some(mss) = asked.mss_bytes {
        socket.set_tcp_mss(mss).doing("set the MSS")?;
    }
    // Nagle's algorithm (RFC 896) delays the tail of a message until earlier data is acknowledged, which would distort latency.
    let nodelay = asked.nodelay.unwrap_or(spec.asked.kind == Kind::RequestResponse);
    socket.set_tcp_nodelay(nodelay).doing("set Nagle's algorithm")
}

fn for_datagrams(socket: &Socket, spec: &Spec) -> Result<()> {
    // Each peer gets a connected socket at the same port as the listening one.
    socket.set_reuse_port(true).doing("share the port among the streams")?;
    if spec.gaps && spec.role == Role::Receive {
        option::set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).doing("ask for time stamps")?;
    }
    if spec.asked.segmentation && spec.role == Role::Receive {
        option::set(socket, libc::SOL_UDP, option::UDP_GRO, 1).doing("ask for UDP_GRO")?;
    }
    if let (Some(group), Role::Send) = (spec.asked.group, spec.role) {
        let ttl = spec.asked.socket.ttl.unwrap_or(1);
        if group.is_ipv4() {
            socket.set_multicast_ttl_v4(ttl.into()).doing("set the TTL of multicast")?;
            if let Some(IpAddr::V4(own)) = spec.asked.address {
                socket.set_multicast_if_v4(&own).doing("set the interface of multicast")?;
            }
        } else {
            socket.set_multicast_hops_v6(ttl.into()).doing("set the hops of multicast")?;
        }
    }
    Ok(())
}

/// Enables UDP GSO with the flow's message size. Called after the handshake, whose messages can be longer than the flow's.
pub(crate) fn segment(socket: &Socket, spec: &Spec) -> Result<()> {
    let size = spec.asked.message_bytes as i32;
    option::set(socket, libc::SOL_UDP, option::UDP_SEGMENT, size).doing("ask for UDP_SEGMENT")
}

/// Returns the unspecified address of the same family as `family_of`, with this port.
pub(crate) fn any(family_of: IpAddr, port: u16) -> SocketAddr {
    match family_of {
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port),
        IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
    }
}

/// Makes the socket block, with a time-out of [`CALL_TIMEOUT`] for each call.
pub(crate) fn set_timeouts(socket: &Socket) -> Result<()> {
    socket.set_nonblocking(false).doing("make the socket block")?;
    socket.set_read_timeout(Some(CALL_TIMEOUT)).doing("set the receive time-out")?;
    socket.set_write_timeout(Some(CALL_TIMEOUT)).doing("set the send time-out")
}

/// Returns whether a call failed only because it timed out or was interrupted.
#[inline]
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn address(address: io::Result<socket2::SockAddr>) -> Value {
    json!(address.ok().and_then(|address| address.as_socket()).map(|address| address.to_string()))
}

/// Returns the options of a connected socket, as read back from the kernel.
pub(crate) fn granted(socket: &Socket, spec: &Spec) -> Value {
    let mut all = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            all.insert(name.to_owned(), value);
        }
    };
    let local = socket.local_addr();
    let v4 = local.as_ref().is_ok_and(socket2::SockAddr::is_ipv4);
    put("local", address(local));
    put("peer", address(socket.peer_addr()));
    // The kernel doubles the requested size for its bookkeeping, and reports the doubled value (`man 7 socket`).
    put("send_buffer_bytes", json!(socket.send_buffer_size().ok()));
    put("receive_buffer_bytes", json!(socket.recv_buffer_size().ok()));
    let dscp = if v4 { socket.tos_v4() } else { socket.tclass_v6() };
    put("dscp", json!(dscp.ok().map(|tos| tos >> 2)));
    let ttl = if v4 { socket.ttl_v4() } else { socket.unicast_hops_v6() };
    put("ttl", json!(ttl.ok()));
    put("priority", json!(option::get(socket, libc::SOL_SOCKET, libc::SO_PRIORITY).ok()));
    let path = if v4 { (libc::SOL_IP, libc::IP_MTU) } else { (libc::SOL_IPV6, libc::IPV6_MTU) };
    put("path_mtu_bytes", json!(option::get(socket, path.0, path.1).ok()));
    let rate = option::get(socket, libc::SOL_SOCKET, 47).ok().map(i64::from);
    put("max_pacing_bytes_per_s", json!(rate.filter(|rate| *rate >= 0)));
    if spec.udp {
        put("protocol", json!("udp"));
        if spec.role == Role::Send {
            put("udp_segment_bytes", json!(option::get(socket, libc::SOL_UDP, option::UDP_SEGMENT).ok()));
        } else {
            put("udp_gro", json!(option::get(socket, libc::SOL_UDP, option::UDP_GRO).ok().map(|on| on != 0)));
        }
        return Value::Object(all);
    }
    let name = socket.tcp_congestion().ok();
    let name = name.map(|name| String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned());
    put("congestion", json!(name));
    put("mss_bytes", json!(socket.tcp_mss().ok()));
    put("nodelay", json!(socket.tcp_nodelay().ok()));
    let mptcp = spec.asked.mptcp.then(|| mptcp(socket)).flatten();
    put("protocol", json!(if mptcp.is_some() { "mptcp" } else { "tcp" }));
    if spec.asked.mptcp {
        put("mptcp_subflows", json!(mptcp.unwrap_or(0)));
    }
    Value::Object(all)
}

/// Returns the number of subflows of an MPTCP connection, including the first; `None` if it fell back to TCP.
fn mptcp(socket: &Socket) -> Option<u64> {
    let mut info = [0; 64];
    let length = option::get_bytes(socket, option::SOL_MPTCP, option::MPTCP_INFO, &mut info).ok()?;
    // `struct mptcp_info`: `mptcpi_subflows` (byte 0) excludes the first subflow; bit 0 of `mptcpi_flags` (byte 8) marks a fall-back.
    let flags = u32::from_ne_bytes(info[8..12].try_into().expect("4 bytes"));
    (length >= 12 && flags & 1 == 0).then(|| u64::from(info[0]) + 1)
}
