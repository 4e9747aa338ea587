//! The rules of lookahead (docs/model.md, "Lookahead"). Tests can disable each of them.

/// A condition for lookahead: for handling packets ahead of virtual time, at the next port, at a host or in a router's forwarding engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookaheadRule {
    /// Only one line feeds the port.
    OneFeeder,
    /// The line keeps order: it has no loss, jitter or reordering.
    Order,
    /// The port decides on arrival whether a packet is dropped and when it leaves.
    DecidesOnArrival,
    /// The node between the line and the port takes no time for a packet.
    NoTime,
    /// No event may take the line or the port down.
    NoChange,
    /// A router whose policy decides per packet finishes each packet in virtual time, not ahead of it.
    DecidingEngine,
    /// The host has one connection, or only counts datagrams.
    OneConnection,
    /// No event may take the host's own line down.
    OwnLine,
    /// No router sends ICMP messages by the port, or to the host.
    NoMessages,
    /// No ARP packets pass the port or reach the host, and the host sends no IGMP messages.
    NoRequests,
}

impl LookaheadRule {
    /// All rules.
    pub const ALL: [Self; 10] = [
        Self::OneFeeder,
        Self::Order,
        Self::DecidesOnArrival,
        Self::NoTime,
        Self::NoChange,
        Self::DecidingEngine,
        Self::OneConnection,
        Self::OwnLine,
        Self::NoMessages,
        Self::NoRequests,
    ];
}
