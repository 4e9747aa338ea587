//! The rules of lookahead, each of which a test can switch off: docs/model.md, "Lookahead".

/// A condition under which a line tells the next port, or the host, what comes, or an engine works ahead of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// All packets of the port come from this line.
    OneFeeder,
    /// The line keeps order: chance does nothing to its packets.
    Order,
    /// The port knows on arrival what becomes of a packet.
    DecidesOnArrival,
    /// The node between them takes no time.
    NoTime,
    /// No event may take the line or the port down.
    NoChange,
    /// The engine of a router that asks for ways finishes each packet at its time.
    AskingEngine,
    /// The host has one connection, or only counts.
    OneConnection,
    /// No event may take the host's own line down.
    OwnLine,
    /// No router sends messages of its own by the port, or to the host.
    NoMessages,
    /// No ARP packets go by the port, or to the host.
    NoRequests,
}

impl Rule {
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
