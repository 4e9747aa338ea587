//! Header fields of the packets of a traffic that policies look at.

use engpass_model::forward::Headers;

use crate::testbed::Testbed;
use crate::topology::{NodeId, Topology};

/// Address of the first host: 10.0.0.1. The other hosts follow in the order of the file.
const FIRST_ADDRESS: u32 = 0x0a00_0001;
/// Destination port of all traffic.
const DESTINATION_PORT: u16 = 5001;
/// The first dynamic port (RFC 6335 section 6). Source ports count up from here.
const FIRST_DYNAMIC_PORT: u16 = 49_152;

/// Returns the headers of ICMP messages from a router to a host. Router addresses follow those of the hosts.
pub fn icmp_heads(topology: &Topology, router: NodeId, host: NodeId) -> Headers {
    let [source, destination] = [router - topology.switches, host].map(|node| FIRST_ADDRESS + node as u32);
    Headers { source, destination, protocol: 1, ports: [0; 2] }
}

/// Returns the outer headers of packets in a tunnel, in one direction. The addresses are those of the routers at its ends; ports are zero.
pub fn tunnel_heads(topology: &Topology, tunnel: usize, forward: bool) -> Headers {
    let path = &topology.tunnels[tunnel];
    let address = |router: NodeId| FIRST_ADDRESS + (router - topology.switches) as u32;
    let [source, destination] = path.from_to(forward).map(address);
    Headers { source, destination, protocol: path.config.header.config().protocol(), ports: [0; 2] }
}

/// Returns the headers of the packets that the sender of a traffic sends. `flow` is the index of the traffic in the testbed, `stream` that of the connection in
/// the traffic (0 if it has only one). Every packet source and connection of the file has a source port of its own, as long as there are enough ports.
pub fn heads(testbed: &Testbed, topology: &Topology, flow: usize, stream: usize) -> Headers {
    let path = &topology.flows[flow];
    let ports = u64::from(u16::MAX - FIRST_DYNAMIC_PORT) + 1;
    let port = FIRST_DYNAMIC_PORT + ((path.first_source + stream as u64) % ports) as u16;
    Headers {
        source: FIRST_ADDRESS + path.from as u32,
        destination: FIRST_ADDRESS + path.to as u32,
        protocol: if testbed.traffic[flow].tcp().is_some() { 6 } else { 17 },
        ports: [port, DESTINATION_PORT],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, load};

    #[test]
    fn sources_have_consecutive_ports_that_wrap() {
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
        assert_eq!((one.source, one.destination), (0x0a00_0001, 0x0a00_0002));
        assert_eq!((one.protocol, one.ports), (17, [49_152, 5001]));
        assert_eq!((many.source, many.destination), (0x0a00_0003, 0x0a00_0001));
        assert_eq!((many.protocol, many.ports), (6, [49_157, 5001]));
        // This is source 19 998 of the file. The ports start again after 16 384.
        assert_eq!(last.ports, [49_152 + 3614, 5001]);
    }
}
