//! The network as the driver sees it: the simulated one, or a mock in tests.

use std::net::IpAddr;

use engpass_model::wire::icmp::{Error, Errors};
pub(super) use engpass_simulate::injection::{MessageContent, Transport};
use serde_json::Value;

/// A path in one direction between two hosts that the topology connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) name: String,
    /// The path MTU in bytes.
    pub(super) mtu: u32,
    /// MTU of the first line in bytes. Packets up to this length leave the host; later routers fragment or drop those that are longer than the path MTU.
    pub(super) longest: u32,
    /// Number of routers on the path; of several shortest paths, on the first one.
    pub(super) hops: u8,
    /// The receivers, if this is a path to a group; `None` for a path to one host. For a group, `to` is the sender itself.
    pub(super) group: Option<Group>,
}

/// Hosts that receive the same packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Address of the multicast group; `None` for all hosts on the sender's segment.
    pub(super) address: Option<IpAddr>,
    /// Number of receivers. The network reports a delivery status for each, with the number of the path to it.
    pub(super) members: u32,
}

/// Delivery status of a packet, or of a router's ICMP message about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryStatus {
    /// The packet has arrived: its CE mark, and the number of routers that it has passed.
    Delivered { ce: bool, hops: u8 },
    /// The packet was lost at `lost_at`. [`Network::place`] translates `place`, a number that is the same in every run. If `message` is set, a router sends
    /// an ICMP message to the sender, and the status of that message follows.
    Lost { lost_at: u64, place: u32, message: bool },
    /// A router's ICMP message has reached the sender of the packet, after this number of routers.
    Message { said: MessageContent, hops: u8 },
    /// A router's ICMP message about the packet was lost.
    MessageLost,
}

impl DeliveryStatus {
    /// Returns whether this is the last status of the packet.
    pub(super) fn is_last(self) -> bool {
        !matches!(self, Self::Lost { message: true, .. })
    }
}

/// Delivery report: a status, with its instant in ps since the network began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) at: u64,
    pub(super) way: u32,
    pub(super) token: u64,
    pub(super) fate: DeliveryStatus,
}

/// A packet to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) at: u64,
    pub(super) way: u32,
    /// Length of the IP packet in bytes.
    pub(super) bytes: u32,
    /// Length of the headers after the first 20 bytes.
    pub(super) header: u16,
    /// DSCP (upper six bits) and ECN (lower two bits) of the IP header.
    pub(super) class: u8,
    pub(super) ttl: u8,
    /// Protocol and ports; zero if the headers show none.
    pub(super) transport: Transport,
    /// True if routers must not fragment the packet.
    pub(super) whole: bool,
    /// ICMP errors that routers may send about the packet.
    pub(super) errors: Errors,
    pub(super) token: u64,
}

/// A network into which packets are injected. All times are in ps and never go back.
pub(super) trait Network {
    /// Returns all paths, in order of their numbers.
    fn ways(&self) -> &[Way];

    /// Injects a packet at an instant later than that of the last [`Self::run_until`].
    fn inject(&mut self, input: Input);

    /// Injects `count` identical packets for one instant, one after the other, with consecutive tokens.
    fn inject_identical(&mut self, input: Input, count: u32) {
        (0..count.into()).for_each(|place| self.inject(Input { token: input.token + place, ..input }));
    }

    /// Begins the events of the testbed at an instant later than that of the last [`Self::run_until`]. Returns whether there are any.
    fn begin_events(&mut self, _at: u64) -> bool {
        false
    }

    /// Returns whether captures run. If so, [`Self::keep`] must be called before [`Self::inject`].
    fn captures(&self) -> bool {
        false
    }

    /// Stores the bytes of the packet with this token for the captures. `fates` is the number of delivery reports that the packet will have.
    fn keep(&mut self, _token: u64, _bytes: Vec<u8>, _fates: u32) {}

    /// Returns the number of a host's packets that wait for room in its NIC buffer.
    fn backlog(&self, host: usize) -> usize;

    /// Processes all events up to and including `at`. Passes delivery reports to `out` in order of time.
    fn run_until(&mut self, at: u64, out: &mut impl FnMut(Output));

    /// Returns the instant of the next event, if no packet is injected before it.
    fn next_wake(&mut self) -> Option<u64>;

    /// Returns location and cause of a drop as text.
    fn place(&self, place: u32) -> String;

    /// Returns a router's ICMP message as text.
    fn reason(&self, said: MessageContent) -> String {
        let router = self.router(said.router);
        match said.error {
            Error::TimeExceeded => format!("time exceeded, {router}"),
            Error::TooBig { mtu } => format!("too big for {mtu} B, {router}"),
        }
    }

    /// Returns the name of a router.
    fn router(&self, place: u16) -> String {
        format!("router {place}")
    }

    /// Returns the state of the links, for a live view.
    fn seen(&mut self) -> Value;

    /// Begins a measurement window at `at`, which [`Self::run_until`] has reached.
    fn begin_window(&mut self, at: u64, out: &mut impl FnMut(Output));

    /// Ends the measurement window at `at` and returns its outcome.
    ///
    /// # Errors
    /// Returns the reason why there is no outcome.
    fn end_window(&mut self, at: u64, out: &mut impl FnMut(Output)) -> Result<Value, String>;
}
