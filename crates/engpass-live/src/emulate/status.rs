//! The status of the driver, as JSON.

use serde_json::{Value, json};

use super::config::Config;
use super::driver::Driver;
use super::host_io::SystemIo;
use super::model::Model;
use super::network::Network;
use super::wait_strategy::WaitStrategy;
use crate::sys::thread;
use crate::sys::tun::{Offloads, Tun};

/// Settings of the driver that do not change while it runs.
pub(super) struct About {
    names: Vec<String>,
    devices: Vec<String>,
    clock: Value,
    offloads: Vec<&'static str>,
    slow: u64,
    seed: u64,
}

impl About {
    pub(super) fn new(config: &Config, pace: &WaitStrategy, devices: &[Tun], seed: u64) -> Self {
        let offloads = devices.iter().map(|device| match device.offloads {
            Offloads::None => "none",
            Offloads::Tcp => "tcp",
            Offloads::TcpAndUdp => "tcp and udp",
        });
        Self {
            names: config.hosts.iter().map(|host| host.name.clone()).collect(),
            devices: config.hosts.iter().map(|host| host.device.clone()).collect(),
            clock: pace.to_json(),
            offloads: offloads.collect(),
            slow: config.slow,
            seed,
        }
    }

    /// Returns the line that announces that the driver is up.
    pub(super) fn ready(&self, driver: &Driver<Model, SystemIo>) -> Value {
        let hosts = self.names.iter().zip(&self.devices).zip(&self.offloads);
        let hosts: Vec<Value> = hosts
            .map(|((name, device), offloads)| json!({ "name": name, "device": device, "offloads": offloads }))
            .collect();
        let ways: Vec<Value> = (driver.network.ways().iter())
            .map(|way| json!({ "name": way.name, "mtu": way.mtu, "routers": way.hops }))
            .collect();
        json!({
            "event": "ready",
            "process": std::process::id(),
            "seed": self.seed,
            "slow": self.slow,
            "clock": self.clock,
            "hosts": hosts,
            "ways": ways,
        })
    }

    /// Returns the status since the start of the run. With `all`, it has the full histogram of the lateness.
    pub(super) fn status(&self, driver: &mut Driver<Model, SystemIo>, all: bool) -> Value {
        let mut hosts = Vec::new();
        for (place, name) in self.names.iter().enumerate() {
            let mut host = json!({ "name": name, "backlog": driver.backlog(place) });
            let counts = driver.counts.hosts[place].to_json();
            if let (Value::Object(host), Value::Object(counts)) = (&mut host, counts) {
                host.extend(counts);
                let dropped = driver.world.dropped(place, &self.devices[place]);
                host.insert("dropped_by_kernel".to_owned(), json!(dropped));
            }
            hosts.push(host);
        }
        let links = driver.network.seen();
        let ways = driver.network.ways();
        let lost = ways.iter().zip(&driver.counts.lost).filter(|(_, lost)| **lost > 0);
        let lost: Vec<Value> = lost.map(|(way, lost)| json!({ "way": way.name, "packets": lost })).collect();
        let cpu = thread::used();
        json!({
            "at_ps": driver.reached(),
            "slow": self.slow,
            "clock": self.clock["mode"],
            "hosts": hosts,
            "lost": lost,
            "links": links,
            "inside": driver.kept(),
            "lateness": driver.late.to_json(all),
            "cpu_ns": cpu.user_ns + cpu.system_ns,
            "log": driver.log.as_ref().map(super::log::Log::to_json),
        })
    }
}
