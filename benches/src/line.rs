//! Chains of links, each shared by the measured stream and a cross stream: with cells and with frames.

/// A stream across `hops` OC-3c links, each shared with a separate on-off stream; buffers of 512 cells.
///
/// All streams come from OC-12c links in bursts at twice the line rate, 32 cells on average. The load at the first hop is 114 % of the line, and less
/// at later hops, which get only what the first one let through.
pub fn line(hops: usize) -> String {
    let mut text = Line(
        "# Written by `engpass_bench::line::line`.\n\nname = \"A contended line of OC-3c links\"\n\n".into(),
    );
    text.hosts(hops);
    for switch in 1..=hops + 1 {
        text.switch(&format!("s{switch}"));
    }
    text.links(hops, "medium = \"oc-12c\"\ndelay = \"1 us\"", "medium = \"oc-3c\"\ndelay = \"1 ms\"");
    text.stream("foreground", ["source", "sink"], "90 us");
    for hop in 1..=hops {
        let [cross, drain] = ["cross", "drain"].map(|what| format!("{what}-{hop}"));
        text.stream(&cross, [&cross, &drain], "145 us");
    }
    text.add("\n[run]\nduration = \"10 s\"\n");
    text.0
}

/// The same with frames: routers with queues of 64 packets and lines of 155 Mbit/s. Datagrams of 1000 bytes in packets of 1028 arrive at random
/// (Poisson), 90 Mbit/s of the stream and 60 Mbit/s of each cross stream. With headers this is 99.7 % of the first line.
pub fn frames(hops: usize) -> String {
    let mut text =
        Line("# Written by `engpass_bench::line::frames`.\n\nname = \"A line of routers\"\n\n".into());
    text.hosts(hops);
    for router in 1..=hops + 1 {
        text.add(&format!("\n[router.s{router}]\nqueue = {{ drop-tail = {{ limit = \"64 packets\" }} }}\n"));
    }
    let [edge, line] = [("622 Mbit/s", "1 us"), ("155 Mbit/s", "1 ms")].map(|(rate, delay)| {
        format!("medium = \"point-to-point\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\noverhead = \"2 B\"")
    });
    text.links(hops, &edge, &line);
    text.datagrams("foreground", ["source", "sink"], 90);
    for hop in 1..=hops {
        let [cross, drain] = ["cross", "drain"].map(|what| format!("{what}-{hop}"));
        text.datagrams(&cross, [&cross, &drain], 60);
    }
    text.add("\n[run]\nduration = \"10 s\"\n");
    text.0
}

/// Ten streams of datagrams, each between two hosts of its own, over the same `hops`, each with two links of 155 Mbit/s. Every router has the policy
/// `ecmp`. Packets of 1028 bytes arrive at random (Poisson), 100 Mbit/s in total; one link of each hop could carry them.
pub fn ways(hops: usize, ecmp: &str) -> String {
    let mut text = Line(
        "# Written by `engpass_bench::line::ways`.\n\nname = \"A line of routers that choose\"\n\n".into(),
    );
    for router in 1..=hops + 1 {
        text.add(&format!(
            "\n[router.s{router}]\necmp = \"{ecmp}\"\nqueue = {{ drop-tail = {{ limit = \"64 packets\" }} }}\n"
        ));
    }
    let [edge, line] = [("622 Mbit/s", "1 us"), ("155 Mbit/s", "1 ms")].map(|(rate, delay)| {
        format!("medium = \"point-to-point\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\noverhead = \"2 B\"")
    });
    for hop in 1..=hops {
        let (here, next) = (format!("s{hop}"), format!("s{}", hop + 1));
        for way in ["upper", "lower"] {
            text.link(&format!("{way}-{hop}"), [&here, &next], &line);
        }
    }
    let last = format!("s{}", hops + 1);
    for stream in 1..=10 {
        let [source, sink] = ["source", "sink"].map(|what| format!("{what}-{stream}"));
        text.add(&format!("\n[host.{source}]\n[host.{sink}]\n"));
        text.link(&source, [&source, "s1"], &edge);
        text.link(&sink, [&last, &sink], &edge);
        text.datagrams(&format!("stream-{stream}"), [&source, &sink], 10);
    }
    text.add("\n[run]\nduration = \"10 s\"\n");
    text.0
}

/// The text of a testbed under construction.
struct Line(String);

impl Line {
    fn add(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn hosts(&mut self, hops: usize) {
        let names = |what: &'static str| (1..=hops).map(move |hop| format!("{what}-{hop}"));
        let ends = ["source".to_owned(), "sink".to_owned()];
        for host in ends.into_iter().chain(names("cross")).chain(names("drain")) {
            self.add(&format!("[host.{host}]\n"));
        }
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

    /// Adds the lines between the nodes `s1`, `s2`, …, and the edges between them and the hosts.
    fn links(&mut self, hops: usize, edge: &str, line: &str) {
        self.link("in", ["source", "s1"], edge);
        for hop in 1..=hops {
            let (here, next) = (format!("s{hop}"), format!("s{}", hop + 1));
            let [cross, drain] = ["cross", "drain"].map(|what| format!("{what}-{hop}"));
            self.link(&cross, [&cross, &here], edge);
            self.link(&format!("hop-{hop}"), [&here, &next], line);
            self.link(&drain, [&next, &drain], edge);
        }
        self.link("out", [&format!("s{}", hops + 1), "sink"], edge);
    }

    fn link(&mut self, name: &str, [from, to]: [&str; 2], keys: &str) {
        self.add(&format!("\n[link.{name}]\nends = [\"{from}\", \"{to}\"]\n{keys}\n"));
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

    fn datagrams(&mut self, name: &str, [from, to]: [&str; 2], mbit: u64) {
        self.add(&format!(
            r#"
[traffic.{name}]
kind = "poisson"
from = "{from}"
to = "{to}"
message = "1000 B"
rate = "{mbit} Mbit/s"
"#
        ));
    }
}
