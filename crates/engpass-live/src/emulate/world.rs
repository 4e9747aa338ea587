//! What the driver asks of the world: a clock, devices, and waiting. [`SystemIo`] is the one of this host; tests have another.

use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::contention::Contention;
use super::cores::IdleLatencyGuard;
use super::pace::WaitStrategy;
use super::urgency::RealTimeGuard;
use crate::sys::clock;
use crate::sys::signal::Bell;
use crate::sys::tun::{self, Tun, Waits};
use crate::time::MICROSECOND;

/// A clock and devices.
pub(super) trait HostIo {
    /// Nanoseconds of a clock that never goes back.
    fn now(&mut self) -> u64;

    /// Whether the device of a host is waited for from now on.
    fn listen(&mut self, host: usize, on: bool);

    /// Wait until a device can be read that is listened to, somebody rings, or it is `due`, or so nearly that there is no time for another look;
    /// whether nothing could be read when it began to wait.
    fn wait(&mut self, due: u64) -> bool;

    /// Look only at the clock until it is `due`; what it says then.
    fn until(&mut self, due: u64) -> u64;

    /// Whether a host's device could be read when the last wait ended.
    fn is_ready(&self, host: usize) -> bool;

    /// Read a packet with its virtio header; `WouldBlock` where there is none.
    fn read(&mut self, host: usize, buffer: &mut [u8]) -> io::Result<usize>;

    /// Write a packet that lies in pieces, its virtio header at the beginning of the first one.
    fn write(&mut self, host: usize, pieces: &[IoSlice<'_>]) -> io::Result<()>;
}

/// Devices of this host, by the place of the host in the configuration.
pub(super) struct SystemIo {
    pace: WaitStrategy,
    devices: Vec<Tun>,
    waits: Waits,
    bell: Arc<Bell>,
    /// When a packet came or went last that the driver stays awake after, and whether one has since.
    last: u64,
    stirred: bool,
    contention: Contention,
    urgency: RealTimeGuard,
    cores: IdleLatencyGuard,
}

/// A wait that takes longer than this has slept, in nanoseconds, and not only looked.
const LOOK: u64 = 3 * MICROSECOND;
/// So many devices are read without being asked whether there is anything to read, where there is no time to ask.
const FEW: usize = 4;

impl SystemIo {
    pub(super) fn new(
        pace: WaitStrategy,
        urgency: RealTimeGuard,
        devices: Vec<Tun>,
        bell: Arc<Bell>,
    ) -> Self {
        let files: Vec<_> =
            devices.iter().map(|tun| tun.file.as_raw_fd()).chain([bell.as_raw_fd()]).collect();
        Self {
            cores: IdleLatencyGuard::new(pace.keeps_cores_awake()),
            pace,
            waits: Waits::new(&files),
            devices,
            bell,
            last: 0,
            stirred: false,
            contention: Contention::new(),
            urgency,
        }
    }

    /// There is no time to wait for devices: what could be read now.
    fn glance(&mut self) {
        if self.devices.len() <= FEW {
            self.waits.suppose();
        } else {
            self.waits.wait(0);
        }
    }

    /// Packets that the kernel has dropped because a device's own queue was full, by device.
    pub(super) fn dropped(&self, device: usize, name: &str) -> u64 {
        super::devices::dropped(&self.devices[device].counters, name)
    }
}

impl HostIo for SystemIo {
    #[inline]
    fn now(&mut self) -> u64 {
        clock::now()
    }

    #[inline]
    fn listen(&mut self, host: usize, on: bool) {
        self.waits.listen(host, on);
    }

    fn wait(&mut self, due: u64) -> bool {
        let began = clock::now();
        let mut now = began;
        loop {
            self.urgency.look(now);
            let stirred = std::mem::take(&mut self.stirred);
            if stirred {
                self.cores.stir(now);
            }
            if stirred && self.pace.stays_awake() && !self.contention.is_some(now) {
                self.last = now;
            }
            if WaitStrategy::is_near(now, due) {
                self.glance();
                return false;
            }
            let nap = self.pace.nap(now, due, self.last);
            if nap > 0 {
                self.cores.rest(now);
            }
            let ready = self.waits.wait(nap);
            if ready && self.waits.is_ready(self.devices.len()) {
                self.bell.hush();
            }
            // A wait ends when it is due, when there is something to do, or by a signal, which somebody is to see; a nap that ends before it
            // is due is followed by looks.
            let looked = std::mem::replace(&mut now, clock::now());
            if ready || now >= due || now < looked + nap {
                return now > began + LOOK;
            }
        }
    }

    #[inline]
    fn until(&mut self, due: u64) -> u64 {
        loop {
            let now = clock::now();
            if now >= due {
                return now;
            }
            std::hint::spin_loop();
        }
    }

    #[inline]
    fn is_ready(&self, host: usize) -> bool {
        self.waits.is_ready(host)
    }

    #[inline]
    fn read(&mut self, host: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let got = tun::read(&self.devices[host].file, buffer);
        self.stirred |= got.is_ok();
        got
    }

    #[inline]
    fn write(&mut self, host: usize, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        self.stirred = true;
        (&self.devices[host].file).write_vectored(pieces).map(|_| ())
    }
}
