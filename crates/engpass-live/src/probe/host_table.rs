//! The measured host as a table that a testbed file can include.

use std::fmt::Write;

use engpass_model::unit::ByteRate;

use super::Report;
use super::devices::DeviceKind;
use super::packets::Calls;

/// Returns `[host.NAME]` with the measured values and comments on their origin. Values that were not measured are left out.
pub(super) fn table(report: &Report, name: &str) -> String {
    let mut text = format!(
        "# Measured by `engpass probe` {} on {}, Linux {}.\n",
        report.version, report.host.cpu, report.host.kernel
    );
    if !report.steady {
        text += "# NOT STEADY: other programs ran during the probe, or a second measurement did not confirm a figure.\n";
    }
    let bare = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
    let key = if bare && !name.is_empty() { name.to_owned() } else { serde_json::json!(name).to_string() };
    writeln!(text, "[host.{key}]").expect("writing to a string cannot fail");
    if let Some(bandwidths) = &report.bandwidths {
        let memory = bandwidths.memory(None);
        let rate = |rate: Option<ByteRate>| rate.unwrap_or(ByteRate(0)).to_string();
        let cache = memory.cache.as_ref().expect("the probe reports a cache");
        text += "# `bandwidth` is for all threads together, the other rates are for one. Set `working_set` if the buffers stay in the cache.\n# `size` is the size up to which copies were fast, not the one that the processor reports.\n";
        writeln!(
            text,
            "memory = {{ bandwidth = \"{}\", copy = \"{}\", checksum = \"{}\", cache = {{ size = \"{}\", copy = \"{}\", checksum = \"{}\" }} }}",
            memory.bandwidth,
            rate(memory.copy),
            rate(memory.checksum),
            cache.size,
            cache.copy,
            rate(cache.checksum),
        )
        .expect("writing to a string cannot fail");
    }
    let network = report.devices.iter().filter(|device| device.kind == DeviceKind::Network);
    let link = network.filter_map(|device| Some((&device.name, device.link.as_ref()?))).next();
    match link {
        Some((device, link)) => {
            let rate = ByteRate((link.payload_per_s / 1e6) as u64 * 1_000_000);
            writeln!(text, "# PCI Express of `{device}`, generation {} with {} lanes: a bound, not a measurement.\nio_bus = {{ bandwidth = \"{rate}\" }}", link.generation, link.lanes)
                .expect("writing to a string cannot fail");
        }
        None => text += "# No network device reports its bus: no `io_bus`.\n",
    }
    let datagram = report.packets.measured().and_then(|all| all.iter().find(|one| one.calls == Calls::Send));
    if let Some(one) = datagram {
        let call = report.timer.as_ref().map_or(0.0, |timer| timer.system_call);
        let ns = |ns: f64| format!("{:.0} ns", ns.max(1.0));
        text += "# A datagram over loopback, the receiver's protocol work included; a write is the bare system call.\n";
        writeln!(
            text,
            "cost = {{ per_datagram = \"{}\", per_write = \"{}\" }}",
            ns(one.cpu_us * 1e3),
            ns(call)
        )
        .expect("writing to a string cannot fail");
    }
    text
}
