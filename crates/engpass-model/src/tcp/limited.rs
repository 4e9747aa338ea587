//! Why a connection sends nothing now.

/// The reason why nothing is sent at an instant, for the ledger to integrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitedBy {
    /// Nothing: a segment is ready and waits for the host's CPU or NIC.
    Nothing,
    /// The connection is not established.
    Handshake,
    /// The application has written nothing.
    Application,
    /// The application waits for room in the send buffer, and all that is in the buffer is sent, or too little for Nagle's rule is left.
    SendBuffer,
    /// The other side's receive window: less than a segment is left of it beside what is in flight.
    ReceiveWindow,
    /// The congestion window.
    CongestionWindow,
    /// Nagle's rule.
    Nagle,
    /// The sender's silly window avoidance: nothing is in flight, and the window has room for a small part of a segment only.
    SillyWindow,
    /// A loss is likely (duplicate acknowledgments came), nothing more may be sent, and only the retransmission
    /// timer will go on.
    RetransmissionTimer,
    /// The congestion control's pacing.
    Pacing,
    /// The application has closed and everything is sent, or the connection is gone.
    Closed,
}
