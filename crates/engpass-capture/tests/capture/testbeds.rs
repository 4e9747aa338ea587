//! Testbeds to capture.

/// ATM: datagrams in PDUs of 190 cells share a port with a generator.
pub(crate) const KYOTO: &str = include_str!("../../../../gallery/kyoto-1997/testbed.toml");

/// A switch, a tagged trunk with priorities, and a router that fragments datagrams for a smaller MTU.
pub(crate) const ETHERNET: &str = r#"
    name = "Ethernet"
    [host.a]
    [host.b]
    [switch.s]
    kind = "ethernet"
    [router.r]
    [router.q]
    queue = { drop-tail = { limit = "30 kB" } }
    [link.left]
    ends = ["a", "s"]
    medium = "ethernet-100"
    [link.trunk]
    ends = ["s", "r"]
    medium = "ethernet-1g"
    vlan = true
    [link.right]
    ends = ["r", "q"]
    medium = "ethernet-100"
    mtu = "1000 B"
    [link.wan]
    ends = ["q", "b"]
    medium = "point-to-point"
    rate = "20 Mbit/s"
    overhead = "7 B"
    delay = "1 ms"
    [traffic.large]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "4 kB"
    rate = "6 Mbit/s"
    priority = 5
    [traffic.small]
    kind = "poisson"
    from = "a"
    to = "b"
    message = "40 B"
    rate = "300 kbit/s"
    [traffic.stream]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "64 KiB"
    streams = 2
    [run]
    duration = "100 ms"
"#;

/// TCP over a slow line: losses, selective acknowledgments, retransmissions.
pub(crate) const WAN: &str = r#"
    name = "a thin line"
    [host.a]
    tcp = { profile = "linux-6" }
    [host.b]
    tcp = { profile = "linux-6" }
    [router.r]
    queue = { drop-tail = { limit = "40 kB" } }
    [link.fast]
    ends = ["a", "r"]
    medium = "ethernet-1g"
    [link.thin]
    ends = ["r", "b"]
    medium = "point-to-point"
    rate = "20 Mbit/s"
    delay = "5 ms"
    [traffic.stream]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "64 KiB"
    [run]
    duration = "1 s"
    warmup = "100 ms"
"#;

/// A circuit with TCP, a datagram in fragments and a generator.
pub(crate) const CIRCUIT: &str = r#"
    name = "a circuit"
    [host.a]
    [host.b]
    [switch.s]
    kind = "atm"
    output_buffer = "200 cells"
    [link.first]
    ends = ["a", "s"]
    medium = "oc-3c"
    [link.second]
    ends = ["s", "b"]
    medium = "25.6"
    [circuit.vc]
    from = "a"
    to = "b"
    [circuit.other]
    from = "a"
    to = "b"
    [traffic.stream]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    circuit = "vc"
    message = "16 KiB"
    [traffic.large]
    kind = "udp-stream"
    from = "a"
    to = "b"
    circuit = "vc"
    message = "20 kB"
    rate = "20 Mbit/s"
    [traffic.noise]
    kind = "cbr"
    from = "a"
    to = "b"
    circuit = "other"
    rate = "5 %"
    [run]
    duration = "50 ms"
"#;

/// Three paths of equal length: two over a switch with two lines to it, and one over a router. Datagrams of three packets take all of them, and a line
/// fails and returns.
pub(crate) const PARTED: &str = r#"
    name = "three ways"
    [host.a]
    [host.b]
    [router.near]
    ecmp = "round-robin"
    [switch.s]
    kind = "ethernet"
    [router.m]
    [router.far]
    ecmp = "hash"
    [link.in]
    ends = ["a", "near"]
    medium = "ethernet-1g"
    [link.one]
    ends = ["near", "s"]
    medium = "ethernet-100"
    [link.two]
    ends = ["s", "near"]
    medium = "ethernet-100"
    [link.behind]
    ends = ["s", "far"]
    medium = "ethernet-100"
    [link.other]
    ends = ["near", "m"]
    medium = "ethernet-100"
    [link.last]
    ends = ["m", "far"]
    medium = "ethernet-100"
    mtu = "1000 B"
    [link.out]
    ends = ["far", "b"]
    medium = "ethernet-1g"
    [traffic.large]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "4 kB"
    rate = "6 Mbit/s"
    [traffic.stream]
    kind = "tcp-stream"
    from = "b"
    to = "a"
    message = "64 KiB"
    rate = "3 Mbit/s"
    streams = 8
    [event.cut]
    at = "30 ms"
    target = "two"
    change = "down"
    [event.mended]
    at = "60 ms"
    target = "two"
    change = "up"
    [run]
    duration = "100 ms"
"#;

/// A tunnel that carries another one, over links, a switch and a circuit: both fragment outer packets.
pub(crate) const TUNNELS: &str = r#"
    name = "tunnels"
    [host.a]
    [host.b]
    [router.near]
    [router.middle]
    [router.far]
    [switch.s]
    kind = "ethernet"
    [link.in]
    ends = ["a", "near"]
    medium = "ethernet-1g"
    [link.one]
    ends = ["near", "s"]
    medium = "ethernet-100"
    [link.two]
    ends = ["s", "middle"]
    medium = "ethernet-100"
    [link.cells]
    ends = ["middle", "far"]
    medium = "oc-3c"
    [circuit.vc]
    from = "middle"
    to = "far"
    mtu = "1000 B"
    [link.out]
    ends = ["far", "b"]
    medium = "ethernet-1g"
    [tunnel.gre]
    ends = ["near", "far"]
    header = { gre = { checksum = true, key = 5, sequence = true } }
    fragment = "outer"
    [tunnel.inside]
    ends = ["near", "far"]
    over = "gre"
    header = "ipip"
    fragment = "outer"
    [traffic.large]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "4 kB"
    rate = "6 Mbit/s"
    [traffic.stream]
    kind = "tcp-stream"
    from = "b"
    to = "a"
    message = "64 KiB"
    rate = "3 Mbit/s"
    [run]
    duration = "100 ms"
"#;

/// A host with a bond at a switch without one, another host with a backup line that becomes active, and two clients behind a router.
pub(crate) const BONDS: &str = r#"
    name = "bonds"
    [host.a]
    [host.b]
    [host.c]
    [switch.s]
    kind = "ethernet"
    [router.r]
    [link.one]
    ends = ["a", "s"]
    medium = "ethernet-100"
    [link.two]
    ends = ["a", "s"]
    medium = "ethernet-100"
    [link.up]
    ends = ["s", "r"]
    medium = "ethernet-1g"
    [link.first]
    ends = ["r", "b"]
    medium = "ethernet-100"
    [link.second]
    ends = ["r", "b"]
    medium = "ethernet-100"
    [link.c]
    ends = ["r", "c"]
    medium = "ethernet-100"
    [bond.a]
    node = "a"
    links = ["two", "one"]
    mode = "round-robin"
    [bond.s]
    node = "s"
    links = ["one", "two"]
    mode = { hash = { layers = "layer-3+4" } }
    [bond.b]
    node = "b"
    links = ["first", "second"]
    mode = { hash = { layers = "layer-3+4" } }
    [traffic.datagrams]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "4000 B"
    rate = "20 Mbit/s"
    [traffic.back]
    kind = "tcp-stream"
    from = "b"
    to = "a"
    message = "16 KiB"
    streams = 6
    [traffic.other]
    kind = "udp-stream"
    from = "a"
    to = "c"
    message = "700 B"
    rate = "4 Mbit/s"
    [run]
    duration = "50 ms"
"#;

/// A receiver that joins a group through a switch with a tagged trunk, and leaves it.
pub(crate) const MEMBERS: &str = r#"
    name = "a late receiver"
    [host.a]
    [host.b]
    [host.c]
    [switch.s]
    kind = "ethernet"
    [router.r]
    [link.in]
    ends = ["a", "r"]
    medium = "ethernet-100"
    [link.trunk]
    ends = ["r", "s"]
    medium = "ethernet-100"
    vlan = true
    [link.b]
    ends = ["s", "b"]
    medium = "ethernet-100"
    [link.c]
    ends = ["r", "c"]
    medium = "ethernet-100"
    [traffic.video]
    kind = "multicast"
    from = "a"
    to = ["b", "c"]
    message = "1 kB"
    rate = "8 Mbit/s"
    [event.on]
    target = "b"
    traffic = "video"
    change = "join"
    at = "10 ms"
    [event.off]
    target = "b"
    traffic = "video"
    change = "leave"
    at = "20 ms"
    [run]
    duration = "40 ms"
"#;
