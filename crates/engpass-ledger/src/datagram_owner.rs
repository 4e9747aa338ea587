//! The ledger's view of datagrams: it knows no type of the network.

/// The flow and the direction that a datagram belongs to.
#[derive(Clone, Copy, Debug)]
pub struct DatagramOwner {
    /// Index of the traffic.
    pub flow: u32,
    /// TCP endpoint that the datagram is sent to; `None` for other traffic.
    pub to: Option<u32>,
    /// True if the datagram carries data of its sender. Only such datagrams divide idle time by the sender's states.
    pub counted: bool,
}
