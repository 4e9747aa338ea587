//! Tests of capture files, read by the tests' own reader, and by tshark if it is installed.

#[path = "../../../engpass-simulate/tests/common/mod.rs"]
mod common;
mod outside;
mod reader;
mod testbeds;
mod tshark;

use std::collections::BTreeSet;
use std::io;

use engpass_capture::{Captured, File, Files, Form, Limit, Point, SyntheticPackets};
use engpass_simulate::{SimOutcome, captured, simulate};

use common::point;
use reader::{Block, read};
use testbeds::{ETHERNET, KYOTO, MEMBERS, PARTED, WAN};

/// Captures at a point, in `form` or the link's default. Returns the outcome, the result of the capture, and the file.
fn capture(
    text: &str,
    overrides: &[(&str, &str)],
    (at, form): (&str, Option<&str>),
    limit: Limit,
) -> (SimOutcome, Captured, Vec<u8>) {
    let variant = if text == KYOTO { "congested" } else { "base" };
    let run = point(text, variant, overrides);
    let form = form.map(|form| Form::parse(form).expect("the capture format exists"));
    let place = Point::find(at, form, &run.topology).expect("the testbed has this capture point");
    let packets = Box::new(SyntheticPackets::new(&run.topology));
    let mut bytes = Vec::new();
    let file = File::begin(&run.topology, place, limit, packets, "a test", &mut bytes);
    let mut files = Files(vec![file.expect("writing to a vector cannot fail")]);
    let ports = files.ports();
    let outcome = captured(&run.testbed, &run.topology, 7, &ports, &|| false, &mut files);
    let outcome = outcome.expect("the simulation succeeds");
    let alone = simulate(&run.testbed, &run.topology, 7, &|| false).expect("the simulation succeeds");
    assert_eq!(
        SimOutcome { events: alone.events, ..outcome.clone() },
        alone,
        "a capture does not change the outcome"
    );
    let told = files.0.remove(0).end().expect("writing to a vector cannot fail");
    assert_eq!(told.bytes, bytes.len() as u64);
    (outcome, told, bytes)
}

/// Returns the number of cells or frames that both directions of a link sent.
fn sent(outcome: &SimOutcome, link: &str) -> u64 {
    let (_, used) = outcome.links.iter().find(|(name, _)| name == link).expect("the testbed has this link");
    used.directions.iter().map(|direction| direction.carried.sent()).sum()
}

#[test]
fn capture_has_named_interfaces_and_times_in_nanoseconds() {
    let (outcome, told, bytes) = capture(ETHERNET, &[], ("link.left", None), Limit::default());
    let blocks = read(&bytes);
    let Block::Section { comment } = &blocks[0] else { panic!("a file begins with a section header") };
    assert_eq!(comment, "a test");
    let interfaces: Vec<_> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Interface { link_type, name, resolution, .. } => {
                Some((*link_type, name.as_str(), *resolution))
            }
            _ => None,
        })
        .collect();
    assert_eq!(interfaces, [(1, "left.a", 9), (1, "left.s", 9)]);
    let packets: Vec<_> = blocks.iter().filter_map(Block::packet).collect();
    assert_eq!((packets.len() as u64, told.packets), (sent(&outcome, "left"), told.packets));
    assert_eq!(told.packets, packets.len() as u64);
    assert!(packets.is_sorted_by_key(|(_, at, _)| *at));
    // 100 Mbit/s. The instant is the end of the first frame: preamble and frame, without the gap.
    let (interface, at, first) = packets[0];
    assert_eq!((interface, at), (0, (first.len() as u64 + 4 + 8) * 80));
}

#[test]
fn capture_of_one_direction_has_one_interface() {
    let (outcome, told, bytes) = capture(ETHERNET, &[], ("link.left.s", None), Limit::default());
    let blocks = read(&bytes);
    assert_eq!(blocks.iter().filter(|block| matches!(block, Block::Interface { .. })).count(), 1);
    let (_, used) = outcome.links.iter().find(|(name, _)| name == "left").expect("the testbed has this link");
    assert_eq!(told.packets, used.directions[1].carried.sent());
}

/// The report goes to the group, the leave message to all routers (RFC 2236 section 3), each with the address of its host.
#[test]
fn capture_has_igmp_messages_of_hosts() {
    let (outcome, told, bytes) = capture(MEMBERS, &[], ("link.trunk.s", None), Limit::default());
    let (_, used) =
        outcome.links.iter().find(|(name, _)| name == "trunk").expect("the testbed has this link");
    assert_eq!((told.packets, used.directions[1].carried.sent()), (2, 2));
    let blocks = read(&bytes);
    let frames: Vec<_> = blocks.iter().filter_map(Block::packet).collect();
    let expected = [
        (0x16, [239, 255, 0, 1], [0x01, 0, 0x5e, 0x7f, 0, 1], 10_000_000),
        (0x17, [224, 0, 0, 2], [0x01, 0, 0x5e, 0, 0, 2], 20_000_000),
    ];
    for ((_, at, frame), (kind, group, destination, begun)) in frames.into_iter().zip(expected) {
        assert_eq!(macs(frame), ([2, 0, 0, 0, 0, 6], destination));
        // Two addresses, a tag, and the IP header with its option.
        assert_eq!((&frame[12..14], &frame[16..18]), (&[0x81, 0][..], &[8, 0][..]));
        let ip = &frame[18..];
        assert_eq!((ip[0], ip[8], ip[9], ip[24]), (0x46, 1, 2, kind));
        assert_eq!((&ip[12..16], &ip[16..20]), (&[10, 64, 0, 2][..], &group[..]));
        // It has crossed the link of the host, and has left the switch.
        assert!((begun + 10_000..begun + 20_000).contains(&at), "{at}");
    }
}

/// Source and destination of a frame.
type Macs = ([u8; 6], [u8; 6]);

/// Returns the addresses of a frame.
fn macs(frame: &[u8]) -> Macs {
    let mac = |from: usize| frame[from..from + 6].try_into().expect("six bytes");
    (mac(6), mac(0))
}

/// A frame on a line has the addresses of the host or router that sent it and of the one that receives it, over any line to a switch.
#[test]
fn captured_frames_have_addresses_of_sender_and_receiver() {
    let frames = |at: &str| {
        let (outcome, told, bytes) = capture(PARTED, &[], (at, None), Limit::default());
        let link = at.split('.').nth(1).expect("the capture point names a link");
        if at == format!("link.{link}") {
            assert_eq!(told.packets, sent(&outcome, link), "{at}");
        }
        let blocks = read(&bytes);
        let packets: Vec<_> = blocks.iter().filter_map(Block::packet).collect();
        packets.iter().map(|(_, at, frame)| (*at, macs(frame))).collect::<Vec<_>>()
    };
    let both = |all: &[(u64, Macs)]| all.iter().map(|(_, macs)| *macs).collect::<BTreeSet<_>>();
    let [one, two, behind] = ["link.one.near", "link.two.near", "link.behind.s"].map(frames);
    let (first, second) = (both(&one), both(&two));
    assert_eq!((first.len(), second.len(), first.intersection(&second).count()), (1, 1, 0));
    // The switch forwards all frames with unchanged addresses.
    let wanted: BTreeSet<_> = first.union(&second).copied().collect();
    assert_eq!(both(&behind), wanted);
    assert!(behind.len() > 100);
    // While the line is down its router sends nothing there.
    let ns = |ms: u64| ms * 1_000_000;
    assert!(!two.iter().any(|(at, _)| (ns(31)..ns(60)).contains(at)));
    assert!(two.iter().any(|(at, _)| *at > ns(61)));
    // Packets back take the switch's first line, or the router's.
    for at in ["link.one", "link.other", "link.last", "link.in", "link.out"] {
        assert_eq!(both(&frames(at)).len(), 2, "{at}");
    }
}

#[test]
fn capture_stops_at_its_limit() {
    let all = capture(ETHERNET, &[], ("link.left", None), Limit::default()).1;
    assert!(!all.limited && all.packets > 500);
    let told = |limit: &str| {
        let limit = Limit::parse(limit).expect("the limit is valid");
        let (_, told, bytes) = capture(ETHERNET, &[], ("link.left", None), limit);
        let last = read(&bytes).iter().filter_map(Block::packet).next_back().map_or(0, |(_, at, _)| at);
        (told.packets, bytes.len(), last, told.limited)
    };
    assert_eq!((told("100 packets").0, told("100 packets").3), (100, true));
    let (packets, bytes, _, limited) = told("20 kB");
    assert!(bytes <= 20_000 && bytes > 17_000 && packets > 10 && limited);
    let (packets, _, last, limited) = told("20 ms");
    assert!(packets > 10 && last <= 20_000_000 && last > 15_000_000 && limited);
    assert!(!told("1 min").3);
    assert!(Limit::parse("much").unwrap_err().contains("`1000 packets`"));
}

#[test]
fn capture_rejects_unknown_points_and_forms() {
    let run = point(ETHERNET, "base", &[]);
    let find = |text: &str, form| Point::find(text, form, &run.topology).unwrap_err();
    assert_eq!(
        find("left", None),
        "`left` is not a capture point\nhelp: write `link.NAME`, or `link.NAME.NODE` for what that node sends"
    );
    assert_eq!(
        find("link.lefft", None),
        "the testbed has no `link.lefft`\nhelp: it has `link.left`, `link.trunk`, `link.right`, `link.wan`"
    );
    assert_eq!(find("link.left.r", None), "`r` is not an end of link `left`\nhelp: it joins `a` and `s`");
    assert_eq!(
        find("link.left", Some(Form::Cells)),
        "link `left` cannot be captured as `cells`\nhelp: use `frames` or `ip`"
    );
    assert_eq!(find("link.wan", Some(Form::Pdus)), "link `wan` cannot be captured as `pdus`\nhelp: use `ip`");
    assert!(Form::parse("pcap").unwrap_err().contains("`raw-cells`"));
}

/// A disk that is full after this number of bytes.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn full_disk_stops_the_run_with_an_error() {
    let run = point(WAN, "base", &[]);
    let place = Point::find("link.thin", None, &run.topology).expect("the testbed has this link");
    let packets = Box::new(SyntheticPackets::new(&run.topology));
    let file = File::begin(&run.topology, place, Limit::default(), packets, "", Full(20_000));
    let mut files = Files(vec![file.expect("the file header fits")]);
    let ports = files.ports();
    let ended = captured(&run.testbed, &run.topology, 7, &ports, &|| false, &mut files);
    assert!(ended.is_err());
    let error = files.0.remove(0).end().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}
