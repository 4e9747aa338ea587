//! Opens the devices of the hosts, each in its network namespace.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread;

use super::config::{DeviceKind, HostConfig};
use super::error::EmulateError;
use super::ethernet::hardware;
use crate::sys::tun::{self, Tun};

/// Opens all devices. A short-lived thread enters each namespace, so that this process stays in its own.
/// A TAP device gets a hardware address derived from its host's index.
pub(super) fn open(
    hosts: &[HostConfig],
    places: &[usize],
    wire_true: bool,
) -> Result<Vec<Tun>, EmulateError> {
    hosts.iter().zip(places).map(|(host, place)| open_one(host, *place, wire_true)).collect()
}

fn open_one(host: &HostConfig, place: usize, wire_true: bool) -> Result<Tun, EmulateError> {
    let opened = thread::scope(|scope| {
        let opening = scope.spawn(|| {
            tun::enter(&host.netns).map_err(|error| {
                let what = format!("host `{}`: entering `{}`", host.name, host.netns.display());
                EmulateError::system(&what, &error)
            })?;
            let tap = (host.kind == DeviceKind::Tap).then(|| hardware(place));
            tun::open(&host.device, tap, !wire_true).map_err(|error| {
                let what = format!("host `{}`: opening the device `{}`", host.name, host.device);
                EmulateError::system(&what, &error)
            })
        });
        opening.join()
    });
    opened.expect("the opening thread does not panic")
}

/// Returns the number of packets that the kernel dropped before the driver read them from a device, from `/proc/net/dev` of the device's namespace.
pub(super) fn dropped(counters: &File, device: &str) -> u64 {
    let mut text = vec![0; 1 << 16];
    let length = counters.read_at(&mut text, 0).unwrap_or(0);
    parse_dropped(&String::from_utf8_lossy(&text[..length]), device).unwrap_or(0)
}

/// Parses the line of a device, `device: rx bytes, packets, errs, drop, fifo, frame, compressed, multicast, tx bytes, packets, errs, drop, ...`. Returns the
/// last of these.
fn parse_dropped(text: &str, device: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(device).and_then(|rest| rest.strip_prefix(':')))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_drops_are_parsed_for_the_named_interface() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
                    lan1: 0 0 0 4 0 0 0 0 900 3 0 77 0 0 0 0\n   lan: 0 0 0 4 0 0 0 0 900 3 0 2501 0 0 0 0\n";
        assert_eq!(parse_dropped(text, "lan"), Some(2501));
        assert_eq!(parse_dropped(text, "lan1"), Some(77));
        assert_eq!(parse_dropped(text, "wan"), None);
    }
}
