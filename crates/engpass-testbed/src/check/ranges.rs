//! Checks for values that are too small or too large, and keys that do not apply to the medium.
//!
//! Checks that need only the component itself are in its own file ([`RangeErrors`]).

use engpass_model::circuit::Circuit;
use engpass_model::link::{LineRate, Link};
use engpass_model::range_errors::{FASTEST, LONGEST, RangeErrors};
use engpass_model::source::Traffic;
use engpass_model::unit::{Duration, Rate, Share};
use engpass_model::wire::Medium;
use engpass_model::wire::aal5::{MAX_SDU_BYTES, TRAILER_BYTES};
use engpass_model::wire::ethernet::MAX_MTU;
use engpass_model::wire::ip::{MAX_PACKET_BYTES, MIN_MTU};
use indexmap::IndexMap;

use super::{Checker, costs, events, paths};
use crate::diagnostic::Diagnostic;
use crate::findings::Findings;
use crate::read::Draft;
use crate::reported::ReportedValues;
use crate::testbed::Run;
use crate::tree::Node;

pub(super) fn check(draft: &Draft, tree: &Node, found: &mut Findings, faulty: &ReportedValues) {
    let checker = &mut Checker::new(tree, found);
    each(checker, faulty, "host", &draft.hosts, |checker, name, host, errors| {
        host.check(errors);
        paths::host(checker, name, host);
        costs::host(checker, draft, name, host);
    });
    each(checker, faulty, "switch", &draft.switches, |_, _, switch, errors| switch.check(errors));
    each(checker, faulty, "router", &draft.routers, |_, _, router, errors| router.check(errors));
    each(checker, faulty, "link", &draft.links, |checker, name, link, errors| {
        self::link(checker, faulty, draft, (name, link), errors)
    });
    each(checker, faulty, "circuit", &draft.circuits, |_, _, circuit, errors| self::circuit(circuit, errors));
    each(checker, faulty, "tunnel", &draft.tunnels, |_, _, tunnel, errors| tunnel.check(errors));
    each(checker, faulty, "bond", &draft.bonds, |_, _, bond, errors| bond.check(errors));
    let mut duration = draft.run.as_ref().map(|run| run.duration);
    if let Some(run) = &draft.run {
        let before = checker.errors;
        let mut errors = RangeErrors::default();
        self::run(run, &mut errors);
        checker.complain(faulty, &["run"], errors);
        if checker.errors > before || faulty.within(&["run"]) {
            duration = None;
        }
    }
    each(checker, faulty, "event", &draft.events, |checker, name, event, errors| {
        event.check(duration, errors);
        events::keys(checker, faulty, name, event);
        if let Some(duration) = duration.filter(|_| !faulty.has(&["event", name, "at"])) {
            events::warn_after_end(checker, name, event, duration);
        }
    });
    each(checker, faulty, "traffic", &draft.traffic, |checker, name, traffic, errors| {
        traffic.check(errors);
        paths::traffic(checker, draft, name, errors);
        if let Some(duration) = duration.filter(|_| !faulty.has(&["traffic", name, "start"])) {
            begins_in_time(checker, name, traffic, duration);
        }
    });
}

/// Checks every component of a family.
fn each<'a, T>(
    checker: &mut Checker<'a>,
    faulty: &ReportedValues,
    family: &str,
    components: &IndexMap<String, Option<T>>,
    check: impl Fn(&mut Checker<'a>, &str, &T, &mut RangeErrors),
) {
    for (name, component) in components {
        let Some(component) = component else { continue };
        let mut errors = RangeErrors::default();
        check(checker, name, component, &mut errors);
        checker.complain(faulty, &[family, name], errors);
    }
}

/// Keys whose limits depend on another key of the same table.
const DEPENDENT: &[(&str, &str)] = &[
    ("warmup", "duration"),
    ("longest", "duration"),
    ("seed", "repeats"),
    ("stop", "start"),
    ("threshold", "output_buffer"),
    ("clp_threshold", "output_buffer"),
    ("efci_threshold", "output_buffer"),
];

impl Checker<'_> {
    /// Reports the range errors of a component at `base`, except those of values about which, or about whose dependencies, errors were reported before.
    fn complain(&mut self, faulty: &ReportedValues, base: &[&str], errors: RangeErrors) {
        self.complain_as("out-of-range", faulty, base, errors);
    }

    /// Like `complain`, with the given code of the diagnostic.
    pub(super) fn complain_as(
        &mut self,
        code: &'static str,
        faulty: &ReportedValues,
        base: &[&str],
        errors: RangeErrors,
    ) {
        let errors: Vec<_> = errors.into_iter().collect();
        let mut complained: Vec<&str> = Vec::new();
        for complaint in &errors {
            let keys = complaint.path.iter().map(|key| &**key);
            let path: Vec<&str> = base.iter().copied().chain(keys).collect();
            let key = path.last().copied().unwrap_or_default();
            let other = DEPENDENT.iter().find(|(one, _)| *one == key).map(|(_, other)| *other);
            let of_other = |other| base.iter().copied().chain([other]).collect::<Vec<&str>>();
            if faulty.has(&path)
                || other.is_some_and(|other| complained.contains(&other) || faulty.has(&of_other(other)))
            {
                continue;
            }
            complained.push(key);
            let written = self.written(&path);
            let message = match written.as_str() {
                "" => format!("`{key}` is out of range: {}", complaint.cause),
                "a list" | "a table" => format!("`{key}`: {}", complaint.cause),
                written => format!("`{key}` is {written}: {}", complaint.cause),
            };
            self.report(&path, Diagnostic::error(code, message).help(complaint.help.as_str()));
        }
    }
}

fn run(run: &Run, errors: &mut RangeErrors) {
    errors.positive(&["duration"], run.duration, LONGEST);
    if run.warmup.is_some_and(|warmup| warmup >= run.duration) {
        let help = format!("give less than the `duration` of {}", run.duration);
        errors.add(&["warmup"], "that leaves no time to measure", help);
    }
    if run.precision.is_some_and(|share| share.0 == 0 || share.0 >= Share::WHOLE) {
        errors.add(
            &["precision"],
            "the precision must be above 0 % and below 100 %",
            "give a share such as `2 %`",
        );
    }
    if run.longest.is_some_and(|longest| longest < run.duration) {
        let help = format!("give at least the `duration` of {}", run.duration);
        errors.add(&["longest"], "it is shorter than `duration`", help);
    }
    errors.at_most(&["longest"], run.longest, LONGEST);
    if run.longest.is_some() && run.precision.is_none() {
        let help = "add `precision = \"2 %\"`, or remove it: without `precision`, a run lasts for `duration`";
        errors.add(&["longest"], "it has no effect without a `precision`", help);
    }
    if run.repeats == 0 {
        errors.add(&["repeats"], "a point runs at least once", "give at least `1`");
    }
    if run.seed.checked_add(u64::from(run.repeats)).is_none() {
        let cause =
            format!("{} repeats use consecutive seeds, which would exceed the largest one", run.repeats);
        errors.add(&["seed"], cause, "use a smaller seed");
    }
}

fn link(
    checker: &mut Checker<'_>,
    faulty: &ReportedValues,
    draft: &Draft,
    (name, link): (&str, &Link),
    errors: &mut RangeErrors,
) {
    link.check(errors);
    // The medium decides which other keys are allowed, so nothing is known about them here.
    if faulty.has(&["link", name, "medium"]) {
        return;
    }
    if link.loss.is_some_and(|loss| loss.0 == Share::WHOLE) {
        let found =
            Diagnostic::warning("all-lost", "this link loses every packet, in both directions".to_owned());
        let help = "lower `loss`, or use an `[event.NAME]` if the link is to fail for a time";
        checker.report_key(&["link", name, "loss"], found.help(help).only_if_at_every_point(""));
    }
    let medium = checker.written(&["link", name, "medium"]);
    let mut not_allowed = |key: &str, message: String, help: String| {
        checker.report_key(&["link", name, key], Diagnostic::error("not-allowed", message).help(help));
    };
    if link.overhead.is_some() && link.medium != Medium::PointToPoint {
        let message = format!("`overhead` is for point-to-point links, but this one is `{medium}`");
        not_allowed("overhead", message, format!("remove it: the framing overhead of `{medium}` is known"));
    } else if let Some(overhead) = link.overhead {
        errors.between(&["overhead"], overhead.0, (0, MAX_PACKET_BYTES), "B", "the overhead is out of range");
    }
    if link.mtu.is_some() && link.medium.is_atm() {
        let message = format!("`{medium}` carries cells: an MTU belongs to a circuit");
        not_allowed("mtu", message, "remove it, and set `mtu` in `[circuit.NAME]`".into());
    } else if let Some(mtu) = link.mtu {
        let (most, cause) = match link.medium {
            Medium::PointToPoint => (MAX_PACKET_BYTES, "IPv4 does not allow this MTU"),
            _ if mtu.0 < MIN_MTU => (MAX_MTU, "IPv4 does not allow this MTU"),
            _ => (MAX_MTU, "the FCS of Ethernet does not protect frames of this length"),
        };
        errors.between(&["mtu"], mtu.0, (MIN_MTU, most), "B", cause);
    }
    let atm = link.medium.is_atm();
    if link.vlan && (atm || link.medium == Medium::PointToPoint) {
        let message = format!("`{medium}` has no VLAN tags: only Ethernet has them");
        not_allowed("vlan", message, "remove it, or give the link an Ethernet medium".into());
    }
    for (key, given) in [
        ("jitter", link.jitter.is_some()),
        ("loss", link.loss.is_some()),
        ("reorder", link.reorder.is_some()),
    ] {
        if given && atm {
            let message = format!("`{key}` is for packets, but `{medium}` carries cells");
            let help = "remove it, or set it at a link that carries frames: Ethernet or point-to-point";
            not_allowed(key, message, help.into());
        }
    }
    if link.queue.is_some() && atm {
        let message = format!("`queue` is for packets, but `{medium}` carries cells");
        let help = "remove it: set `output_buffer` and `discard` of the ATM switch, or `queue` of the router";
        not_allowed("queue", message, help.into());
    }
    match (link.medium.line_rate(), link.rate) {
        (Some(line), Some(_)) => {
            let message = format!("`{medium}` has a fixed line rate, {}", Rate(line));
            let help = "remove `rate`, or use medium `atm` or `point-to-point`, which accept any rate";
            not_allowed("rate", message, help.into());
        }
        (None, Some(rate)) => {
            // The slowest ATM rate lets a full queue drain within 49 days. Lines with frames have no such bound.
            let bounds = (if atm { 1_000 } else { 1 }, FASTEST);
            let mut check = |path: &[&'static str], rate: Rate| {
                errors.between(path, rate.0, bounds, "bit/s", "the line rate is out of range");
            };
            match rate {
                LineRate::Both(rate) => check(&["rate"], rate),
                LineRate::Each(rates) => {
                    check(&["rate", "forward"], rates.forward);
                    check(&["rate", "backward"], rates.backward);
                }
            }
        }
        (None, None) if !faulty.has(&["link", name, "rate"]) && !faulty.within(&["link", name, "rate"]) => {
            let message = format!("`rate` is missing in `{}`", crate::path::join(&["link", name]));
            let help = format!("a link of medium `{medium}` needs a rate: add `rate = \"155.52 Mbit/s\"`");
            checker.report(&["link", name, "rate"], Diagnostic::error("missing-key", message).help(help));
        }
        (_, None) => {}
    }
    if !atm && link.queue.is_some() && link.ends.iter().all(|end| draft.hosts.contains_key(end)) {
        let message =
            format!("link `{name}` joins two hosts, but only switches and routers have a queue discipline");
        let help = "remove it, or put a switch or a router between the hosts";
        checker.report_key(&["link", name, "queue"], Diagnostic::warning("no-effect", message).help(help));
    }
}

fn circuit(circuit: &Circuit, errors: &mut RangeErrors) {
    circuit.check(errors);
    if let Some(mtu) = circuit.mtu {
        // For large packets padding does not matter, so any large size shows the overhead of the encapsulation.
        let added = circuit.encapsulation.sdu(1_000) - 1_000;
        let most = MAX_PACKET_BYTES.min(MAX_SDU_BYTES - TRAILER_BYTES - added);
        let cause = "an IP packet, its encapsulation and the AAL5 trailer must fit one PDU";
        errors.between(&["mtu"], mtu.0, (MIN_MTU, most), "B", cause);
    }
    if let Some(policing) = &circuit.policing {
        errors.at_most(&["policing", "tolerance"], Some(policing.tolerance), LONGEST);
    }
}

fn begins_in_time(checker: &mut Checker<'_>, name: &str, traffic: &Traffic, run: Duration) {
    if let Some(start) = traffic.window().0.filter(|start| *start >= run && start.0 > 0) {
        let message =
            format!("traffic `{name}` starts at {start}, but the run ends at {run}: it sends nothing");
        let help = "set an earlier `start` or a longer `duration`";
        checker.report(&["traffic", name, "start"], Diagnostic::warning("no-effect", message).help(help));
    }
}
