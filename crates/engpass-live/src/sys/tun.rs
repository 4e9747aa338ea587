//! TUN and TAP devices, network namespaces, and waiting for devices.

use std::ffi::c_ulong;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

/// Requests and flags of `linux/if_tun.h`.
const TUNSETIFF: c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: c_ulong = 0x4004_54d0;
const TUNSETVNETHDRSZ: c_ulong = 0x4004_54d8;
const IFF_TUN: u16 = 0x0001;
const IFF_TAP: u16 = 0x0002;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
const TUN_F_CSUM: c_ulong = 0x01;
const TUN_F_TSO4: c_ulong = 0x02;
const TUN_F_TSO6: c_ulong = 0x04;
const TUN_F_TSO_ECN: c_ulong = 0x08;
const TUN_F_USO4: c_ulong = 0x20;
const TUN_F_USO6: c_ulong = 0x40;
/// Length of the virtio header before every packet, in bytes.
const VNET_HEADER: libc::c_int = 12;

/// GSO packets that a device may give us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offloads {
    /// None: every packet is as on a wire.
    None,
    /// TCP.
    Tcp,
    /// TCP and UDP (Linux 6.2 and later).
    TcpAndUdp,
}

/// An open device.
pub(crate) struct Tun {
    pub(crate) file: File,
    pub(crate) offloads: Offloads,
    /// `/proc/net/dev` of the device's namespace.
    pub(crate) counters: File,
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter(namespace: &Path) -> io::Result<()> {
    let file = File::open(namespace)?;
    // SAFETY: the descriptor is open during the call.
    let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `struct ifreq`: a name and a union of 24 bytes.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; 24],
}

fn control(file: &File, request: c_ulong, argument: c_ulong) -> io::Result<()> {
    // SAFETY: the requests of this module take a number, or a pointer to the data that they read and write; the callers pass that.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Opens a device by name in the calling thread's namespace, and creates it if it does not exist: a TAP device with this hardware address, or a TUN device.
/// The device disappears when the file is closed, unless it is persistent.
pub(crate) fn open(name: &str, tap: Option<[u8; 6]>, offload: bool) -> io::Result<Tun> {
    use std::os::unix::fs::OpenOptionsExt;
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = Request { name: [0; libc::IFNAMSIZ], value: [0; 24] };
    request.name[..bytes.len()].copy_from_slice(bytes);
    let kind = if tap.is_some() { IFF_TAP } else { IFF_TUN };
    request.value[..2].copy_from_slice(&(kind | IFF_NO_PI | IFF_VNET_HDR).to_ne_bytes());
    control(&file, TUNSETIFF, (&raw mut request) as c_ulong)?;
    let mut length = VNET_HEADER;
    control(&file, TUNSETVNETHDRSZ, (&raw mut length) as c_ulong)?;
    let offloads = if offload { ask_offloads(&file)? } else { no_offloads(&file)? };
    if let Some(address) = tap {
        set_hardware_address(&file, &mut request, address)?;
    }
    // While it is open, the file shows the namespace of the thread that opened it.
    let counters = File::open("/proc/thread-self/net/dev")?;
    Ok(Tun { file, offloads, counters })
}

fn ask_offloads(file: &File) -> io::Result<Offloads> {
    let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    if control(file, TUNSETOFFLOAD, tcp | TUN_F_USO4 | TUN_F_USO6).is_ok() {
        return Ok(Offloads::TcpAndUdp);
    }
    control(file, TUNSETOFFLOAD, tcp).map(|()| Offloads::Tcp)
}

fn no_offloads(file: &File) -> io::Result<Offloads> {
    control(file, TUNSETOFFLOAD, 0).map(|()| Offloads::None)
}

fn set_hardware_address(file: &File, request: &mut Request, address: [u8; 6]) -> io::Result<()> {
    // `struct sockaddr`: the family, then the address.
    request.value = [0; 24];
    request.value[..2].copy_from_slice(&libc::ARPHRD_ETHER.to_ne_bytes());
    request.value[2..8].copy_from_slice(&address);
    control(file, libc::SIOCSIFHWADDR as c_ulong, std::ptr::from_mut(request) as c_ulong)
}

/// Reads one packet into `buffer` and returns its length. Fails with `WouldBlock` if there is none.
#[inline]
pub(crate) fn read(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `buffer.len()` bytes.
    let got = unsafe { libc::read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Descriptors to wait for. A negative descriptor is ignored.
pub(crate) struct Waits(Vec<libc::pollfd>);

impl Waits {
    pub(crate) fn new(files: &[RawFd]) -> Self {
        Self(files.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect())
    }

    /// Sets whether the descriptor at `index` is waited for.
    #[inline]
    pub(crate) fn listen(&mut self, index: usize, on: bool) {
        let fd = &mut self.0[index].fd;
        // The bitwise complement of a descriptor is negative, and complementing it again restores it.
        if on == (*fd < 0) {
            *fd = !*fd;
        }
    }

    /// Waits until a descriptor is readable, a signal arrives, or `ns` have passed. Returns whether one is readable.
    #[inline]
    pub(crate) fn wait(&mut self, ns: u64) -> bool {
        let time = libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the entries and the time are valid during the call; no signal mask.
        let count = unsafe {
            libc::ppoll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, &raw const time, std::ptr::null())
        };
        if count <= 0 {
            self.0.iter_mut().for_each(|one| one.revents = 0);
        }
        count > 0
    }

    /// Marks all active descriptors as readable without a poll.
    #[inline]
    pub(crate) fn suppose(&mut self) {
        self.0.iter_mut().for_each(|one| one.revents = if one.fd < 0 { 0 } else { libc::POLLIN });
    }

    /// Returns whether the descriptor at `index` was readable when [`Self::wait`] returned.
    #[inline]
    pub(crate) fn is_ready(&self, index: usize) -> bool {
        self.0[index].revents != 0
    }
}
