//! The rules of lookahead (docs/model.md, "Lookahead"). Tests can disable each of them.

/// A condition for handling packets ahead of virtual time, at the next port, at a host or in a router's engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookaheadRule {
    /// Only this line feeds the port.
    OneFeeder,
    /// The line keeps order: it has no loss, jitter or reordering.
    Order,
    /// The port decides on arrival whether a packet is dropped and when it leaves.
    DecidesOnArrival,
    /// The node between the line and the port takes no time.
    NoTime,
    /// No event may take the line or the port down.
    NoChange,
    /// A router that decides per packet finishes each packet at its own time.
    AskingEngine,
    /// The host has one connection, or only counts datagrams.
    OneConnection,
    /// No event may take the host's own line down.
    OwnLine,
    /// No router sends ICMP messages by the port or to the host.
    NoMessages,
    /// No ARP packets go by the port or to the host, and the host sends no IGMP messages.
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
        Self::AskingEngine,
        Self::OneConnection,
        Self::OwnLine,
        Self::NoMessages,
        Self::NoRequests,
    ];
}
