//! Carries real packets of real hosts across the simulated network, in real time. `docs/driver.md` is the contract.
//!
//! Each host of the testbed has a device in a network namespace. The [`driver`] reads the packets that hosts send and injects them into the [`network`] at
//! once. It keeps advancing the network to now, and writes packets that have arrived at the instants that the network computed. It reports its lateness
//! ([`lateness`]).
//!
//! ```text
//! device ─ read ─ packet pool ─ network ─ write batch ─ write ─ device
//!                                  │
//!                           clock, log, control
//! ```

mod address_table;
mod capture;
mod config;
mod control;
mod counts;
mod cpu_pressure;
mod devices;
mod driver;
mod error;
mod ethernet;
mod host_io;
mod idle_latency;
mod lateness;
mod log;
mod model;
mod network;
mod packet;
mod packet_pool;
mod real_time;
mod replay;
mod routers;
mod status;
#[cfg(test)]
mod tests;
mod wait_strategy;
mod write_batch;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use engpass_model::wire::icmp;
use serde_json::{Value, json};

use address_table::AddressTable;
use config::{Bed, Config, DeviceKind, EventsBegin};
use control::{ControlSocket, PendingRequest, RequestKind};
use driver::{Driver, Host};
pub use error::EmulateError;
use ethernet::Station;
use host_io::SystemIo;
use lateness::Lateness;
use log::{Log, Reading};
use model::Model;
use network::Network;
use packet::offload::{self, Offload};
use packet::{Change, HEAD, Packet};
use real_time::RealTimeGuard;
use status::About;
use wait_strategy::{Clock, WaitStrategy};

use crate::flow::Timer;
use crate::sys::signal::{Bell, Caught};
use crate::sys::thread;
use crate::sys::thread_priority::RaisedNice;
use crate::sys::tun::Offloads;
use crate::time::MILLISECOND;

/// Duration of the timer's calibration, in ns.
const CALIBRATION: u64 = 40 * MILLISECOND;
/// Version of the log's format.
const LOG_VERSION: u64 = 3;

/// Runs the driver in this thread until a `stop` request, SIGTERM or SIGINT. Returns the last status. Calls `ready` once, when everything is up.
/// `docs/driver.md` has the formats.
///
/// # Errors
/// Fails with an [`EmulateError`] before anything is up, and then leaves nothing behind.
pub fn emulate(config: &str, ready: &mut dyn FnMut(&Value)) -> Result<Value, EmulateError> {
    let config = Config::parse(config)?;
    let point = config.testbed.point()?;
    let seed = config.seed.unwrap_or(point.testbed.run.seed);
    let names: Vec<&str> = point.testbed.hosts.keys().map(String::as_str).collect();
    let (places, addresses) = config.directory(&names)?;
    let taps = config.hosts.iter().zip(&places).filter(|(host, _)| host.kind == DeviceKind::Tap);
    let segments: Vec<usize> = taps.map(|(_, place)| *place).collect();
    let mut network = Model::new(&point, seed, &segments)?;
    let about = format!("{}, seed {seed}, emulated by Engpass", point.testbed.name);
    let routers = config.routers(point.testbed.routers.keys())?;
    network.capture(&config.capture, &about, &routers)?;
    let devices = devices::open(&config.hosts, &places, config.wire_true)?;
    let bell = Bell::new().map_err(|error| EmulateError::system("making an eventfd", &error))?;
    let bell = Arc::new(bell);
    let desk = ControlSocket::open(&config.socket, Arc::clone(&bell)).map_err(|error| {
        EmulateError::system(&format!("listening at `{}`", config.socket.display()), &error)
    })?;
    let log = match &config.log {
        Some(path) => Some(create_log(path, &config, seed, &segments)?),
        None => None,
    };
    let caught = Caught::new();
    thread::exact_timers();
    // With more CPU weight this thread runs before the hosts' programs, and does not take turns with the threads that it wakes.
    let _heavy = RaisedNice::ask();
    let urgency = RealTimeGuard::ask(config.clock != Clock::Spin);
    let limit = config.limit_ns()?;
    let pace =
        WaitStrategy::choose(config.clock, Timer::calibrate(CALIBRATION), limit.saturating_mul(config.slow));
    let about = About::new(&config, &pace, &devices, seed);
    let hosts = config.hosts.iter().zip(places).zip(&devices).map(|((host, index), device)| {
        let tap = host.kind == DeviceKind::Tap;
        let station = tap.then(|| Station { device: ethernet::hardware(index) });
        Host::new(index, station, device.offloads == Offloads::TcpAndUdp)
    });
    let hosts: Vec<Host> = hosts.collect();
    let directory = AddressTable::new(addresses, network.ways(), names.len());
    let world = SystemIo::new(pace, urgency, devices, bell);
    let late = Lateness::new(limit);
    let mut driver = Driver::new(network, world, config.slow, hosts, directory, late, log);
    driver.routers = routers;
    if config.events == EventsBegin::AtOnce {
        driver.begin_events_at_once();
    }
    ready(&about.ready(&driver));
    let mut desk = Serving { desk, stopped: false };
    while !desk.stopped && !caught.any() {
        driver.turn();
        desk.serve(&mut driver, &about);
    }
    driver.end();
    let mut status = about.status(&mut driver, true);
    if let Some(captured) = driver.network.end_capture() {
        status["captured"] = captured;
    }
    Ok(status)
}

/// The control socket, and whether a request has stopped the run.
struct Serving {
    desk: ControlSocket,
    stopped: bool,
}

impl Serving {
    fn serve(&mut self, driver: &mut Driver<Model, SystemIo>, about: &About) {
        while let Some(ask) = self.desk.next() {
            self.answer(ask, driver, about);
        }
    }

    fn answer(&mut self, ask: PendingRequest, driver: &mut Driver<Model, SystemIo>, about: &About) {
        let answer = match ask.what {
            RequestKind::Status => Ok(about.status(driver, false)),
            RequestKind::Events => driver.begin_events().map(|at| json!({ "at_ps": at })),
            RequestKind::Window => Ok(json!({ "at_ps": driver.begin_window() })),
            RequestKind::EndWindow => driver
                .end_window()
                .map(|(at, outcome, late)| json!({ "at_ps": at, "outcome": outcome, "lateness": late })),
            RequestKind::Stop => {
                self.stopped = true;
                Ok(about.status(driver, true))
            }
        };
        ask.answer(answer);
    }
}

fn create_log(path: &Path, config: &Config, seed: u64, segments: &[usize]) -> Result<Log, EmulateError> {
    let header = json!({
        "engpass-log": LOG_VERSION,
        "testbed": config.testbed,
        "seed": seed,
        "slow": config.slow,
        "segments": segments,
        "hosts": config.hosts.iter().map(|host| &host.name).collect::<Vec<_>>(),
    });
    Log::create(path, &header).map_err(|error| EmulateError::file("writing", path, &error))
}

/// One segment of a packet that was read from a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment as the driver would write it without the others, virtio header first.
    pub written: Vec<u8>,
    /// The segment as on a wire, with its checksum.
    pub alone: Vec<u8>,
    /// The ICMP time-exceeded message about the segment from a router with the given addresses.
    pub exceeded: Option<Vec<u8>>,
}

/// Segments a packet as a device gave it (virtio header first) into packets as on a wire. Returns an empty list for malformed input.
pub fn cut(given: &[u8], router: &[IpAddr]) -> Vec<Cut> {
    let whole = given.split_first_chunk().and_then(|(header, bytes)| {
        let packet = Packet::read(Offload::read(header)?, bytes).ok()?;
        Some((packet, bytes))
    });
    let Some((packet, bytes)) = whole else { return Vec::new() };
    let one = |segment: u32| {
        let run = segment..segment + 1;
        let mut head = [0; offload::LENGTH + HEAD];
        let length = packet.write(bytes, run.clone(), Change::default(), &[], &mut head);
        let written = [&head[..length], &bytes[packet.payload_of(run)]].concat();
        let alone = packet.alone(bytes, segment);
        let exceeded = icmp::message(router, &alone, icmp::Error::TimeExceeded);
        Cut { written, alone, exceeded }
    };
    (0..packet.segments()).map(one).collect()
}

/// Replays the injections of a log in virtual time and compares the delivery reports. Returns JSON: `identical`, or the first difference.
///
/// # Errors
/// Fails with an [`EmulateError`] if the log cannot be read, its testbed cannot be built, a record before the first difference is damaged, or the log is
/// empty.
pub fn replay(path: &Path, interrupted: &dyn Fn() -> bool) -> Result<Value, EmulateError> {
    let file = File::open(path).map_err(|error| EmulateError::file("reading", path, &error))?;
    replay_log(path, file, interrupted)
}

/// Like [`replay()`], for a log that is already open; `path` is for messages.
///
/// # Errors
/// Like [`replay()`].
pub fn replay_log(
    path: &Path,
    log: impl Read + Seek,
    interrupted: &dyn Fn() -> bool,
) -> Result<Value, EmulateError> {
    let unreadable = |error: &io::Error| EmulateError::file("reading", path, error);
    let mut log = Reading::new(log).map_err(|error| unreadable(&error))?;
    if log.header["engpass-log"] != LOG_VERSION {
        return Err(EmulateError::config(
            format!("`{}` is not a log of this version of `emulate`", path.display()),
            "replay it with the version that wrote it",
        ));
    }
    let wrong = |what: &str| {
        EmulateError::config(
            format!("the log `{}` has no {what}", path.display()),
            "use a log that `emulate` wrote",
        )
    };
    let bed: Bed = serde_json::from_value(log.header["testbed"].clone()).map_err(|_| wrong("testbed"))?;
    let seed = log.header["seed"].as_u64().ok_or_else(|| wrong("seed"))?;
    // Logs without TAP devices may lack this field.
    let segments: Vec<usize> = serde_json::from_value(log.header["segments"].clone()).unwrap_or_default();
    let mut network = Model::new(&bed.point()?, seed, &segments)?;
    let found = replay::replay(&mut network, &mut log, interrupted).map_err(|error| unreadable(&error))?;
    let found = found.ok_or(EmulateError::Interrupted)?;
    if let Some(replay::Damage { record, why }) = &found.damage {
        let (inputs, outputs) = (found.inputs, found.outputs);
        return Err(EmulateError::config(
            format!("record {record}, at byte {}, is damaged: {why}", log.offset(*record)),
            format!(
                "records after it cannot be compared; the {inputs} inputs and {outputs} outputs before it are identical"
            ),
        ));
    }
    if found.inputs == 0 && found.outputs == 0 && found.difference.is_none() {
        let end = if found.whole { "the testbed sent nothing" } else { "it is incomplete" };
        return Err(EmulateError::config(
            format!("there is nothing to compare: the log has no packets, and {end}"),
            "use the log of a testbed that carried packets",
        ));
    }
    Ok(found.to_json(&network))
}
