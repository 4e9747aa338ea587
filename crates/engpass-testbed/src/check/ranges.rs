//! Values that are too small or too large, and keys that do not belong to their medium.

use engpass_model::host::Host;
use engpass_model::link::Link;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::unit::{Duration, Rate, Share, Size};
use engpass_model::wire::aal5::MAX_SDU_BYTES;
use engpass_model::wire::ip::{MAX_UDP_PAYLOAD, MIN_MTU};
use engpass_model::wire::{Encapsulation, Medium};

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::read::Draft;
use crate::tree::Node;

/// No run, start, stop or delay is longer, in picoseconds: 24 hours.
const DAY: u64 = 86_400 * SECOND;
const SECOND: u64 = 1_000_000_000_000;
/// No part of a host's cost is longer: times 65 507 bytes it stays far below 2^64 ps.
const MAX_COST: u64 = 60 * SECOND;
/// The largest IP packet: its length field has 16 bits (RFC 791 section 3.1).
const MAX_IP: u64 = 65_535;
/// The fastest line, in bit/s: cells and frames on it still take whole picoseconds.
const MAX_RATE: u64 = 1_000_000_000_000;
/// The largest write of a TCP application, in bytes.
const MAX_WRITE: u64 = 1 << 30;

pub(super) fn check(draft: &mut Draft, tree: &Node, found: &mut Vec<Diagnostic>) {
    let mut checker = Checker::new(tree, found);
    fn each<'a, 'b, T>(
        checker: &mut Checker<'b>,
        map: &'a mut indexmap::IndexMap<String, Option<T>>,
        mut check: impl FnMut(&mut Checker<'b>, &str, &T),
    ) {
        for (name, slot) in map {
            let before = checker.errors;
            if let Some(component) = slot {
                check(checker, name, component);
            }
            if checker.errors > before {
                *slot = None;
            }
        }
    }
    each(&mut checker, &mut draft.hosts, |checker, name, host| checker.host(name, host));
    each(&mut checker, &mut draft.switches, |checker, name, switch| match switch {
        Switch::Atm(switch) => {
            let path = ["switch", name, "output_buffer"];
            checker.at_least(
                &path,
                switch.output_buffer.0,
                1,
                "1 cell",
                "a port holds at least the cell it sends",
            );
        }
    });
    each(&mut checker, &mut draft.links, |checker, name, link| checker.link(name, link));
    each(&mut checker, &mut draft.circuits, |checker, name, circuit| {
        if let Some(mtu) = circuit.mtu {
            checker.circuit_mtu(name, circuit.encapsulation, mtu);
        }
        if let Some(policing) = &circuit.policing {
            checker.duration(&["circuit", name, "policing", "tolerance"], policing.tolerance, 0, DAY);
        }
    });
    let duration = draft.run.as_ref().map(|run| run.duration);
    each(&mut checker, &mut draft.traffic, |checker, name, traffic| checker.traffic(name, traffic, duration));
    if let Some(run) = &draft.run {
        let before = checker.errors;
        checker.duration(&["run", "duration"], run.duration, 1, DAY);
        if let Some(warmup) = run.warmup.filter(|warmup| *warmup >= run.duration) {
            let message = format!("the warm-up of {} leaves nothing to measure", warmup);
            let help = format!("it must be shorter than the run of {}", run.duration);
            checker.report(&["run", "warmup"], Diagnostic::error("out-of-range", message).help(help));
        }
        checker.at_least(&["run", "repeats"], u64::from(run.repeats), 1, "1", "a point is run at least once");
        if run.seed.checked_add(u64::from(run.repeats)).is_none() {
            let message = format!("the seed {} leaves no room for {} repeats", run.seed, run.repeats);
            checker.report(
                &["run", "seed"],
                Diagnostic::error("out-of-range", message).help("take a smaller seed"),
            );
        }
        if checker.errors > before {
            draft.run = None;
        }
    }
}

impl Checker<'_> {
    fn out_of_range(&mut self, path: &[&str], why: &str, help: String) {
        let key = path.last().copied().unwrap_or_default();
        let written = self.written(path);
        let message = format!(
            "`{key}` is {}: {why}",
            if written.is_empty() { "out of range" } else { written.as_str() }
        );
        self.report(path, Diagnostic::error("out-of-range", message).help(help));
    }

    fn at_least(&mut self, path: &[&str], value: u64, least: u64, text: &str, why: &str) {
        if value < least {
            self.out_of_range(path, why, format!("give at least `{text}`"));
        }
    }

    fn between(&mut self, path: &[&str], value: u64, (least, most): (u64, u64), unit: &str, why: &str) {
        if value < least || value > most {
            self.out_of_range(path, why, format!("give {least} {unit} to {most} {unit}"));
        }
    }

    fn duration(&mut self, path: &[&str], value: Duration, least: u64, most: u64) {
        if value.0 < least {
            self.out_of_range(
                path,
                "it cannot be zero",
                format!("give more than zero, at most {}", Duration(most)),
            );
        } else if value.0 > most {
            self.out_of_range(path, "that is too long", format!("give at most {}", Duration(most)));
        }
    }

    fn host(&mut self, name: &str, host: &Host) {
        for (key, cost) in [("cost", &host.cost), ("receive_cost", &host.receive_cost)] {
            for (part, value) in [
                ("per_datagram", cost.per_datagram),
                ("per_fragment", cost.per_fragment),
                ("per_byte", cost.per_byte),
                ("per_write", cost.per_write),
                ("per_segment", cost.per_segment),
                ("per_ack", cost.per_ack),
            ] {
                if let Some(value) = value {
                    self.duration(&["host", name, key, part], value, 0, MAX_COST);
                }
            }
        }
        if let Some(pauses) = &host.pauses {
            if pauses.share.0 > Share::WHOLE {
                self.out_of_range(
                    &["host", name, "pauses", "share"],
                    "no more than all messages can wait",
                    "give `0 %` to `100 %`".into(),
                );
            }
            self.duration(&["host", name, "pauses", "mean"], pauses.mean, 0, DAY);
        }
        let why = "a socket that holds nothing receives nothing";
        self.at_least(&["host", name, "receive_buffer"], host.receive_buffer.bytes(), 1, "1 B", why);
    }

    fn link(&mut self, name: &str, link: &Link) {
        let medium = self.written(&["link", name, "medium"]);
        let own_rate = link.medium.line_rate().is_none();
        match link.rate {
            None if own_rate => {
                let message = format!("`rate` is missing in `{}`", crate::path::join(&["link", name]));
                let help =
                    format!("a link of medium `{medium}` says its rate: add `rate = \"155.52 Mbit/s\"`");
                self.report(&["link", name, "rate"], Diagnostic::error("missing-key", message).help(help));
            }
            Some(_) if !own_rate => {
                let line = Rate(link.medium.line_rate().unwrap_or_default());
                let message = format!("`{medium}` has its own line rate, {line}");
                let help = "take `rate` out, or the medium `atm` or `point-to-point` for a rate of your own";
                self.report_key(
                    &["link", name, "rate"],
                    Diagnostic::error("not-allowed", message).help(help),
                );
            }
            Some(rate) => {
                self.between(&["link", name, "rate"], rate.0, (1, MAX_RATE), "bit/s", "no line has that rate")
            }
            None => {}
        }
        self.duration(&["link", name, "delay"], link.delay, 1, DAY);
        if let Some(overhead) = link.overhead {
            if link.medium != Medium::PointToPoint {
                let message = format!("`overhead` is for point-to-point links, and this one is `{medium}`");
                let help = format!("take it out: what `{medium}` adds to a packet is known");
                self.report_key(
                    &["link", name, "overhead"],
                    Diagnostic::error("not-allowed", message).help(help),
                );
            } else {
                self.between(
                    &["link", name, "overhead"],
                    overhead.0,
                    (0, MAX_IP),
                    "B",
                    "no framing adds so much",
                );
            }
        }
        if let Some(mtu) = link.mtu {
            if link.medium.is_atm() {
                let message = format!("`{medium}` carries cells: an MTU belongs to a circuit");
                let help = "take it out, and write `mtu` in `[circuit.NAME]`";
                self.report_key(&["link", name, "mtu"], Diagnostic::error("not-allowed", message).help(help));
            } else {
                let why = "IPv4 does not work with that";
                self.between(&["link", name, "mtu"], mtu.0, (MIN_MTU, MAX_IP), "B", why);
            }
        }
    }

    fn circuit_mtu(&mut self, name: &str, encapsulation: Encapsulation, mtu: Size) {
        // An AAL5 SDU holds so much, encapsulation included; padding of short frames does not matter up here.
        let most = MAX_IP.min(MAX_SDU_BYTES - 8 - (encapsulation.sdu(1_000) - 1_000));
        let why = "an IP packet, its encapsulation and the AAL5 trailer must fit one PDU";
        self.between(&["circuit", name, "mtu"], mtu.0, (MIN_MTU, most), "B", why);
    }

    fn traffic(&mut self, name: &str, traffic: &Traffic, run: Option<Duration>) {
        let path = |key| ["traffic", name, key];
        let (start, stop) = match traffic {
            Traffic::UdpStream(config) => {
                let why = "one UDP datagram cannot hold that";
                self.between(&path("message"), config.message.0, (1, MAX_UDP_PAYLOAD), "B", why);
                if let Some(rate) = config.rate {
                    let why = "no application offers that";
                    self.between(&path("rate"), rate.0, (1, MAX_RATE), "bit/s", why);
                }
                (config.start, config.stop)
            }
            Traffic::TcpStream(config) => {
                self.between(
                    &path("message"),
                    config.message.0,
                    (1, MAX_WRITE),
                    "B",
                    "no application writes that",
                );
                (config.start, config.stop)
            }
            Traffic::Cbr(config) => (config.start, config.stop),
            Traffic::OnOff(config) => {
                self.duration(&path("on"), config.on, 1, DAY);
                self.duration(&path("off"), config.off, 1, DAY);
                (config.start, config.stop)
            }
        };
        for (key, time) in [("start", start), ("stop", stop)] {
            if let Some(time) = time {
                self.duration(&path(key), time, 0, DAY);
            }
        }
        let start = start.unwrap_or(Duration(0));
        if let Some(run) = run.filter(|run| start >= *run && start.0 > 0) {
            let message = format!(
                "traffic `{name}` starts at {start}, and the run is over at {run}: nothing is ever sent"
            );
            let help = "let it start earlier or the run last longer";
            self.report(&path("start"), Diagnostic::warning("no-effect", message).help(help));
        }
        if let Some(stop) = stop.filter(|stop| *stop <= start) {
            let message = format!("it stops at {} and starts at {}: nothing is ever sent", stop, start);
            let help = "let `stop` be later than `start`";
            self.report(&path("stop"), Diagnostic::error("out-of-range", message).help(help));
        }
    }
}
