//! Tests of the driver with an artificial clock and artificial devices.

mod groups;
mod law;
mod messages;
mod turns;
mod world;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use super::address_table::AddressTable;
use super::driver::{Driver, Host};
use super::lateness::Lateness;
use super::log::Log;
use super::network::Network;
use super::packet::offload::{Kind, Offload};
use world::Fake;

/// Returns the address of a host.
fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host as u8 + 1)
}

/// Creates a driver for the hosts of `world`, with TUN devices.
fn driver<N: Network>(network: N, world: Fake, slow: u64, log: Option<Log>) -> Driver<N, Fake> {
    let hosts = world.scripts.len();
    let addresses: BTreeMap<IpAddr, usize> = (0..hosts).map(|host| (address(host).into(), host)).collect();
    let directory = AddressTable::new(addresses, network.ways(), hosts);
    let hosts = (0..hosts).map(|index| Host::new(index, None, true)).collect();
    Driver::new(network, world, slow, hosts, directory, Lateness::new(1_000_000), log)
}

/// Builds a UDP datagram, or several in a GSO packet, as a device gives it. The payload of each segment begins with a number.
fn datagrams(from: usize, to: usize, number: u32, segments: usize, size: usize) -> Vec<u8> {
    let payload: Vec<u8> = (0..segments)
        .flat_map(|segment| {
            let mut part = vec![0x55; size];
            part[..4].copy_from_slice(&(number + segment as u32).to_be_bytes());
            part
        })
        .collect();
    let length = 28 + payload.len();
    let mut bytes = vec![0x45, 2];
    bytes.extend((length as u16).to_be_bytes());
    bytes.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
    bytes.extend(address(from).octets());
    bytes.extend(address(to).octets());
    bytes.extend([0x10, 0, 0x20, 0]);
    bytes.extend(((8 + payload.len()) as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    let kind = if segments > 1 { Kind::Udp } else { Kind::Whole };
    let size = if segments > 1 { size as u16 } else { 0 };
    let offload = Offload { checksum: Some((20, 6)), kind, ecn: false, head: 28, size };
    [&offload.write()[..], &bytes].concat()
}

/// Returns the numbers in the segments of a written packet.
fn numbers(offload: &Offload, bytes: &[u8]) -> Vec<u32> {
    let payload = &bytes[28..];
    let size = if offload.size > 0 { usize::from(offload.size) } else { payload.len() };
    let first = |part: &[u8]| u32::from_be_bytes(part[..4].try_into().expect("four bytes"));
    payload.chunks(size).map(first).collect()
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("engpass-emulate-{name}-{}", std::process::id()))
}
