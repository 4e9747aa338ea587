//! Finds traffic that agents on real hosts cannot produce. `measure` and `emulate` reject it; the model accepts it.

use std::collections::BTreeMap;

use engpass_model::range_errors::RangeErrors;
use engpass_model::source::Traffic;
use engpass_model::source::agent_limits::{LONGEST, MOST_FLOWS, MOST_NAME, SEGMENT};
use engpass_model::unit::Duration;

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::findings::Findings;
use crate::reported::ReportedValues;
use crate::testbed::Testbed;
use crate::tree::{Node, shortened};

/// Checks a testbed that has no errors.
pub(crate) fn check(testbed: &Testbed, tree: &Node, found: &mut Findings) {
    let checker = &mut Checker::new(tree, found);
    for (name, traffic) in &testbed.traffic {
        let mut errors = RangeErrors::default();
        traffic.check_agents(&mut errors);
        checker.complain_as("not-live", &ReportedValues::default(), &["traffic", name], errors);
        segment_size(checker, testbed, name);
        if name.len() > MOST_NAME && is_measured(testbed, traffic) {
            let message = format!(
                "traffic `{}` has a name of {} bytes, but agents accept at most {MOST_NAME}",
                shortened(name),
                name.len()
            );
            let found = Diagnostic::error("not-live", message).help("give it a shorter name");
            checker.report_key(&["traffic", name], found);
        }
    }
    if testbed.run.most() > LONGEST {
        let message =
            format!("a run lasts up to {}, but agents send for at most {LONGEST}", testbed.run.most());
        let help = "shorten `duration`, or `longest` if there is a `precision`";
        checker.report(&["run", "duration"], Diagnostic::error("not-live", message).help(help));
    }
    starts(checker, testbed);
    flows_per_host(checker, testbed);
    memberships(checker, testbed);
}

/// Reports events of multicast receivers, because an agent joins its group before a run and leaves it afterwards.
fn memberships(checker: &mut Checker<'_>, testbed: &Testbed) {
    for (name, event) in testbed.events.iter().filter(|(_, event)| event.is_of_member()) {
        let message = format!(
            "event `{name}` lets `{}` join or leave during a run, but agents are members for the whole run",
            event.target
        );
        let help = "remove the event, or run it with `--engine simulate` or `--engine limit`";
        let found = Diagnostic::error("not-live", message).help(help);
        checker.report(&["event", name, "traffic"], found);
    }
}

/// Returns true if the file mentions real hosts: it says how to reach one, or sets options that only real hosts use.
pub(crate) fn are_meant(testbed: &Testbed) -> bool {
    testbed.hosts.values().any(|host| host.reach.is_some())
        || testbed.traffic.values().any(|traffic| traffic.live().is_some_and(|live| !live.is_default()))
}

fn segment_size(checker: &mut Checker<'_>, testbed: &Testbed, name: &str) {
    let Some(own) = testbed.traffic[name].tcp() else { return };
    let (from, to) = testbed.traffic[name].ends();
    for host in [from, to] {
        let (path, mss) = match own.mss {
            Some(mss) => (["traffic", name], mss),
            None => match testbed.hosts[host].tcp.mss {
                Some(mss) => (["host", host], mss),
                None => continue,
            },
        };
        let mut errors = RangeErrors::default();
        errors.between(
            &["tcp", "mss"],
            mss.bytes(),
            SEGMENT,
            "B",
            "a Linux socket does not accept this segment size",
        );
        checker.complain_as("not-live", &ReportedValues::default(), &path, errors);
    }
}

/// Reports hosts with more flows, sent and received together, than one agent takes.
fn flows_per_host(checker: &mut Checker<'_>, testbed: &Testbed) {
    let mut flows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, traffic) in &testbed.traffic {
        if traffic.live().is_none() || !is_measured(testbed, traffic) {
            continue;
        }
        let (from, _) = traffic.ends();
        for host in traffic.receivers().into_iter().chain([from]) {
            flows.entry(host).or_default().push(name);
        }
    }
    for (host, flows) in flows.iter().filter(|(_, flows)| flows.len() > MOST_FLOWS) {
        let name = flows[MOST_FLOWS];
        let message = format!(
            "host `{host}` has {} flows, but its agent accepts at most {MOST_FLOWS}: `{name}` exceeds the limit",
            flows.len()
        );
        let help = "give one traffic several `streams`, or spread the flows over several hosts";
        checker.report_key(&["traffic", name], Diagnostic::error("not-live", message).help(help));
    }
}

/// Returns true if a traffic sends after the warm-up. Agents run no other traffic.
fn is_measured(testbed: &Testbed, traffic: &Traffic) -> bool {
    let (start, stop) = traffic.window();
    let most = testbed.run.most();
    let opened = start.max(testbed.run.warmup).unwrap_or(Duration(0));
    stop.unwrap_or(most).min(most) > opened
}

/// Reports traffic that starts at another time than other traffic of the same host, because an agent starts everything that its host sends at once.
fn starts(checker: &mut Checker<'_>, testbed: &Testbed) {
    let mut first: BTreeMap<&str, (&str, Duration)> = BTreeMap::new();
    for (name, traffic) in &testbed.traffic {
        let start = traffic.window().0.unwrap_or(Duration(0));
        if traffic.live().is_none() || start >= testbed.run.duration {
            continue;
        }
        let host = traffic.ends().0;
        let (other, before) = *first.entry(host).or_insert((name, start));
        if start != before {
            let message = format!(
                "traffic `{name}` starts at {start} and `{other}` at {before}, both at host `{host}`: an agent starts all traffic of its host at the same time"
            );
            let help = "give both the same `start`, or send them from different hosts";
            checker.report(&["traffic", name, "start"], Diagnostic::error("not-live", message).help(help));
        }
    }
}
