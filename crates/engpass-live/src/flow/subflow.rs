//! The subflows of an MPTCP connection: their addresses and the kernel's TCP counters (`linux/mptcp.h`, Linux 5.16).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

use serde_json::{Value, json};

use super::tcp_info::TcpInfo;
use crate::sys::option;

/// Largest number of subflows that are read; the kernel allows eight.
const MOST: usize = 16;
/// Size of `struct mptcp_subflow_data`, a header of four words before the entries.
const HEAD: usize = 16;
/// Size of `struct mptcp_subflow_addrs`: two `sockaddr_storage`.
const ADDRESSES: usize = 256;

/// One subflow at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subflow {
    local: SocketAddr,
    remote: SocketAddr,
    info: TcpInfo,
}

impl Subflow {
    /// Returns whether the peer has acknowledged everything that was sent over the subflow.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.info.is_acknowledged()
    }
}

/// Returns the current subflows of a socket; empty if it does not use MPTCP or has fallen back to TCP.
pub(crate) fn of(socket: &impl AsRawFd) -> Vec<Subflow> {
    let addresses = told(socket, option::MPTCP_SUBFLOW_ADDRS, ADDRESSES).unwrap_or_default();
    let infos = told(socket, option::MPTCP_TCPINFO, TcpInfo::ROOM).unwrap_or_default();
    if addresses.len() != infos.len() {
        // A subflow came or went between the two calls, so their entries do not match.
        return Vec::new();
    }
    let subflow = |(addresses, info): (&Vec<u8>, &Vec<u8>)| {
        let local = address(&addresses[..addresses.len().min(128)])?;
        let remote = address(addresses.get(128..)?)?;
        Some(Subflow { local, remote, info: TcpInfo::told(info) })
    };
    addresses.iter().zip(&infos).filter_map(subflow).collect()
}

/// Reads an MPTCP socket option that returns one entry per subflow. Each entry is cut to `each` bytes.
fn told(socket: &impl AsRawFd, name: libc::c_int, each: usize) -> Option<Vec<Vec<u8>>> {
    let mut value = vec![0; HEAD + MOST * each];
    value[..4].copy_from_slice(&(HEAD as u32).to_ne_bytes());
    value[12..16].copy_from_slice(&(each as u32).to_ne_bytes());
    let length = option::get_bytes(socket, option::SOL_MPTCP, name, &mut value).ok()?;
    let word = |at: usize| u32::from_ne_bytes(value[at..at + 4].try_into().expect("4 bytes")) as usize;
    let (count, known) = (word(4), word(8).min(each));
    let parts = value.get(HEAD..length)?.chunks_exact(each).take(count);
    Some(parts.map(|part| part[..known].to_vec()).collect())
}

/// Parses a `sockaddr` of IPv4 or IPv6.
fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let address: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// Returns, for each subflow, its addresses and its counters when the window opened, when it closed, and at the end of the flow, as in results.
pub(crate) fn to_json(edges: &[Vec<Subflow>; 3]) -> Value {
    let mut ends: Vec<(SocketAddr, SocketAddr)> = Vec::new();
    for one in edges.iter().flatten() {
        if !ends.contains(&(one.local, one.remote)) {
            ends.push((one.local, one.remote));
        }
    }
    if ends.is_empty() {
        return Value::Null;
    }
    let subflow = |(local, remote): (SocketAddr, SocketAddr)| {
        let [open, close, end] = [0, 1, 2].map(|edge: usize| {
            let found = edges[edge].iter().find(|one| (one.local, one.remote) == (local, remote));
            found.map(|one| one.info.to_json())
        });
        json!({
            "local": local.to_string(),
            "remote": remote.to_string(),
            "tcp": { "open": open, "close": close, "end": end },
        })
    };
    ends.into_iter().map(subflow).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use socket2::{Domain, Protocol, Socket, Type};

    use super::*;

    #[test]
    fn kernel_socket_addresses_are_parsed() {
        let mut bytes = [0; 128];
        bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        bytes[2..8].copy_from_slice(&[0x1f, 0x90, 10, 64, 0, 1]);
        assert_eq!(address(&bytes), Some("10.64.0.1:8080".parse().unwrap()));
        bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        bytes[8..24].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
        assert_eq!(address(&bytes), Some("[::1]:8080".parse().unwrap()));
        assert_eq!((address(&[0; 128]), address(&bytes[..10])), (None, None));
    }

    #[test]
    fn tcp_connection_has_no_subflows() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(of(&sender), Vec::new());
        assert_eq!(to_json(&[Vec::new(), Vec::new(), Vec::new()]), Value::Null);
    }

    #[test]
    fn mptcp_connection_over_one_path_has_one_subflow() {
        let made = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(option::MPTCP)));
        // Not every kernel has MPTCP.
        let (Ok(listener), Ok(sender)) = (made(), made()) else { return };
        listener.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
        listener.listen(1).unwrap();
        let at = listener.local_addr().unwrap();
        sender.connect(&at).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        (&sender).write_all(&[7; 5000]).unwrap();
        receiver.read_exact(&mut [0; 5000]).unwrap();
        let [there, here] = [of(&sender), of(&receiver)];
        assert_eq!((there.len(), here.len()), (1, 1));
        assert_eq!(Some(there[0].remote), at.as_socket());
        assert_eq!((there[0].local, there[0].remote), (here[0].remote, here[0].local));
        assert!(there[0].info.get("bytes_sent") >= Some(5000), "{:?}", there[0].info.to_json());
        let told = to_json(&[Vec::new(), there.clone(), there]);
        assert_eq!(told[0]["tcp"]["open"], Value::Null);
        assert!(told[0]["tcp"]["close"]["bytes_sent"].as_u64() >= Some(5000), "{told}");
    }
}
