//! Network interfaces of this host.

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Address {
    pub(crate) interface: String,
    pub(crate) address: IpAddr,
    pub(crate) prefix: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<u64>,
}

/// Returns the addresses of all interfaces that are up.
pub(crate) fn addresses() -> Vec<Address> {
    let mut list = std::ptr::null_mut();
    // SAFETY: the call creates a list that is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Vec::new();
    }
    let mut addresses = Vec::new();
    let mut next: *const libc::ifaddrs = list;
    while !next.is_null() {
        // SAFETY: the pointer is a node of the list that getifaddrs created.
        let node = unsafe { &*next };
        next = node.ifa_next;
        if node.ifa_flags & libc::IFF_UP as libc::c_uint == 0 {
            continue;
        }
        // SAFETY: addresses and masks in the list are null or complete socket addresses of their family.
        let (address, mask) = unsafe { (ip(node.ifa_addr), ip(node.ifa_netmask)) };
        let Some(address) = address else { continue };
        // SAFETY: the name is a C string of the list.
        let interface = unsafe { CStr::from_ptr(node.ifa_name) }.to_string_lossy().into_owned();
        let prefix = match mask {
            Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
            Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
            None => 0,
        };
        let mtu = std::fs::read_to_string(format!("/sys/class/net/{interface}/mtu"));
        let mtu = mtu.ok().and_then(|text| text.trim().parse().ok());
        addresses.push(Address { interface, address, prefix, mtu });
    }
    // SAFETY: getifaddrs created the list, it is freed once, and no pointer into it remains.
    unsafe { libc::freeifaddrs(list) };
    addresses
}

/// # Safety
/// `address` is null or points to a whole socket address of its family.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the pointer is not null. Every socket address begins with its family, and the caller guarantees the rest.
    unsafe {
        match libc::c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)).into())
            }
            libc::AF_INET6 => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

/// Returns the index of an interface.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(name).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: the name is a C string.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

/// Opens a packet socket that receives the IPv4 packets arriving at an interface, also those to this group's hardware address.
pub(crate) fn watch(index: u32, group: Ipv4Addr) -> io::Result<socket2::Socket> {
    let protocol = (libc::ETH_P_IP as u16).to_be();
    let protocol = socket2::Protocol::from(i32::from(protocol));
    let socket = socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::DGRAM, Some(protocol))?;
    // SAFETY: an all-zero socket address is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    // SAFETY: the address is a complete sockaddr_ll, and its length is given.
    let bound = unsafe {
        libc::bind(
            std::os::fd::AsRawFd::as_raw_fd(&socket),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if bound != 0 {
        return Err(io::Error::last_os_error());
    }
    // `struct packet_mreq`: index, type, length, address. RFC 1112 section 6.4: the address is 01-00-5E and the low 23 bits of the group.
    let [_, b, c, d] = group.octets();
    let mut request = [0; 16];
    request[..4].copy_from_slice(&index.to_ne_bytes());
    request[4..6].copy_from_slice(&(libc::PACKET_MR_MULTICAST as u16).to_ne_bytes());
    request[6..8].copy_from_slice(&6_u16.to_ne_bytes());
    request[8..14].copy_from_slice(&[0x01, 0x00, 0x5e, b & 0x7f, c, d]);
    super::option::set_bytes(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)?;
    Ok(socket)
}
