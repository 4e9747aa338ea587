//! Checks captures with tshark: nothing is malformed, no checksum is bad, and number and instants of packets match the run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use engpass_capture::Limit;

use crate::reader::{Block, read};
use crate::testbeds::{BONDS, CIRCUIT, ETHERNET, KYOTO, PARTED, TUNNELS, WAN};
use crate::{capture, sent};

/// Checksums are checked only on demand.
const PREFERENCES: [&str; 3] =
    ["ip.check_checksum:TRUE", "udp.check_checksum:TRUE", "tcp.check_checksum:TRUE"];

/// Fields to print of every packet. A checksum status of 0 is bad. Expert severities from [`ERROR`] on are errors.
const FIELDS: [&str; 10] = [
    "frame.time_epoch",
    "_ws.malformed",
    "ip.checksum.status",
    "udp.checksum.status",
    "tcp.checksum.status",
    "_ws.expert.severity",
    "frame.protocols",
    "udp.length",
    "udp.dstport",
    "eth.type",
];
const ERROR: u64 = 0x80_0000;

fn is_there() -> bool {
    let there = Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("skipped: there is no tshark");
    }
    there
}

/// A file in the test's own directory.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
        std::fs::write(&path, bytes).expect("the test's directory is writable");
        Self(path)
    }

    /// Returns tshark's output for the file with these arguments.
    fn tshark(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tshark");
        command.arg("-n").arg("-r").arg(&self.0);
        for preference in PREFERENCES {
            command.args(["-o", preference]);
        }
        let output = command.args(arguments).env("LC_ALL", "C").output().expect("tshark is installed");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).expect("tshark prints text")
    }

    fn fields(&self, fields: &[&str]) -> Vec<String> {
        let mut arguments = vec!["-T", "fields"];
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        self.tshark(&arguments).lines().map(str::to_owned).collect()
    }

    /// Returns the number of packets that pass each display filter. A start of tshark takes longer than its work.
    fn counts<const FILTERS: usize>(&self, filters: [&str; FILTERS]) -> [usize; FILTERS] {
        let table = self.tshark(&["-q", "-z", &format!("io,stat,0,{}", filters.join(","))]);
        let row = table.lines().find(|line| line.contains(" <> ")).expect("a row for the whole time");
        // The time, then packets and bytes for each filter.
        let mut packets = row.split('|').skip(2).step_by(2);
        filters.map(|_| packets.next().and_then(|cell| cell.trim().parse().ok()).expect("a number"))
    }

    fn count(&self, filter: &str) -> usize {
        self.counts([filter])[0]
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // If this fails, the next run overwrites the file.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A file without faults, and the fields of every packet.
struct Fine {
    file: Written,
    rows: Vec<Vec<String>>,
}

impl Fine {
    /// Returns the number of packets with this value in a field, or with this protocol in `frame.protocols`.
    fn with(&self, field: &str, value: &str) -> usize {
        let column = FIELDS.iter().position(|known| *known == field).expect("the field is in `FIELDS`");
        self.rows.iter().filter(|row| row[column].split([':', ',']).any(|known| known == value)).count()
    }
}

impl std::ops::Deref for Fine {
    type Target = Written;
    fn deref(&self) -> &Written {
        &self.file
    }
}

/// Checks that a file has no faults and that tshark sees its packets at their instants.
#[track_caller]
fn fine(name: &str, bytes: &[u8]) -> Fine {
    let file = Written::new(name, bytes);
    let rows: Vec<Vec<String>> =
        file.fields(&FIELDS).iter().map(|line| line.split('\t').map(str::to_owned).collect()).collect();
    let blocks = read(bytes);
    let packets: Vec<_> = blocks.iter().filter_map(Block::packet).collect();
    assert_eq!(rows.len(), packets.len(), "{name}");
    for (number, (row, (_, at, _))) in rows.iter().zip(packets).enumerate() {
        let at = format!("{}.{:09}", at / 1_000_000_000, at % 1_000_000_000);
        let good = row[2..5].iter().flat_map(|status| status.split(',')).all(|status| status != "0");
        let severities = row[5].split(',').filter(|severity| !severity.is_empty());
        let mild = severities
            .map(|severity| severity.parse::<u64>().expect("a number"))
            .all(|severity| severity < ERROR);
        assert!(row[0] == at && row[1].is_empty() && good && mild, "{name}, packet {}: {row:?}", number + 1);
    }
    Fine { file, rows }
}

#[test]
fn tshark_reads_ethernet_captures() {
    if !is_there() {
        return;
    }
    for link in ["left", "trunk", "right"] {
        let (outcome, told, bytes) =
            capture(ETHERNET, &[], (&format!("link.{link}"), None), Limit::default());
        assert_eq!(told.packets, sent(&outcome, link));
        let file = fine(link, &bytes);
        // Routers decrement the TTL, switches do not.
        let ttl = format!("ip.src == 10.64.0.1 && ip.ttl != {}", if link == "right" { 63 } else { 64 });
        let [opening, whole, priority, dscp, other] = file.counts([
            "tcp.flags.syn == 1",
            "ip.frag_offset == 0 && ip.flags.mf == 1",
            "vlan.priority == 5",
            "ip.dsfield.dscp == 40",
            &ttl,
        ]);
        assert!(opening >= 4, "two connections open");
        let cut = file.with("udp.length", "4008");
        assert!(whole > 10 && cut > 10, "{link}: {whole} first fragments, {cut} datagrams");
        assert_eq!(
            file.with("frame.protocols", "vlan"),
            if link == "trunk" { told.packets as usize } else { 0 }
        );
        if link == "trunk" {
            assert_eq!(priority, dscp);
            assert!(priority > 10);
        }
        assert_eq!(other, 0);
    }
}

#[test]
fn tshark_reassembles_fragments_made_by_a_router() {
    if !is_there() {
        return;
    }
    let (_, told, bytes) = capture(ETHERNET, &[], ("link.right.r", None), Limit::default());
    let file = fine("cut", &bytes);
    // 4000 bytes and the header, in fragments of 976 bytes: three packets of 1480, 1480 and 1048 bytes become six.
    let [longer, fragments] = file.counts(["frame.len > 1014", "ip.flags.mf == 1 || ip.frag_offset > 0"]);
    assert_eq!(longer, 0);
    let datagrams = file.with("udp.length", "4008");
    assert!(
        datagrams > 10 && (6 * datagrams..6 * (datagrams + 2)).contains(&fragments),
        "{datagrams} {fragments}"
    );
    assert!(told.packets as usize > fragments);
}

#[test]
fn tshark_reads_captures_of_parallel_and_failing_links() {
    if !is_there() {
        return;
    }
    let mut fragments = 0;
    for link in ["one", "two", "behind", "other", "last", "out"] {
        let (outcome, told, bytes) = capture(PARTED, &[], (&format!("link.{link}"), None), Limit::default());
        assert_eq!(told.packets, sent(&outcome, link), "{link}");
        let file = fine(&format!("parted-{link}"), &bytes);
        let [seen, one_more, two_more] = file.counts([
            "ip.frag_offset > 0 || ip.flags.mf == 1",
            "ip.src == 10.64.0.1 && ip.ttl == 62",
            "ip.src == 10.64.0.1 && ip.ttl == 61",
        ]);
        assert!(seen > 5, "{link}: {seen} fragments");
        fragments += if ["one", "two", "other"].contains(&link) { seen } else { 0 };
        if link == "out" {
            // Packets over the router have passed one more router.
            assert!(one_more > 5 && two_more > 5);
            // tshark reassembles datagrams whose fragments took different paths.
            assert!(file.with("udp.length", "4008") > 5);
        }
    }
    let (_, _, bytes) = capture(PARTED, &[], ("link.in.a", None), Limit::default());
    let sent = fine("parted-in", &bytes).count("ip.frag_offset > 0 || ip.flags.mf == 1");
    assert!((fragments..fragments + 5).contains(&sent), "{sent} fragments were sent, {fragments} passed");
}

/// tshark reassembles fragments of outer packets, checks their GRE checksums and sequence numbers, and finds the packets of the hosts.
#[test]
fn tshark_reads_tunneled_packets() {
    if !is_there() {
        return;
    }
    for link in ["in", "one", "two", "cells", "out"] {
        let at = format!("link.{link}");
        // Cells of incomplete PDUs are no packets.
        let form = (link == "cells").then_some("ip");
        let (outcome, told, bytes) = capture(TUNNELS, &[], (&at, form), Limit::default());
        let file = fine(&format!("tunnels-{link}"), &bytes);
        if link != "cells" {
            assert_eq!(told.packets, sent(&outcome, link), "{link}");
        }
        let datagrams = file.with("udp.length", "4008");
        assert!(datagrams > 10, "{link}: {datagrams} datagrams");
        let ttl = if link == "cells" { 63 } else { 64 };
        let [gre, fragments, without_key, elsewhere, outer] = file.counts([
            "gre && ip.proto == 4",
            "ip.flags.mf == 1 && ip.proto == 47",
            "gre.key != 5",
            "gre && !(ip.addr == 10.64.0.3 && ip.addr == 10.64.0.5)",
            &format!("ip.proto == 47 && ip.ttl == {ttl}"),
        ]);
        if ["in", "out"].contains(&link) {
            assert_eq!((gre, fragments), (0, 0), "{link}");
            continue;
        }
        // The host sends each datagram in three packets.
        assert!(gre >= 3 * datagrams && fragments > 2 * datagrams, "{link}: {gre} and {fragments}");
        let text = file.tshark(&["-V", "-O", "gre"]);
        assert!(text.matches("Checksum: 0x").count() >= gre && text.contains("[correct]"), "{link}");
        assert!(!text.contains("incorrect"), "{link}");
        assert_eq!(without_key, 0);
        // Each direction numbers its packets from 0, one after the other.
        let fields = ["-T", "fields", "-e", "ip.src", "-e", "gre.sequence_number"];
        let read = file.tshark(&[&["-2", "-Y", "gre"], &fields[..]].concat());
        for source in ["10.64.0.3", "10.64.0.5"] {
            // The address of the outer packet comes first.
            let of_source = read.lines().filter(|line| line.starts_with(source));
            let numbers: Vec<u32> = of_source
                .map(|line| {
                    line.split('\t').next_back().and_then(|number| number.parse().ok()).expect("a number")
                })
                .collect();
            assert!(
                numbers.len() > 10 && numbers.iter().copied().eq(0..numbers.len() as u32),
                "{link}: {numbers:?}"
            );
        }
        // The routers at the ends have addresses behind those of the hosts. Each router decrements the TTL.
        assert_eq!(elsewhere, 0);
        assert!(outer > datagrams, "{link}");
    }
}

/// Keepalives of both ends, in the tunnel and outside it, on links and on a circuit.
#[test]
fn tshark_reads_keepalives() {
    if !is_there() {
        return;
    }
    let file = TUNNELS.replacen(
        "fragment = \"outer\"",
        "fragment = \"outer\"\nkeepalive = { period = \"10 ms\" }",
        1,
    );
    for (link, form) in [("one", None), ("two", None), ("cells", Some("ip"))] {
        let (_, _, bytes) = capture(&file, &[], (&format!("link.{link}"), form), Limit::default());
        let file = fine(&format!("keepalives-{link}"), &bytes);
        // The two routers at the ends have these addresses. Keepalives are sent at 0, 10, …, 90 ms, and those of 100 ms do not leave.
        let ends = [("10.64.0.3", "10.64.0.5"), ("10.64.0.5", "10.64.0.3")]
            .map(|(one, other)| format!("gre.proto == 0 && ip.src == {one} && ip.dst == {other}"));
        let inside = ends.clone().map(|ends| format!("{ends} && gre.key == 5"));
        let outside = ends.map(|ends| format!("{ends} && !gre.key && ip.len == 24 && ip.dsfield.dscp == 48"));
        let counts = file.counts([&inside[0], &inside[1], &outside[0], &outside[1]]);
        assert_eq!(counts, [20, 20, 10, 10], "{link}: inside of both ends, each with both headers");
        assert!(file.tshark(&["-V"]).contains("Possible GRE keepalive packet"), "{link}");
    }
}

/// On every member of a bond, the frames of a host have one address. Each of its packets is found on one member.
#[test]
fn tshark_reads_captures_of_bond_members() {
    if !is_there() {
        return;
    }
    let seen = |link: &str| {
        let (outcome, told, bytes) = capture(BONDS, &[], (&format!("link.{link}"), None), Limit::default());
        assert_eq!(told.packets, sent(&outcome, link), "{link}");
        fine(&format!("bonds-{link}"), &bytes)
    };
    let [one, two, all] = ["one", "two", "up"].map(seen);
    // The bond of `a` has the address of `two`, its first member, and the router that of its end of `up`.
    let (a, r) = ("02:00:00:00:00:03", "02:00:00:00:00:06");
    let ends = format!("(eth.src == {a} && eth.dst == {r}) || (eth.src == {r} && eth.dst == {a})");
    let counts = [&one, &two, &all].map(|file| {
        file.counts([
            &format!("!({ends})"),
            "ip.src == 10.64.0.1 && ip.proto == 17",
            "ip.dst == 10.64.0.1 && ip.proto == 6",
            "ip.src == 10.64.0.1",
        ])
    });
    let [others, datagrams, segments, turns] = [0, 1, 2, 3].map(|filter| counts.map(|file| file[filter]));
    assert_eq!(others[..2], [0, 0]);
    for counts in [datagrams, segments] {
        assert!(counts[0] > 5 && counts[1] > 5, "{counts:?}");
        assert!(counts[2].abs_diff(counts[0] + counts[1]) < 5, "{counts:?}");
    }
    // Packets of `a`, fragments and acknowledgments included, alternate between the members.
    assert!(turns[0].abs_diff(turns[1]) <= 1, "{turns:?}");
    // A connection to `a` keeps its member, and both members are used.
    let streams = |file: &Fine| -> BTreeSet<String> {
        let lines = file.tshark(&["-Y", "ip.dst == 10.64.0.1 && tcp", "-T", "fields", "-e", "tcp.srcport"]);
        lines.lines().map(str::to_owned).collect()
    };
    let [first, second] = [streams(&one), streams(&two)];
    assert!(first.is_disjoint(&second) && first.len() + second.len() == 6, "{first:?} and {second:?}");
    assert!(!first.is_empty() && !second.is_empty());
}

#[test]
fn tshark_reads_captures_of_point_to_point_links() {
    if !is_there() {
        return;
    }
    let (outcome, told, bytes) = capture(WAN, &[], ("link.thin", None), Limit::default());
    let file = fine("thin", &bytes);
    // The outcome counts only after the warm-up.
    let begin = "frame.time_epoch > 0.1";
    // Windows are scaled. The receiver of the default profile announces more than 64 KiB.
    let [counted, blocks, scaled] = file.counts([begin, "tcp.options.sack_le", "tcp.window_size > 65535"]);
    assert_eq!(counted as u64, sent(&outcome, "thin"));
    assert!(told.packets > sent(&outcome, "thin"));
    let tcp = outcome.flows[0].tcp.expect("the flow is a TCP flow");
    let (_, _, fast) = capture(WAN, &[], ("link.fast.a", None), Limit::default());
    let sender = fine("fast", &fast);
    // A segment that begins below the end of earlier ones is a retransmission.
    let (mut again, mut end) = (0, 0);
    for line in sender.fields(&["frame.time_epoch", "tcp.seq", "tcp.len"]) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [seq, len] = [1, 2].map(|at| fields[at].parse::<u64>().expect("a number"));
        let counted = fields[0] > "0.100000000" && len > 0;
        again += u64::from(counted && seq < end);
        end = end.max(seq + len);
    }
    assert_eq!(Some(again), tcp.retransmitted_segments);
    assert!(again > 10);
    assert!(blocks > 0 && scaled > 0);
}

#[test]
fn tshark_verifies_crcs_of_aal5_pdus() {
    if !is_there() {
        return;
    }
    let (outcome, told, bytes) = capture(CIRCUIT, &[], ("link.first.a", None), Limit::default());
    let file = fine("pdus", &bytes);
    assert_eq!((told.bad_pdus, told.packets as usize), (0, file.with("frame.protocols", "atm")));
    let text = file.tshark(&["-V", "-O", "atm"]);
    assert_eq!(text.matches("AAL5 CRC: ").count() as u64, told.packets);
    assert_eq!(text.matches(" (correct)").count() as u64, told.packets);
    // Every cell is in a PDU. Some cells of the last one may not have left.
    let cells: u64 =
        file.fields(&["atm.cells"]).iter().map(|cells| cells.parse::<u64>().expect("a number")).sum();
    let all = outcome.links[0].1.directions[0].carried.sent();
    assert!(cells <= all && cells + 192 > all, "{cells} cells of {all}");
    assert!(file.with("frame.protocols", "tcp") >= 5 && file.with("udp.length", "20008") >= 5);
    // Behind the switch some PDUs lack cells.
    let (_, behind, bytes) = capture(CIRCUIT, &[], ("link.second.s", None), Limit::default());
    assert!(behind.bad_pdus > 0);
    fine("pdus-behind", &bytes);
}

#[test]
fn tshark_reads_every_atm_encapsulation() {
    if !is_there() {
        return;
    }
    for (encapsulation, protocol) in [
        ("llc-snap", "llc"),
        ("vc-mux", "atm"),
        ("bridged-llc", "eth"),
        ("bridged-vc-mux", "eth"),
        ("pppoa-vc-mux", "ppp"),
        ("pppoa-llc", "ppp"),
        ("pppoe-llc", "pppoes"),
        ("pppoe-vc-mux", "pppoes"),
        ("lane", "lane"),
    ] {
        let overrides =
            [("circuit.vc.encapsulation", encapsulation), ("circuit.other.encapsulation", encapsulation)];
        for form in [None, Some("ip")] {
            let (_, told, bytes) = capture(CIRCUIT, &overrides, ("link.first", form), Limit::default());
            let file = fine(&format!("{encapsulation}-{}", form.unwrap_or("pdus")), &bytes);
            assert_eq!(told.bad_pdus, 0);
            assert!(
                file.with("frame.protocols", "tcp") >= 5 && file.with("udp.length", "20008") >= 5,
                "{encapsulation}"
            );
            if form.is_none() {
                assert!(file.with("frame.protocols", protocol) > 10, "{encapsulation}");
                // Cells of the generator: UDP to the discard port, or frames with an experimental EtherType.
                let generated = file.with("udp.dstport", "9") + file.with("eth.type", "0x88b5");
                assert!(generated > 100, "{encapsulation}: {generated}");
            }
        }
    }
}

#[test]
fn tshark_reads_atm_cells() {
    if !is_there() {
        return;
    }
    let overrides = [("run.duration", "60 ms"), ("traffic.stream.message", "9 kB")];
    for link in ["sender", "receiver"] {
        let at = format!("link.{link}");
        let (outcome, told, bytes) = capture(KYOTO, &overrides, (&at, Some("cells")), Limit::default());
        assert_eq!(told.packets, sent(&outcome, link), "{link}");
        let file = fine(&format!("cells-{link}"), &bytes);
        let [users, last] = file.counts(["atm.vci >= 32 && atm.payload_type <= 3", "atm.payload_type == 1"]);
        assert!(users as u64 == told.packets && last > 0, "{users} {last}");
    }
}

/// tshark can check the header error control of a raw cell. It then takes the payload for OAM.
#[test]
fn tshark_verifies_header_error_control_of_raw_cells() {
    if !is_there() {
        return;
    }
    let (outcome, told, bytes) = capture(CIRCUIT, &[], ("link.second", Some("raw-cells")), Limit::default());
    assert_eq!(told.packets, sent(&outcome, "second"));
    let file = Written::new("raw", &bytes);
    let user = r#"uat:user_dlts:"User 0 (DLT=147)","atm_oam_cell","0","","0","""#;
    let text = file.tshark(&["-o", user, "-V", "-O", "atm"]);
    let right =
        text.lines().filter(|line| line.contains("Header Error Check") && line.ends_with("(correct)"));
    assert_eq!(right.count() as u64, told.packets);
}
