//! Why a connection sends nothing now.

/// The reason why nothing is sent at an instant. The ledger integrates it over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitedBy {
    /// No limit: a segment is ready and waits for the host's CPU or NIC.
    Nothing,
    /// The connection is not established.
    Handshake,
    /// Everything that the application has written is sent, and it does not wait for space in the send buffer.
    Application,
    /// The application waits for space in the send buffer. All buffered data is sent, or too little is left for Nagle's rule.
    SendBuffer,
    /// The peer's receive window: beside the data in flight, it has less than a segment left.
    ReceiveWindow,
    /// The congestion window.
    CongestionWindow,
    /// Nagle's rule.
    Nagle,
    /// The sender's silly window avoidance: nothing is in flight, but the window has room for only a small part of a segment.
    SillyWindow,
    /// Duplicate acknowledgments suggest a loss, and nothing more may be sent until the retransmission timer expires.
    RetransmissionTimer,
    /// The congestion control's pacing.
    Pacing,
    /// The application has closed and everything is sent, or the connection is gone.
    Closed,
}
