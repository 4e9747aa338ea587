//! Header fields of the packets of a traffic that policies look at.

use std::net::Ipv4Addr;

use engpass_model::forward::Headers;

use crate::testbed::Testbed;
use crate::topology::{NodeId, Topology};

/// Address of the first host: 10.64.0.1. The other hosts follow in the order of the file, then the routers. Emulated hosts have the same addresses.
const FIRST_ADDRESS: u32 = 0x0a40_0001;
/// Destination port of the first sources.
const DESTINATION_PORT: u16 = 5001;
/// First dynamic port, and number of dynamic ports (RFC 6335 section 6). Source ports count up from here.
const FIRST_DYNAMIC_PORT: u16 = 49_152;
const DYNAMIC_PORTS: u64 = 16_384;

/// Returns the IP address of a host or router.
pub fn node_address(topology: &Topology, node: NodeId) -> Ipv4Addr {
    let place = if node < topology.hosts { node } else { node - topology.switches };
    Ipv4Addr::from(FIRST_ADDRESS + place as u32)
}

/// Returns the source and destination ports of a packet source or connection, by its number in the file. No two have the same pair.
pub fn source_ports(source: u64) -> [u16; 2] {
    [FIRST_DYNAMIC_PORT + (source % DYNAMIC_PORTS) as u16, DESTINATION_PORT + (source / DYNAMIC_PORTS) as u16]
}

/// Returns the headers of packets from one node to another that show no ports.
fn between(topology: &Topology, [from, to]: [NodeId; 2], protocol: u8) -> Headers {
    let [source, destination] = [from, to].map(|node| node_address(topology, node).to_bits());
    Headers { source, destination, protocol, ports: [0; 2] }
}

/// Returns the headers of ICMP messages from a router to a host.
pub fn icmp_heads(topology: &Topology, router: NodeId, host: NodeId) -> Headers {
    between(topology, [router, host], 1)
}

/// Returns the outer headers of packets in a tunnel, in one direction. The addresses are those of the routers at its ends.
pub fn tunnel_heads(topology: &Topology, tunnel: usize, forward: bool) -> Headers {
    let path = &topology.tunnels[tunnel];
    between(topology, path.from_to(forward), path.config.header.config().protocol())
}

/// Returns the headers of the packets that the sender of a traffic sends. `flow` is the index of the traffic in the testbed, `stream` that of the connection in
/// the traffic (0 if it has only one).
pub fn heads(testbed: &Testbed, topology: &Topology, flow: usize, stream: usize) -> Headers {
    let path = &topology.flows[flow];
    let protocol = if testbed.traffic[flow].tcp().is_some() { 6 } else { 17 };
    let ports = source_ports(path.first_source + stream as u64);
    Headers { ports, ..between(topology, [path.from, path.to], protocol) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, load};

    #[test]
    fn sources_have_ports_of_their_own() {
        let text = r#"
            [host.a]
            [host.b]
            [host.c]
            [router.r]
            [link.a]
            ends = ["a", "r"]
            medium = "ethernet-100"
            [link.b]
            ends = ["b", "r"]
            medium = "ethernet-100"
            [link.c]
            ends = ["c", "r"]
            medium = "ethernet-100"
            [traffic.one]
            kind = "udp-stream"
            from = "a"
            to = "b"
            message = "1 kB"
            [traffic.many]
            kind = "tcp-stream"
            from = "c"
            to = "a"
            message = "1 kB"
            streams = 9999
            [traffic.more]
            kind = "tcp-stream"
            from = "c"
            to = "b"
            message = "1 kB"
            streams = 9999
        "#;
        let source = Source { name: "x.toml".into(), text: text.into() };
        let point = load(&source, &[], None)
            .expect("the testbed is valid")
            .point("base", &[])
            .expect("the testbed has a base point");
        let heads = |flow, stream| heads(&point.testbed, &point.topology, flow, stream);
        let [one, many, last] = [heads(0, 0), heads(1, 4), heads(2, 9998)];
        assert_eq!((one.source, one.destination), (0x0a40_0001, 0x0a40_0002));
        assert_eq!((one.protocol, one.ports), (17, [49_152, 5001]));
        assert_eq!((many.source, many.destination), (0x0a40_0003, 0x0a40_0001));
        assert_eq!((many.protocol, many.ports), (6, [49_157, 5001]));
        // This is source 19 998 of the file. The source ports start again after 16 384, with the next destination port.
        assert_eq!(last.ports, [49_152 + 3614, 5002]);
    }
}
