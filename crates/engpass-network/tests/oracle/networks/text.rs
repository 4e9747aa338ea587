//! A testbed as the file that says it.

use std::fmt::{Display, Write};

use engpass_model::circuit::Category;
use engpass_model::discard::Discard;
use engpass_model::host::Cost;
use engpass_model::schedule::Schedule;
use engpass_model::shape::PolicingAction;
use engpass_model::source::Traffic;
use engpass_model::source::on_off::Lengths;
use engpass_model::switch::Switch;
use engpass_model::unit::{Basis, Duration, FillLevel, FramedRate, Share, Size};
use engpass_model::wire::{Encapsulation, Medium};
use engpass_testbed::Testbed;

/// Lines of a table; what is not given is not written.
#[derive(Default)]
struct Table(String);

impl Table {
    fn text(&mut self, key: &str, value: impl Display) {
        writeln!(self.0, "{key} = \"{value}\"").expect("a string takes everything");
    }

    fn raw(&mut self, key: &str, value: impl Display) {
        writeln!(self.0, "{key} = {value}").expect("a string takes everything");
    }

    fn duration(&mut self, key: &str, value: Option<Duration>) {
        if let Some(value) = value {
            self.text(key, ps(value));
        }
    }

    fn size(&mut self, key: &str, value: Option<Size>) {
        if let Some(value) = value {
            self.text(key, format!("{} B", value.bytes()));
        }
    }

    fn rate(&mut self, key: &str, value: FramedRate, counts: Option<Basis>) {
        self.text(key, framed(value));
        if let Some(counts) = counts {
            self.text("counts", basis(counts));
        }
    }
}

/// The file.
pub(super) fn text(testbed: &Testbed) -> String {
    let mut file = Table::default();
    file.text("name", &testbed.name);
    for (name, host) in &testbed.hosts {
        file.0 += &format!("[host.{name}]\n");
        for (key, costs) in [("cost", &host.cost), ("receive_cost", &host.receive_cost)] {
            file.raw(key, cost(costs));
        }
        if let Some(pauses) = &host.pauses {
            let (share, mean) = (percent(pauses.share), ps(pauses.mean));
            file.raw("pauses", format!("{{ share = \"{share}\", mean = \"{mean}\" }}"));
        }
        file.size("receive_buffer", Some(host.receive_buffer));
        file.size("nic_buffer", Some(host.nic_buffer));
    }
    for (name, switch) in &testbed.switches {
        let Switch::Atm(switch) = switch else { continue };
        file.0 += &format!("[switch.{name}]\nkind = \"atm\"\n");
        file.text("output_buffer", format!("{} cells", switch.output_buffer.0));
        file.raw("discard", discard(&switch.discard));
        for (key, value) in
            [("clp_threshold", switch.clp_threshold), ("efci_threshold", switch.efci_threshold)]
        {
            if let Some(value) = value {
                file.text(key, level(value));
            }
        }
        file.text("schedule", if matches!(switch.schedule, Schedule::Fifo(_)) { "fifo" } else { "priority" });
    }
    for (name, link) in &testbed.links {
        file.0 += &format!("[link.{name}]\n");
        file.raw("ends", format!("{:?}", link.ends));
        file.text("medium", medium(link.medium));
        if let Some(rate) = link.rate {
            file.text("rate", format!("{} bit/s", rate.0));
        }
        file.duration("delay", Some(link.delay));
    }
    for (name, circuit) in &testbed.circuits {
        file.0 += &format!("[circuit.{name}]\n");
        file.text("from", &circuit.from);
        file.text("to", &circuit.to);
        file.text("encapsulation", encapsulation(circuit.encapsulation));
        file.size("mtu", circuit.mtu);
        file.text("category", if circuit.category == Category::Cbr { "cbr" } else { "ubr" });
        file.raw("clp", circuit.clp);
        if let Some(shaping) = circuit.shaping {
            file.rate("shaping", shaping, circuit.counts);
        }
        if let Some(adaptive) = &circuit.adaptive {
            let mut parts =
                format!("min = \"{}\", max = \"{}\"", percent(adaptive.min), percent(adaptive.max));
            if let Some(start) = adaptive.start {
                parts += &format!(", start = \"{}\"", percent(start));
            }
            let (increase, decrease) = (percent(adaptive.increase), percent(adaptive.decrease));
            parts += &format!(", increase = \"{increase}\", decrease = \"{decrease}\"");
            file.raw("adaptive", format!("{{ {parts}, patience = {} }}", adaptive.patience));
        }
        if let Some(policing) = &circuit.policing {
            let mut parts = format!("rate = \"{}\"", framed(policing.rate));
            if let Some(counts) = policing.counts {
                parts += &format!(", counts = \"{}\"", basis(counts));
            }
            if policing.action == PolicingAction::Tag {
                parts += ", action = \"tag\"";
            }
            file.raw("policing", format!("{{ {parts}, tolerance = \"{}\" }}", ps(policing.tolerance)));
        }
    }
    for (name, traffic) in &testbed.traffic {
        file.0 += &format!("[traffic.{name}]\n");
        file.text("kind", traffic.kind());
        let (from, to) = traffic.ends();
        file.text("from", from);
        file.text("to", to);
        if let Some(circuit) = traffic.circuit() {
            file.text("circuit", circuit);
        }
        let (start, stop) = match traffic {
            Traffic::UdpStream(stream) => {
                file.size("message", Some(stream.message));
                if let Some(rate) = stream.rate {
                    file.text("rate", format!("{} bit/s", rate.0));
                }
                (stream.start, stream.stop)
            }
            Traffic::TcpStream(_)
            | Traffic::Poisson(_)
            | Traffic::RequestResponse(_)
            | Traffic::Multicast(_) => unreachable!("random networks have none of these"),
            Traffic::Cbr(cbr) => {
                file.rate("rate", cbr.rate, cbr.counts);
                (cbr.start, cbr.stop)
            }
            Traffic::OnOff(on_off) => {
                file.rate("rate", on_off.rate, on_off.counts);
                file.duration("on", Some(on_off.on));
                file.duration("off", Some(on_off.off));
                file.text("lengths", if on_off.lengths == Lengths::Fixed { "fixed" } else { "exponential" });
                (on_off.start, on_off.stop)
            }
        };
        file.duration("start", start);
        file.duration("stop", stop);
    }
    file.0 += "[run]\n";
    file.duration("duration", Some(testbed.run.duration));
    file.duration("warmup", testbed.run.warmup);
    file.raw("repeats", testbed.run.repeats);
    file.raw("seed", testbed.run.seed);
    file.0
}

fn ps(duration: Duration) -> String {
    format!("{} ps", duration.0)
}

fn level(level: FillLevel) -> String {
    match level {
        FillLevel::Cells(cells) => format!("{cells} cells"),
        FillLevel::Share(share) => percent(share),
    }
}

fn discard(discard: &Discard) -> String {
    let (threshold, z) = match discard {
        Discard::Tail(_) | Discard::Ppd(_) => return format!("\"{}\"", discard.kind()),
        Discard::Epd(epd) => (epd.threshold, None),
        Discard::EpdPpd(epd) => (epd.threshold, None),
        Discard::SelectiveDrop(drop) => (drop.threshold, Some(drop.z)),
        Discard::Fba(fba) => (fba.threshold, Some(fba.z)),
    };
    let z = z.map(|z| format!(", z = \"{}\"", percent(z))).unwrap_or_default();
    format!("{{ {} = {{ threshold = \"{}\"{z} }} }}", discard.kind(), level(threshold))
}

fn percent(share: Share) -> String {
    let unit = Share::WHOLE / 100;
    format!("{}.{:07} %", share.0 / unit, share.0 % unit)
}

fn cost(cost: &Cost) -> String {
    let parts = [
        ("per_datagram", cost.per_datagram),
        ("per_fragment", cost.per_fragment),
        ("per_byte", cost.per_byte),
    ];
    let parts = parts.iter().filter_map(|(key, value)| Some(format!("{key} = \"{}\"", ps((*value)?))));
    format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Line => "line",
        Basis::Cells => "cells",
        Basis::Payload => "payload",
    }
}

fn framed(rate: FramedRate) -> String {
    match rate {
        FramedRate::Share(share) => percent(share),
        FramedRate::CellsPerSecond(cells) => format!("{cells} cells/s"),
        FramedRate::Bits(rate, None) => format!("{} bit/s", rate.0),
        FramedRate::Bits(rate, Some(counts)) => format!("{} bit/s {}", rate.0, basis(counts)),
    }
}

fn medium(medium: Medium) -> &'static str {
    match medium {
        Medium::Oc3c => "oc-3c",
        Medium::Oc12c => "oc-12c",
        Medium::Sts1 => "sts-1",
        Medium::Ds3Plcp => "ds3",
        Medium::Ds3Direct => "ds3-direct",
        Medium::E3 => "e3",
        Medium::E3G751 => "e3-g751",
        Medium::E1 => "e1",
        Medium::Ds1 => "ds1",
        Medium::Taxi100 => "taxi-100",
        Medium::Utp25 => "25.6",
        Medium::Atm => "atm",
        _ => unreachable!("random networks have no such medium"),
    }
}

fn encapsulation(encapsulation: Encapsulation) -> &'static str {
    match encapsulation {
        Encapsulation::LlcSnap => "llc-snap",
        Encapsulation::VcMux => "vc-mux",
        Encapsulation::BridgedLlc => "bridged-llc",
        Encapsulation::BridgedVcMux => "bridged-vc-mux",
        Encapsulation::PppoaVcMux => "pppoa-vc-mux",
        Encapsulation::PppoaLlc => "pppoa-llc",
        Encapsulation::PppoeLlc => "pppoe-llc",
        Encapsulation::PppoeVcMux => "pppoe-vc-mux",
        Encapsulation::Lane => "lane",
    }
}
