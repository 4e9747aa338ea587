//! The codes of diagnostics, as data.

/// Every code with its meaning in one line.
pub const CODES: &[(&str, &str)] = &[
    ("not-utf8", "the file is not UTF-8 text"),
    ("too-large", "the file is too large for a testbed"),
    ("syntax", "the file is not valid TOML"),
    ("duplicate-key", "a key or table is given twice"),
    ("empty-testbed", "there is nothing to run: no hosts"),
    ("no-traffic", "hosts without any traffic between them"),
    ("unknown-key", "a key that does not exist here"),
    ("missing-key", "a required key is missing"),
    ("wrong-type", "a number where text is needed, text where a table is needed, and so on"),
    ("missing-unit", "a quantity without its unit"),
    ("unknown-unit", "a unit that this quantity does not have"),
    ("bad-value", "text that is not a valid value, or a number with too many digits"),
    ("unknown-value", "a word that is not one of the allowed words"),
    ("unknown-kind", "a kind of component that does not exist"),
    ("out-of-range", "a value that is too small or too large"),
    ("ambiguous-rate", "a bit rate on a framed medium that does not say which bits it counts"),
    ("not-allowed", "a key that is not allowed for this medium or in this place"),
    ("no-effect", "a setting without effect"),
    (
        "spare-link",
        "a link or circuit that carries nothing, because another path of the same length comes first",
    ),
    ("duplicate-name", "two nodes of the same name, or a traffic with the name of a receiver"),
    ("dangling-reference", "the name of something that is not in the file"),
    ("self-link", "a link or flow from a node to itself"),
    ("no-path", "two hosts without a path of links between them"),
    ("wrong-medium", "a link of a medium that the switch at its end cannot use"),
    ("mtu-mismatch", "links of one Ethernet switch with different MTUs"),
    ("shared-group", "two traffics to one multicast group with different receivers"),
    ("ttl-exceeded", "packets whose TTL expires before they arrive"),
    ("tunnel-loop", "a tunnel that is routed through itself"),
    ("tunnel-mtu", "a tunnel whose packets do not fit the links on its path"),
    (
        "reassembly-memory",
        "reassembly memory at the end of a tunnel that is too small for any fragmented packet",
    ),
    ("wrong-tunnel", "a tunnel that is not on the path of the tunnel that it should carry"),
    ("wrong-bond", "a bond whose links cannot be one interface, or that does not match its other end"),
    ("one-sided-bond", "a bond at one end of its links only"),
    ("black-hole", "too long packets that a router drops without an ICMP message"),
    ("short-burst", "a token bucket that drops packets as long as the MTU"),
    ("large-mss", "a TCP segment size above what the path carries"),
    ("late-discard", "a discard threshold with less room above it than one packet needs"),
    ("not-atm", "cells where there is no ATM"),
    ("no-circuit", "datagrams across ATM without a circuit"),
    ("ambiguous-circuit", "several circuits, and nothing says which"),
    ("wrong-circuit", "a circuit that does not join these hosts"),
    ("bad-path", "a path that is not a dotted key"),
    ("unknown-path", "a path to something that the testbed does not have"),
    ("impossible-sweep", "a sweep without values, or with values that cannot be computed"),
    ("overruled", "a variant's value that the sweep always replaces"),
    ("not-live", "traffic that the model supports, but the agents on real hosts do not"),
    ("too-many-points", "more points than were allowed"),
    ("unknown-variant", "a variant that the file does not have"),
];

/// Returns the meaning of a code; `None` if there is no such code.
pub fn explain(code: &str) -> Option<&'static str> {
    CODES.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
}
