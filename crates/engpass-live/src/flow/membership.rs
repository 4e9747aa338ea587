//! A receiver's membership in a multicast group: the times of join and leave, and of the first and last datagram.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use socket2::{InterfaceIndexOrAddress, Socket};

use super::socket;
use super::spec::Spec;
use crate::kernel_counters;
use crate::protocol_error::{Code, ErrorContext, ProtocolError, Result};
use crate::sys::{clock, device, option, send};
use crate::time::SECOND;

/// If no datagram of the group comes for this time, in ns, the leave has taken effect in the network.
const QUIET: u64 = SECOND;
/// Longest time for which a leave is watched, in ns. Three last-member queries of IGMP take less (RFC 3376 section 8).
const WATCHED: u64 = 15 * SECOND;

/// A membership, shared by the receiving thread and the requests that join and leave.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) socket: Arc<Socket>,
    pub(crate) group: SocketAddr,
    interface: Interface,
    /// Instant of the join, until the first datagram arrives; otherwise 0.
    awaited: AtomicU64,
    events: Mutex<Vec<Value>>,
    watches: Mutex<Vec<JoinHandle<Value>>>,
    over: Arc<AtomicBool>,
}

/// The local interface on which the receiver joins.
#[derive(Clone, Copy, Debug)]
struct Interface {
    index: Option<u32>,
    address: Ipv4Addr,
}

impl Interface {
    fn new(spec: &Spec) -> Result<Self> {
        let index = match &spec.asked.interface {
            Some(name) => Some(device::index(name).doing("find the interface")?),
            None => {
                let name = spec.asked.address.and_then(kernel_counters::interface_of);
                name.and_then(|name| device::index(&name).ok())
            }
        };
        let address = match spec.asked.address {
            Some(IpAddr::V4(address)) => address,
            _ => Ipv4Addr::UNSPECIFIED,
        };
        Ok(Self { index, address })
    }

    fn v4(self) -> InterfaceIndexOrAddress {
        self.index.map_or(InterfaceIndexOrAddress::Address(self.address), InterfaceIndexOrAddress::Index)
    }
}

impl Membership {
    /// Opens a socket at the group's port and joins the group if the request says so (`joined`).
    pub(crate) fn new(spec: &Spec, group: SocketAddr) -> Result<Self> {
        let own = socket::open(spec, group.ip())?;
        own.bind(&group.into()).doing("bind to the group")?;
        if group.is_ipv4() {
            // The socket receives only groups that it joined itself, not those that other sockets of this host joined.
            option::set(&own, libc::SOL_IP, libc::IP_MULTICAST_ALL, 0).doing("hear the own group alone")?;
        }
        socket::set_timeouts(&own)?;
        let bound = own.local_addr().doing("ask for the group's port")?;
        let membership = Self {
            group: bound.as_socket().expect("an IP socket has an IP address"),
            socket: Arc::new(own),
            interface: Interface::new(spec)?,
            awaited: AtomicU64::new(0),
            events: Mutex::default(),
            watches: Mutex::default(),
            over: Arc::default(),
        };
        if spec.asked.joined {
            membership.join()?;
        }
        Ok(membership)
    }

    /// Joins the group and returns the instant.
    pub(crate) fn join(&self) -> Result<Value> {
        let at = clock::now();
        let joined = match self.group.ip() {
            IpAddr::V4(group) => self.socket.join_multicast_v4_n(&group, &self.interface.v4()),
            IpAddr::V6(group) => self.socket.join_multicast_v6(&group, self.interface.index.unwrap_or(0)),
        };
        joined.map_err(|error| self.problem("join", &error))?;
        self.awaited.store(at, Ordering::Release);
        Ok(json!({ "at_ns": at }))
    }

    /// Leaves the group and returns the instant. A packet socket then watches for further datagrams of the group, if this process may open one.
    pub(crate) fn leave(&self) -> Result<Value> {
        let watch = self.watch();
        let at = clock::now();
        let left = match self.group.ip() {
            IpAddr::V4(group) => self.socket.leave_multicast_v4_n(&group, &self.interface.v4()),
            IpAddr::V6(group) => self.socket.leave_multicast_v6(&group, self.interface.index.unwrap_or(0)),
        };
        left.map_err(|error| self.problem("leave", &error))?;
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        match watch {
            Some(socket) => {
                let (group, over) = (self.group, Arc::clone(&self.over));
                let thread = std::thread::Builder::new().name("engpass-leave".into());
                watches.push(thread.spawn(move || see(&socket, group, at, &over)).doing("start a thread")?);
            }
            None => self.push(json!({ "leave_ns": at, "last_ns": null, "seen_by": null })),
        }
        Ok(json!({ "at_ns": at }))
    }

    fn problem(&self, what: &str, error: &std::io::Error) -> ProtocolError {
        let group = self.group.ip();
        match error.raw_os_error() {
            Some(libc::EADDRINUSE) => ProtocolError::new(
                Code::WrongOrder,
                format!("{what} {group}: the flow is already a member"),
                "`leave` first",
            ),
            Some(libc::EADDRNOTAVAIL) => ProtocolError::new(
                Code::WrongOrder,
                format!("{what} {group}: the flow is not a member"),
                "`join` first",
            ),
            _ => ProtocolError::system(&format!("{what} {group}"), error),
        }
    }

    fn watch(&self) -> Option<Socket> {
        match (self.group.ip(), self.interface.index) {
            (IpAddr::V4(group), Some(index)) => device::watch(index, group).ok(),
            _ => None,
        }
    }

    fn push(&self, event: Value) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    /// Records the first datagram of the flow after a join.
    #[inline]
    pub(crate) fn arrived(&self, now: u64) {
        if self.awaited.load(Ordering::Relaxed) != 0 {
            let joined = self.awaited.swap(0, Ordering::AcqRel);
            if joined != 0 {
                self.push(json!({ "join_ns": joined, "first_ns": now }));
            }
        }
    }

    /// Ends the membership and returns its joins and leaves in order of time.
    pub(crate) fn finish(&self) -> Value {
        self.over.store(true, Ordering::Relaxed);
        let watches = std::mem::take(&mut *self.watches.lock().unwrap_or_else(PoisonError::into_inner));
        watches.into_iter().filter_map(|watch| watch.join().ok()).for_each(|event| self.push(event));
        let joined = self.awaited.swap(0, Ordering::AcqRel);
        if joined != 0 {
            self.push(json!({ "join_ns": joined, "first_ns": null }));
        }
        let mut events = std::mem::take(&mut *self.events.lock().unwrap_or_else(PoisonError::into_inner));
        let when = |event: &Value| event["join_ns"].as_u64().or_else(|| event["leave_ns"].as_u64());
        events.sort_by_key(|event| when(event));
        Value::Array(events)
    }
}

/// Returns whether an IPv4 packet is a UDP datagram to this group and port.
fn is_to(group: SocketAddr, packet: &[u8]) -> bool {
    let header = packet.first().map_or(0, |byte| usize::from(byte & 15) * 4);
    let (Some(protocol), Some(destination), Some(port)) =
        (packet.get(9), packet.get(16..20), packet.get(header + 2..header + 4))
    else {
        return false;
    };
    let ip = <[u8; 4]>::try_from(destination).expect("4 bytes");
    *protocol == libc::IPPROTO_UDP as u8
        && IpAddr::from(ip) == group.ip()
        && u16::from_be_bytes([port[0], port[1]]) == group.port()
}

/// Watches for the last datagram of the group after a leave. Ends if none comes for `QUIET`, after `WATCHED`, or when the flow is over.
fn see(socket: &Socket, group: SocketAddr, left: u64, over: &AtomicBool) -> Value {
    let (mut last, mut packet) = (None, [0; 128]);
    let quiet = loop {
        let now = clock::now();
        if now >= last.unwrap_or(left) + QUIET {
            break true;
        }
        if now >= left + WATCHED || over.load(Ordering::Relaxed) {
            break false;
        }
        send::wait_readable(socket.as_raw_fd(), SECOND / 20);
        while let Ok(length) = send::receive(socket, &mut packet, libc::MSG_DONTWAIT) {
            if is_to(group, &packet[..length.min(packet.len())]) {
                last = Some(clock::now());
            }
        }
    };
    json!({ "leave_ns": left, "last_ns": last, "seen_by": "packet socket", "quiet": quiet })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_packets_are_recognized_by_address_and_port() {
        let group: SocketAddr = "239.1.2.3:5000".parse().expect("the address is valid");
        let mut packet = [0; 32];
        packet[0] = 0x45;
        packet[9] = 17;
        packet[16..20].copy_from_slice(&[239, 1, 2, 3]);
        packet[22..24].copy_from_slice(&5000_u16.to_be_bytes());
        assert!(is_to(group, &packet));
        for (at, byte) in [(9, 6), (19, 4), (23, 0)] {
            let mut other = packet;
            other[at] = byte;
            assert!(!is_to(group, &other), "{at}");
        }
        for length in 0..24 {
            assert!(!is_to(group, &packet[..length]));
        }
    }
}
