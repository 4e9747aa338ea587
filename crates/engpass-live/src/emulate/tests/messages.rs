//! Tests the ICMP messages of routers about packets that they drop.

use std::fs;
use std::net::IpAddr;

use engpass_model::wire::packet::checksum;

use super::super::capture::CaptureConfig;
use super::super::log::Log;
use super::super::packet::offload::LENGTH;
use super::super::routers::Routers;
use super::law::{again, model_of};
use super::world::Fake;
use super::{datagrams, driver, path};

/// Two hosts with two routers between them; the line between the routers has a smaller MTU.
const NARROW: &str = r#"
name = "narrow"
[host.a]
[host.b]
[router.near]
[router.far]
[link.in]
ends = ["a", "near"]
medium = "ethernet-100"
[link.middle]
ends = ["near", "far"]
medium = "point-to-point"
rate = "10 Mbit/s"
mtu = "1000 B"
[link.out]
ends = ["far", "b"]
medium = "ethernet-100"
[traffic.any]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
rate = "1 Mbit/s"
[run]
duration = "1 s"
"#;

/// Sends packets from the first host. Returns the packets written, the number lost, and the capture of the line to that host.
fn written(name: &str, sends: Vec<Vec<u8>>) -> (Fake, u64, Vec<u8>) {
    let mut world = Fake::new(2, 4);
    for (at, bytes) in sends.into_iter().enumerate() {
        world.scripts[0].push_back((2_000_000 + at as u64 * 10_000_000, bytes));
    }
    let addresses =
        ["10.0.0.8", "10.0.0.9"].map(|text| vec![text.parse::<IpAddr>().expect("the address is valid")]);
    let routers = Routers(addresses.to_vec());
    let file = path(&format!("{name}-captured"));
    let files = vec![("link.in.near".to_owned(), file.clone())];
    let mut network = model_of(NARROW, &[]);
    let config = CaptureConfig { files, ..Default::default() };
    network.capture(&config, "a test", &routers).expect("the testbed has this link");
    let log = Log::create(&path(name), &serde_json::json!({ "engpass-log": 1 })).expect("the file opens");
    let mut driver = driver(network, world, 1, Some(log));
    driver.routers = routers;
    for _ in 0..4000 {
        driver.turn();
    }
    assert!(driver.world.is_over() && driver.kept() == 0);
    driver.end();
    driver.network.end_capture().expect("the network has a capture");
    let captured = fs::read(&file).expect("the file was written");
    let bytes = fs::read(path(name)).expect("the file was written");
    fs::remove_file(file).expect("the file exists");
    fs::remove_file(path(name)).expect("the file exists");
    let found = again(&mut model_of(NARROW, &[]), &bytes);
    assert_eq!((found.difference.as_ref(), found.whole, found.changed), (None, true, 0));
    let lost = driver.counts.lost.iter().sum();
    (driver.world, lost, captured)
}

/// Each segment of a GSO packet gets its own ICMP message, which quotes it as it would be on the wire.
#[test]
fn router_reports_its_mtu_for_packets_with_dont_fragment() {
    let (world, lost, captured) = written("too-big", vec![datagrams(0, 1, 7, 3, 1400)]);
    assert_eq!((lost, world.written.len()), (3, 3));
    for (number, told) in world.written.iter().enumerate() {
        let message = &told.bytes;
        assert_eq!((told.host, message.len(), &message[12..20]), (0, 576, &[10, 0, 0, 8, 10, 0, 0, 1][..]));
        assert_eq!((checksum(&message[..20]), checksum(&message[20..])), (0, 0));
        // Type and code: fragmentation needed; then the MTU.
        assert_eq!((&message[20..22], &message[26..28]), (&[3, 4][..], &1000_u16.to_be_bytes()[..]));
        let quoted = &message[28..];
        assert_eq!(quoted[8], 64);
        assert_eq!(quoted[28..32], (7 + number as u32).to_be_bytes());
        // The link to the host has carried the same bytes.
        assert!(captured.windows(message.len()).any(|window| window == &message[..]));
    }
}

/// Without "don't fragment" the router fragments, and the receiver gets the whole packet. A packet longer than the first line's MTU never enters the network.
#[test]
fn router_fragments_packets_without_dont_fragment() {
    let mut cut = datagrams(0, 1, 1, 1, 1400);
    cut[LENGTH + 6] = 0;
    let (world, lost, _) = written("cut", vec![cut, datagrams(0, 1, 2, 1, 1500)]);
    let [got] = &world.written[..] else { panic!("expected one packet: {:?}", world.written) };
    assert_eq!((lost, got.host, got.bytes.len(), got.bytes[8]), (0, 1, 1428, 62));
}

/// After a router has fragmented the packet, the next router quotes the fragment that it received. The line carries exactly what is written.
#[test]
fn icmp_message_quotes_the_fragment_as_received() {
    let mut cut = datagrams(0, 1, 1, 1, 1400);
    (cut[LENGTH + 6], cut[LENGTH + 8]) = (0, 2);
    let (world, lost, captured) = written("quoted", vec![cut]);
    let [told] = &world.written[..] else { panic!("expected one ICMP message: {:?}", world.written) };
    // The fragment has 996 bytes, and more follow; 548 bytes of it fit into the message.
    let quoted = &told.bytes[28..];
    assert_eq!((lost, told.bytes.len(), quoted.len()), (1, 576, 548));
    assert_eq!((&quoted[2..4], &quoted[6..9]), (&996_u16.to_be_bytes()[..], &[0x20, 0, 1][..]));
    assert_eq!(checksum(&quoted[..20]), 0);
    // The message has an identification, which distinguishes its fragments from those of other messages.
    assert_ne!(told.bytes[4..6], [0, 0]);
    assert!(captured.windows(told.bytes.len()).any(|window| window == &told.bytes[..]));
}

/// The second router's message passes the first router. Its TTL, and that of the quoted packet, show it.
#[test]
fn icmp_message_ttl_counts_the_routers_passed() {
    let mut short = datagrams(0, 1, 1, 1, 100);
    short[LENGTH + 8] = 2;
    let (world, lost, captured) = written("passed", vec![short]);
    let [told] = &world.written[..] else { panic!("expected one ICMP message: {:?}", world.written) };
    assert_eq!((lost, told.host, &told.bytes[12..16]), (1, 0, &[10, 0, 0, 9][..]));
    assert_eq!((told.bytes[8], told.bytes[20], told.bytes[28 + 8]), (63, 11, 1));
    assert_eq!((checksum(&told.bytes[..20]), checksum(&told.bytes[28..48])), (0, 0));
    assert!(captured.windows(told.bytes.len()).any(|window| window == &told.bytes[..]));
}
