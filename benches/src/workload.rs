//! The testbeds that are measured.

use engpass_testbed::{Point, Source, load};

/// The Kyoto study: a UDP stream and a CBR through one port.
pub const KYOTO: &str = include_str!("../testbeds/kyoto.toml");

/// The contended line of three hops, as [`line`] writes it.
pub const THREE_HOPS: &str = include_str!("../testbeds/three-hops.toml");

/// Two bursty streams, one of them in the first class, through one port.
pub const PORT: &str = include_str!("../testbeds/port.toml");

/// A bursty stream alone on a line of five links.
pub const GENERATOR: &str = include_str!("../testbeds/generator.toml");

/// The one point of a testbed that `overrides` leave of `variant`.
///
/// # Panics
/// When the testbed is wrong, or has more than one point.
pub fn point(text: &str, variant: &str, overrides: &[(&str, &str)]) -> Point {
    let source = Source { name: "workload.toml".into(), text: text.into() };
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let campaign = load(&source, &overrides, None).unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    assert!(campaign.axes().is_empty(), "a workload is one point: override what is swept");
    campaign.point(variant, &[]).unwrap_or_else(|wrong| panic!("{}", wrong.render(false)))
}

/// A stream across `hops` links of OC-3c, each of which it shares with an on-off stream of its own; 512 cells of buffer.
///
/// All streams come in bursts of twice the rate of the line, 32 cells in the mean, from OC-12c links. More is offered
/// than the line carries: 114 % at the first hop, less at the others, which get only what the first has let through.
pub fn line(hops: usize) -> String {
    let mut text = Line(
        "# Written by `engpass_bench::workload::line`.\n\nname = \"A contended line of OC-3c links\"\n\n"
            .into(),
    );
    let names = |what: &'static str| (1..=hops).map(move |hop| format!("{what}-{hop}"));
    for host in
        ["source".to_owned(), "sink".to_owned()].into_iter().chain(names("cross")).chain(names("drain"))
    {
        text.add(&format!("[host.{host}]\n"));
    }
    for switch in 1..=hops + 1 {
        text.switch(&format!("s{switch}"));
    }
    text.link("in", ["source", "s1"], "oc-12c", "1 us");
    for hop in 1..=hops {
        let (here, next) = (format!("s{hop}"), format!("s{}", hop + 1));
        let [cross, drain] = ["cross", "drain"].map(|what| format!("{what}-{hop}"));
        text.link(&cross, [&cross, &here], "oc-12c", "1 us");
        text.link(&format!("hop-{hop}"), [&here, &next], "oc-3c", "1 ms");
        text.link(&drain, [&next, &drain], "oc-12c", "1 us");
    }
    text.link("out", [&format!("s{}", hops + 1), "sink"], "oc-12c", "1 us");
    text.stream("foreground", ["source", "sink"], "90 us");
    for (cross, drain) in names("cross").zip(names("drain")) {
        text.stream(&cross, [&cross, &drain], "145 us");
    }
    text.add("\n[run]\nduration = \"10 s\"\n");
    text.0
}

/// The text of a line while it is written.
struct Line(String);

impl Line {
    fn add(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn switch(&mut self, name: &str) {
        self.add(&format!(
            r#"
[switch.{name}]
kind = "atm"
output_buffer = "512 cells"
schedule = "fifo"
"#
        ));
    }

    fn link(&mut self, name: &str, [from, to]: [&str; 2], medium: &str, delay: &str) {
        self.add(&format!(
            r#"
[link.{name}]
ends = ["{from}", "{to}"]
medium = "{medium}"
delay = "{delay}"
"#
        ));
    }

    fn stream(&mut self, name: &str, [from, to]: [&str; 2], off: &str) {
        self.add(&format!(
            r#"
[traffic.{name}]
kind = "on-off"
from = "{from}"
to = "{to}"
rate = "50 %"
on = "45 us"
off = "{off}"
lengths = "exponential"
"#
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The counts of engine tests are of the file; scaling is measured on what `line` writes.
    #[test]
    fn the_file_of_three_hops_is_the_line_of_three_hops() {
        assert_eq!(line(3), THREE_HOPS);
    }

    #[test]
    fn every_workload_is_a_point() {
        for hops in [1, 3, 10] {
            assert_eq!(point(&line(hops), "base", &[]).topology.links.len(), 3 * hops + 2);
        }
        for text in [PORT, GENERATOR] {
            assert!(point(text, "base", &[]).topology.flows.iter().all(|flow| flow.cells.is_some()));
        }
        let message = [("traffic.stream.message", "9 kB")];
        for variant in ["free", "congested", "shaped-16", "shaped-18"] {
            assert_eq!(point(KYOTO, variant, &message).topology.flows.len(), 2);
        }
    }
}
