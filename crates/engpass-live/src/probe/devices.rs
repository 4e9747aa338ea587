//! PCI Express links of devices and their throughput.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

/// Kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A network interface.
    Network,
    /// An NVMe controller.
    Nvme,
    /// A display or compute accelerator.
    Gpu,
}

/// A PCI Express link in its current state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Link {
    /// Transfer rate per lane in GT/s.
    pub gigatransfers: f64,
    /// PCI Express generation with this rate.
    pub generation: u32,
    /// Number of lanes.
    pub lanes: u32,
    /// Bytes per second in each direction, after line coding.
    pub bytes_per_s: f64,
    /// Payload bytes per second of a bulk transfer: after line coding, less 28 bytes of overhead per packet of 256 bytes.
    pub payload_per_s: f64,
    /// Whether device and slot support more lanes or a higher rate than the link uses now.
    pub below_its_best: bool,
}

/// A device with its link, or the reason why the link is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Device {
    /// Kind of the device.
    pub kind: DeviceKind,
    /// Name of the interface or controller, or PCI address.
    pub name: String,
    /// Name of the driver; empty if there is none.
    pub driver: String,
    /// The link, if known.
    pub link: Option<Link>,
    /// Reason why the link is unknown.
    pub why: Option<String>,
}

/// Bytes of header (64-bit addresses), sequence number, CRC and framing around a PCI Express packet.
const AROUND: f64 = 28.0;
/// Payload per packet in bytes: the maximum that most hosts configure.
const PAYLOAD: f64 = 256.0;

/// Lists all devices below `root` (`/`, except in tests), sorted by kind and name.
pub(super) fn devices(root: &Path) -> Vec<Device> {
    let mut found = Vec::new();
    for name in names(&root.join("sys/class/net")) {
        let folder = root.join("sys/class/net").join(&name).join("device");
        // Interfaces without a device are virtual: loopback, veth, bridges.
        if folder.exists() {
            found.push(device(DeviceKind::Network, name, &folder));
        }
    }
    for name in names(&root.join("sys/class/nvme")) {
        let folder = root.join("sys/class/nvme").join(&name).join("device");
        found.push(device(DeviceKind::Nvme, name, &folder));
    }
    for name in names(&root.join("sys/bus/pci/devices")) {
        let folder = root.join("sys/bus/pci/devices").join(&name);
        // Class 03: display controllers; 12: processing accelerators.
        if text(&folder, "class").is_some_and(|class| class.starts_with("0x03") || class.starts_with("0x12"))
        {
            found.push(device(DeviceKind::Gpu, name, &folder));
        }
    }
    found.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    found
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn text(folder: &Path, name: &str) -> Option<String> {
    fs::read_to_string(folder.join(name)).ok().map(|text| text.trim().to_owned())
}

fn device(kind: DeviceKind, name: String, folder: &Path) -> Device {
    let driver = fs::canonicalize(folder.join("driver")).ok();
    let driver =
        driver.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    // A virtual function uses the link of its physical function.
    let mut on_bus = folder.to_path_buf();
    if !on_bus.join("current_link_speed").exists() && on_bus.join("physfn").exists() {
        on_bus = on_bus.join("physfn");
    }
    let (link, why) = match link(&on_bus) {
        Ok(link) => (Some(link), None),
        Err(why) => (None, Some(why)),
    };
    Device { kind, name, driver: driver.unwrap_or_default(), link, why }
}

fn link(folder: &Path) -> Result<Link, String> {
    let none = "its bus reports no link: it is not a PCI Express device, or it is virtual";
    let speed = text(folder, "current_link_speed").ok_or(none)?;
    let lanes = text(folder, "current_link_width").and_then(|lanes| lanes.parse().ok()).unwrap_or(0);
    let rate: f64 = speed.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0);
    let (generation, coding) =
        generation(rate).ok_or_else(|| format!("its link reports an unknown speed, `{speed}`"))?;
    if lanes == 0 {
        return Err("its link reports no lanes: it is down, or it is virtual".to_owned());
    }
    let bytes = rate * 1e9 / 8.0 * coding * f64::from(lanes);
    let most =
        |name: &str| text(folder, name).and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    let below = |most: Option<f64>, now: f64| most.is_some_and(|most| most > now && most < 255.0);
    Ok(Link {
        gigatransfers: rate,
        generation,
        lanes,
        bytes_per_s: bytes,
        payload_per_s: bytes * PAYLOAD / (PAYLOAD + AROUND),
        below_its_best: below(most("max_link_speed"), rate)
            || below(most("max_link_width"), f64::from(lanes)),
    })
}

/// Returns the PCI Express generation for a rate in GT/s, and the share left by the line code: 8b/10b, 128b/130b, or for generation 6 the FLIT's 242 of 256
/// bytes.
fn generation(gigatransfers: f64) -> Option<(u32, f64)> {
    let all = [
        (2.5, 1, 0.8),
        (5.0, 2, 0.8),
        (8.0, 3, 128.0 / 130.0),
        (16.0, 4, 128.0 / 130.0),
        (32.0, 5, 128.0 / 130.0),
        (64.0, 6, 242.0 / 256.0),
    ];
    let near = all.into_iter().find(|(rate, ..)| (rate - gigatransfers).abs() < 0.1);
    near.map(|(_, generation, coding)| (generation, coding))
}

#[cfg(test)]
mod tests {
    use super::super::temp_dir::Folder;
    use super::*;

    #[test]
    fn pcie_link_bandwidths_are_read_from_sysfs() {
        let root = Folder::new(&[
            ("sys/class/net/lo/mtu", "65536\n"),
            ("sys/class/net/eth0/device/current_link_speed", "8.0 GT/s PCIe\n"),
            ("sys/class/net/eth0/device/current_link_width", "8\n"),
            ("sys/class/net/eth0/device/max_link_speed", "16.0 GT/s PCIe\n"),
            ("sys/class/net/eth0/device/max_link_width", "8\n"),
            ("sys/class/net/eth1/device/vendor", "0x1af4\n"),
            ("sys/class/nvme/nvme0/device/current_link_speed", "16.0 GT/s PCIe\n"),
            ("sys/class/nvme/nvme0/device/current_link_width", "4\n"),
            ("sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n"),
            ("sys/bus/pci/devices/0000:01:00.0/current_link_speed", "32.0 GT/s PCIe\n"),
            ("sys/bus/pci/devices/0000:01:00.0/current_link_width", "16\n"),
            ("sys/bus/pci/devices/0000:02:00.0/class", "0x020000\n"),
        ]);
        let found = devices(root.path());
        let names: Vec<_> = found.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["eth0", "eth1", "nvme0", "0000:01:00.0"]);
        let links: Vec<_> = found.iter().map(|device| device.link.as_ref()).collect();
        let eth0 = links[0].unwrap();
        assert_eq!((eth0.generation, eth0.lanes, eth0.below_its_best), (3, 8, true));
        assert!((eth0.bytes_per_s / 7.877e9 - 1.0).abs() < 1e-3, "{eth0:?}");
        assert!(found[1].why.is_some() && links[1].is_none());
        assert!((links[2].unwrap().bytes_per_s / 7.877e9 - 1.0).abs() < 1e-3);
        assert!((links[3].unwrap().bytes_per_s / 63.0e9 - 1.0).abs() < 1e-3);
        assert!(links[3].unwrap().payload_per_s < links[3].unwrap().bytes_per_s * 0.91);
    }
}
