//! Finds what limited a flow, from counters of the kernel.
//!
//! Each finding has evidence and a weight from 0 to 1: how near to its bound something was, or the share of time in which it held the sender back. The
//! heaviest finding is the bottleneck, the second the next bottleneck. If no finding weighs [`ENOUGH`], the bottleneck is unknown.

use engpass_model::unit::wording::grouped;
use engpass_outcome::{Bottleneck, BottleneckKind, Drop, Finding, FlowOutcome, Tcp};

use crate::answer::{End, Host, Hosts};
use crate::figures::{Ends, Figures, bottleneck};
use crate::flow::Flow;
use crate::ledgers::Usage;
use crate::text::{count, percent, rounded};

/// Least weight of a finding that makes it a bottleneck.
const ENOUGH: f64 = 0.5;
/// From this share of its time on, a busy line is full; from this share of its fair share on, a flow is limited by its link.
const NEAR_LINK: f64 = 0.9;
/// From this share on, a sender has met its schedule, and from this share of the offered load on, everything arrives.
const OFFERED: f64 = 0.98;
/// Weight of losses on the path, at most, as a share of the weight of a full line that caused them.
const JUST_BELOW: f64 = 0.99;
/// From this share of its time on, a thread is busy.
const BUSY: f64 = 0.9;
/// From this share of a line's capacity on, the payload of other flows is named.
const OTHERS: f64 = 0.01;
/// Above this share of its fair share, a flow gets "N times" its fair share; below, a percentage of it.
const MORE: f64 = 1.05;
/// From this share of the time on, other threads or the hypervisor that hold a thread's core are a finding.
const WAITED: f64 = 0.1;
/// Payload of the packets with which agents connect, in bytes.
const HEAD_BYTES: u64 = 64;

/// Evidence about a flow besides its figures.
pub(crate) struct Seen<'a> {
    pub(crate) ends: &'a Ends<'a>,
    pub(crate) hosts: &'a Hosts,
    /// The outcome of the flow in the engine `limit`.
    pub(crate) limit: Option<&'a FlowOutcome>,
    /// The lines on the path of the flow that have ledgers.
    pub(crate) lines: Vec<Usage<'a>>,
    /// The place and cause of most of its losses, if an emulated network counted them.
    pub(crate) drop: Option<&'a Drop>,
}

/// The bottleneck of a flow, the next one, and the evidence.
pub(crate) struct Explained {
    pub(crate) bottleneck: Bottleneck,
    pub(crate) next: Option<Bottleneck>,
    /// The evidence as a sentence.
    pub(crate) summary: String,
    /// All findings, the heaviest first.
    pub(crate) findings: Vec<Finding>,
}

fn finding(kind: BottleneckKind, name: Option<&str>, title: &str, weight: f64, evidence: String) -> Finding {
    Finding { bottleneck: bottleneck(kind, name, title), weight, evidence }
}

/// Finds the bottleneck of a flow and the next one.
pub(crate) fn explain(flow: &Flow<'_>, figures: &Figures<'_>, seen: &Seen<'_>) -> Explained {
    let full = full_line(figures, &seen.lines);
    let most = full.as_ref().map(|full| full.weight * JUST_BELOW);
    let mut found = Vec::new();
    found.extend(silence(flow, figures, seen.ends.first()));
    found.extend(application(flow, figures));
    found.extend(full.or_else(|| fair_share(figures, seen.limit)));
    if let Some(tcp) = &figures.flow.tcp {
        of_tcp(tcp, &mut found);
    }
    losses(flow, figures, seen, &mut found);
    for (host, end) in [(flow.sender, seen.ends.sender)].iter().chain(&seen.ends.receivers) {
        cpus(flow, host, end, &mut found);
    }
    if let Some(most) = most {
        // The queue before a full line drops packets: the line is the cause, so it must weigh more than loss.
        let on_the_way = [BottleneckKind::LossOnTheWay, BottleneckKind::LossOfFragments];
        for one in found.iter_mut().filter(|one| on_the_way.contains(&one.bottleneck.kind)) {
            one.weight = one.weight.min(most);
        }
    }
    found.sort_by(|one, other| other.weight.total_cmp(&one.weight));
    concluded(flow, found)
}

fn concluded(flow: &Flow<'_>, mut found: Vec<Finding>) -> Explained {
    let first = found.first().filter(|first| first.weight >= ENOUGH);
    let mut summary = match first {
        Some(first) => {
            let title = &first.bottleneck.title;
            let verb = if title.contains("` and `") { "limit" } else { "limits" };
            format!("{title} {verb} `{}`: {}", flow.name, first.evidence)
        }
        None => {
            format!("the bottleneck of `{}` is unknown: no measured resource was near its limit", flow.name)
        }
    };
    let next = found.get(usize::from(first.is_some()));
    if let Some(next) = next {
        summary += &format!("; next is {}: {}", next.bottleneck.title, next.evidence);
    }
    let limiting = first.map(|first| first.bottleneck.clone());
    let next = next.map(|next| next.bottleneck.clone());
    for one in &mut found {
        one.weight = rounded(one.weight, 4);
    }
    Explained {
        bottleneck: limiting.unwrap_or_else(|| bottleneck(BottleneckKind::Unknown, None, "unknown")),
        next,
        summary,
        findings: found,
    }
}

/// Finds a flow limited by its source: its schedule, a sender that falls behind it, or the kind of traffic itself.
fn application(flow: &Flow<'_>, figures: &Figures<'_>) -> Option<Finding> {
    let Some(kept) = figures.real.schedule_kept else {
        let (limit, evidence) = flow.kind.own_limit()?;
        return Some(Finding { bottleneck: limit, weight: 1.0, evidence: evidence.to_owned() });
    };
    if kept < OFFERED {
        if flow.kind.is_blocked_by_connection() {
            return None;
        }
        let weight = (1.0 - kept + ENOUGH).clamp(ENOUGH, 1.0);
        let title = format!("the sender of host `{}`", flow.sender);
        let evidence = format!("it sent at {} of the requested rate", percent(kept));
        return Some(finding(BottleneckKind::Sender, Some(flow.sender), &title, weight, evidence));
    }
    let offered = figures.flow.offered_bit_per_s;
    let came = if offered == 0.0 { 0.0 } else { figures.flow.goodput_bit_per_s / offered };
    if came < OFFERED {
        return None;
    }
    let evidence = format!("{} of the offered load arrives", percent(came.min(1.0)));
    Some(finding(BottleneckKind::Application, Some(flow.name), "the application", 1.0, evidence))
}

/// Finds a path that loses large packets: nothing arrived, though the small packets of the handshake did.
fn silence(flow: &Flow<'_>, figures: &Figures<'_>, receiver: &End) -> Option<Finding> {
    let (size, is_silent) = flow.kind.silence(figures, receiver);
    if !is_silent || figures.flow.goodput_bit_per_s != 0.0 || size <= HEAD_BYTES {
        return None;
    }
    let evidence = format!(
        "nothing arrived, although the two agents connected with packets of {HEAD_BYTES} B of payload: larger packets do not pass because a link has a smaller MTU and no ICMP message informs the sender (`engpass path` finds the MTU), or the path failed"
    );
    Some(finding(BottleneckKind::LargePackets, None, "loss of large packets", 1.0, evidence))
}

/// Finds a flow that gets its fair share of a link, by the engine `limit`.
fn fair_share(figures: &Figures<'_>, limit: Option<&FlowOutcome>) -> Option<Finding> {
    let limit = limit.filter(|limit| limit.goodput_bit_per_s != 0.0)?;
    let on_links = [BottleneckKind::Link, BottleneckKind::TokenBucket, BottleneckKind::Acknowledgements];
    let bottleneck = limit.bottleneck.as_ref().filter(|limiting| on_links.contains(&limiting.kind))?;
    let share = figures.flow.goodput_bit_per_s / limit.goodput_bit_per_s;
    if share < NEAR_LINK {
        return None;
    }
    let evidence = if share > MORE {
        format!("the flow gets {share:.1} times its fair share")
    } else {
        format!("the flow gets {} of its fair share", percent(share))
    };
    Some(Finding { bottleneck: bottleneck.clone(), weight: share.min(1.0), evidence })
}

/// Finds a line that was busy nearly all of the time, by its ledger. Of several full lines it is the busiest. If the flow loses more than 2 % of its
/// datagrams it is the last: the queue in front of that line drops them.
fn full_line(figures: &Figures<'_>, lines: &[Usage<'_>]) -> Option<Finding> {
    let full = || lines.iter().filter(|line| line.busy >= NEAR_LINK);
    let (sent, lost) = figures.sent_and_lost();
    let line = if lost as f64 / sent.max(1) as f64 > 1.0 - OFFERED {
        full().next_back()?
    } else {
        full().reduce(|busiest, line| if line.busy > busiest.busy { line } else { busiest })?
    };
    let mut evidence = format!("it is busy {} of the time", percent(line.busy));
    let own = if line.rate == 0.0 { None } else { Some(figures.flow.goodput_bit_per_s / line.rate) };
    let others = own.map_or(0.0, |own| line.delivered - own);
    if others >= OTHERS {
        evidence += &format!(", and other flows get {} of it", percent(others));
    }
    let title = format!("link `{}`", line.link);
    Some(finding(BottleneckKind::Link, Some(line.link), &title, line.busy.min(1.0), evidence))
}

/// Finds the reasons why a TCP sender waited, by their shares of its busy time, and losses.
fn of_tcp(tcp: &Tcp, found: &mut Vec<Finding>) {
    let window = tcp.receive_window_limited_share.unwrap_or(0.0);
    let buffer = tcp.send_buffer_limited_share.unwrap_or(0.0);
    let timer = tcp.timeout_share.unwrap_or(0.0);
    if window != 0.0 {
        let evidence = format!("the sender waited for it {} of the time", percent(window));
        found.push(finding(BottleneckKind::ReceiveWindow, None, "the receive window", window, evidence));
    }
    if buffer != 0.0 {
        let evidence = format!("it was too small {} of the time", percent(buffer));
        found.push(finding(BottleneckKind::SendBuffer, None, "the send buffer", buffer, evidence));
    }
    if timer != 0.0 {
        let timeouts = count(tcp.timeouts.unwrap_or(0), "timeout");
        let evidence = format!("{timeouts} took {} of the time", percent(timer));
        let title = "the retransmission timer";
        found.push(finding(BottleneckKind::RetransmissionTimer, None, title, timer, evidence));
    }
    if let Some(segments) = tcp.retransmitted_segments.filter(|segments| *segments > 0) {
        // At most 0.8: a full line whose queue drops the segments must have more weight than the losses.
        let weight = (1.0 - window - buffer - timer).max(0.0) * 0.8;
        let evidence = format!("{} lost and retransmitted", count(segments, "segment"));
        found.push(finding(
            BottleneckKind::CongestionWindow,
            None,
            "the congestion window",
            weight,
            evidence,
        ));
    }
}

/// Finds requests without an answer, or counters of the receiving host that saw the lost datagrams.
fn losses(flow: &Flow<'_>, figures: &Figures<'_>, seen: &Seen<'_>, found: &mut Vec<Finding>) {
    let on_the_way = |share: f64, evidence: String| {
        let weight = (ENOUGH + share).min(1.0);
        finding(BottleneckKind::LossOnTheWay, None, "loss on the path", weight, evidence)
    };
    let missed = figures.unanswered();
    if missed > 0 {
        let offered = figures.flow.offered_bit_per_s;
        let share = 1.0 - figures.flow.goodput_bit_per_s / if offered == 0.0 { 1.0 } else { offered };
        let evidence =
            format!("{} requests ({}) had no response within 1 s", grouped(missed), percent(share));
        found.push(on_the_way(share, evidence));
        return;
    }
    let (sent, lost) = figures.sent_and_lost();
    if lost == 0 || sent == 0 {
        return;
    }
    let are_lost = format!("{} of {} datagrams are lost", grouped(lost), grouped(sent));
    let before = found.len();
    let host = &seen.hosts[flow.receivers[0]];
    let buffers = [
        (
            BottleneckKind::ReceiverSocketBuffer,
            "the receiver's socket buffer",
            seen.ends.first().refused_by_socket(host),
        ),
        (BottleneckKind::ReceiverBacklog, "the receiver's packet backlog", host.grown.backlog_drops()),
    ];
    for (kind, title, count) in buffers.into_iter().filter(|(_, _, count)| *count > 0) {
        let weight = (ENOUGH + count as f64 / sent as f64).min(1.0);
        let evidence = format!("it overflowed {} times, and {are_lost}", grouped(count));
        found.push(finding(kind, None, title, weight, evidence));
    }
    let share = lost as f64 / sent as f64;
    let broken = failed_reassemblies(host);
    if broken > 0 {
        let evidence = format!("reassembly failed {} times, and {are_lost}", grouped(broken));
        let title = "loss of fragments";
        found.push(finding(
            BottleneckKind::LossOfFragments,
            None,
            title,
            (ENOUGH + share).min(1.0),
            evidence,
        ));
    }
    if found.len() == before {
        let evidence = match seen.drop {
            None => format!("{are_lost}, and no counter of the receiver shows them"),
            Some(drop) => {
                format!(
                    "{are_lost}, {} of them at `{}` ({})",
                    grouped(drop.datagrams),
                    drop.place,
                    drop.cause
                )
            }
        };
        found.push(on_the_way(share, evidence));
    }
}

/// Returns the number of failed reassemblies of fragments that arrived during the run. `ReasmFails` also counts fragments of an earlier run, which time out
/// within a second after it. The fragments that arrived in this run (`ReasmReqds`) are therefore an upper bound.
fn failed_reassemblies(host: &Host) -> u64 {
    let failed = |ip: &&str| host.grown.protocol(ip, "ReasmFails").min(host.grown.protocol(ip, "ReasmReqds"));
    ["Ip", "Ip6"].iter().map(failed).sum()
}

/// Finds threads that were hardly ever idle, or waited for a core. Ends that poll the clock between packets are skipped: their CPU time is mostly waiting.
fn cpus(flow: &Flow<'_>, host: &str, end: &End, found: &mut Vec<Finding>) {
    let Some((busy, waited)) = end.cpu_shares() else { return };
    if matches!(end.pacing.method.as_deref(), Some("busy" | "hybrid")) {
        return;
    }
    if waited >= WAITED {
        let evidence = format!("other threads used the core for {} of the time", percent(waited.min(1.0)));
        let title = format!("other load of host `{host}`");
        found.push(finding(BottleneckKind::OtherLoad, Some(host), &title, waited.min(1.0), evidence));
    }
    let of_end = |core: &u64| end.streams.iter().any(|stream| stream.core == Some(*core));
    let cores = || end.cores.iter().filter_map(|core| Some((core.core.filter(of_end)?, core.steal_ppm)));
    let stolen = cores().map(|(_, steal)| steal as f64 / 1e6).fold(0.0, f64::max);
    if stolen >= WAITED {
        let names: Vec<String> = cores().map(|(core, _)| core.to_string()).collect();
        let evidence = format!("it took {} of the time of core {}", percent(stolen), names.join(", "));
        let title = format!("the hypervisor of host `{host}`");
        found.push(finding(BottleneckKind::Hypervisor, Some(host), &title, stolen, evidence));
    }
    if busy >= BUSY {
        let (kind, doing) = if host == flow.sender {
            (BottleneckKind::SendingHost, "sending")
        } else {
            (BottleneckKind::ReceivingHost, "receiving")
        };
        let evidence = format!("its {doing} threads were busy {} of the time", percent(busy.min(1.0)));
        let title = format!("the CPU of host `{host}`");
        found.push(finding(kind, Some(host), &title, busy.min(1.0) * 0.95, evidence));
    }
}
