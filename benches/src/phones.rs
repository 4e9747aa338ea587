//! Synchronized sources: all send at the same instants.

use std::fmt::Write;

/// `count` phones at a switch, all calling one host from the same instant on: a datagram of 160 bytes every 20 ms (RFC 3551 section 4.5.14, PCMU).
pub fn phones(count: usize) -> String {
    let mut text = String::from(
        r#"# Written by `engpass_bench::phones::phones`.

name = "Phones in step"

[switch.floor]
kind = "ethernet"
queue = { drop-tail = { limit = "10000 packets" } }

[host.exchange]

[link.uplink]
ends = ["floor", "exchange"]
medium = "ethernet-10g"

[run]
duration = "1 s"
"#,
    );
    for phone in 0..count {
        write!(
            text,
            r#"
[host.phone-{phone}]
[link.phone-{phone}]
ends = ["phone-{phone}", "floor"]
medium = "ethernet-100"
[traffic.call-{phone}]
kind = "udp-stream"
from = "phone-{phone}"
to = "exchange"
message = "160 B"
rate = "64 kbit/s"
"#
        )
        .expect("writing to a string cannot fail");
    }
    text
}
