//! The interface between the driver and its host: a clock, devices, and waiting. [`SystemIo`] is the real one; tests use another.

use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::cpu_pressure::Contention;
use super::idle_latency::IdleLatencyGuard;
use super::real_time::RealTimeGuard;
use super::wait_strategy::WaitStrategy;
use crate::sys::clock;
use crate::sys::signal::Bell;
use crate::sys::tun::{self, Tun, Waits};
use crate::time::MICROSECOND;

/// The driver's view of its host: a clock and devices.
pub(super) trait HostIo {
    /// Returns the time in ns of a clock that never goes back.
    fn now(&mut self) -> u64;

    /// Sets whether [`Self::wait`] includes the device of a host from now on.
    fn listen(&mut self, host: usize, on: bool);

    /// Waits until a device can be read, a request arrives, or `due` is so near that reading a device would take too long. Returns true if it waited.
    fn wait(&mut self, due: u64) -> bool;

    /// Polls only the clock until `due`, in ns. Returns the time of the last reading.
    fn until(&mut self, due: u64) -> u64;

    /// Returns whether a host's device could be read when the last wait ended.
    fn is_ready(&self, host: usize) -> bool;

    /// Reads a packet with its virtio header. Fails with `WouldBlock` if there is none.
    fn read(&mut self, host: usize, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes a packet given in pieces. The first piece starts with the virtio header.
    fn write(&mut self, host: usize, pieces: &[IoSlice<'_>]) -> io::Result<()>;
}

/// The clock and devices of this host. Devices are numbered as the hosts of the configuration.
pub(super) struct SystemIo {
    pace: WaitStrategy,
    devices: Vec<Tun>,
    waits: Waits,
    bell: Arc<Bell>,
    /// Time of the last packet after which the driver stays awake, in ns.
    last: u64,
    /// True if a packet was read or written since the last check.
    stirred: bool,
    contention: Contention,
    urgency: RealTimeGuard,
    cores: IdleLatencyGuard,
}

/// A wait longer than this (ns) counts as a sleep.
const LOOK: u64 = 3 * MICROSECOND;
/// Up to this many devices are read without asking first which of them are ready.
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

    /// Finds out which devices can be read, without waiting.
    fn glance(&mut self) {
        if self.devices.len() <= FEW {
            self.waits.suppose();
        } else {
            self.waits.wait(0);
        }
    }

    /// Returns the number of packets that the kernel dropped because the device's queue was full.
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
            // The wait ends when the instant has come, when a device is ready, or after a signal, which the caller must see. After a sleep that ends before
            // `due`, it polls again.
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
