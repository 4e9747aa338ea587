//! The codes of diagnostics, as data.

/// Every code with its meaning in one line.
pub const CODES: &[(&str, &str)] = &[
    ("not-utf8", "the file is no text"),
    ("too-large", "the file is larger than any testbed"),
    ("syntax", "the file is no TOML"),
    ("duplicate-key", "a key or table is given twice"),
    ("empty-testbed", "there is nothing to run: no hosts"),
    ("no-traffic", "hosts that nothing is declared to run between"),
    ("unknown-key", "a key that nothing reads"),
    ("missing-key", "a key that must be there is not"),
    ("wrong-type", "a number where text is needed, text where a table is needed, and so on"),
    ("missing-unit", "a quantity without its unit"),
    ("unknown-unit", "a unit that this quantity does not have"),
    ("bad-value", "text that is not what is needed, or too fine or too large to hold"),
    ("unknown-value", "a word that is none of those known at this place"),
    ("unknown-kind", "a kind of component that does not exist"),
    ("out-of-range", "a value that is too small or too large"),
    ("ambiguous-rate", "bits on a framed medium that do not say what they count"),
    ("not-allowed", "a key that has no meaning for this medium or at this place"),
    ("no-effect", "something that changes nothing"),
    (
        "spare-link",
        "a link or circuit that nothing is sent on, because another way that is as short comes first",
    ),
    ("duplicate-name", "two nodes of the same name, or a traffic with the name of a receiver"),
    ("dangling-reference", "the name of something that is not in the file"),
    ("self-link", "a link or flow from a node to itself"),
    ("no-path", "two hosts that no links join"),
    ("wrong-medium", "a link of a medium that the switch at its end cannot use"),
    ("mtu-mismatch", "links of one Ethernet switch with different MTUs"),
    ("shared-group", "two traffics to one multicast group with different receivers"),
    ("ttl-exceeded", "packets that die before they arrive"),
    ("tunnel-loop", "a tunnel that is routed through itself"),
    ("tunnel-mtu", "a tunnel whose packets do not fit the links on its way"),
    ("reassembly-memory", "memory at the end of a tunnel that holds no fragmented packet"),
    ("wrong-tunnel", "a tunnel that is not on the way of what it is to carry"),
    ("wrong-bond", "a bond whose links cannot be one interface, or whose other end does not go with it"),
    ("one-sided-bond", "a bond at one end of its links only"),
    ("black-hole", "too long packets that a router drops without an ICMP message"),
    ("not-atm", "cells where there is no ATM"),
    ("no-circuit", "datagrams across ATM without a circuit"),
    ("ambiguous-circuit", "several circuits, and nothing says which"),
    ("wrong-circuit", "a circuit that does not join these hosts"),
    ("bad-path", "a path that is no dotted key"),
    ("unknown-path", "a path that leads to nothing in the testbed"),
    ("impossible-sweep", "a sweep that has no values or cannot be counted out"),
    ("overruled", "a variant's value that the sweep always replaces"),
    ("not-live", "traffic that the agents of real hosts do not make, though the model does"),
    ("too-many-points", "more points than were allowed"),
    ("unknown-variant", "a variant that the file does not have"),
];

/// Returns the meaning of a code; `None` if there is no such code.
pub fn explain(code: &str) -> Option<&'static str> {
    CODES.iter().find(|(known, _)| *known == code).map(|(_, meaning)| *meaning)
}
