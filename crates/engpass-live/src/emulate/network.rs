//! The network as the driver sees it: that of the model, or one that a test makes up.

use std::net::IpAddr;

use engpass_model::wire::icmp::{Error, Errors};
pub(super) use engpass_network::simulate::outside::{Said, Transport};
use serde_json::Value;

/// A direction between two hosts that the topology joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) name: String,
    /// The path MTU, in bytes.
    pub(super) mtu: u32,
    /// The MTU of the first line, in bytes. Behind that line routers cut longer packets, or drop them.
    pub(super) longest: u32,
    /// Number of routers on the first of equally short ways.
    pub(super) hops: u8,
    /// The receivers, if there are several. `to` is none of them.
    pub(super) group: Option<Group>,
}

/// Hosts that receive the same packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The address of a multicast group; `None` of all hosts on the sender's segment.
    pub(super) address: Option<IpAddr>,
    /// Number of receivers. The network tells a fate for each, with the number of the way to it.
    pub(super) members: u32,
}

/// The fate of a packet, or of a router's message about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryStatus {
    /// The packet has arrived, marked CE or not, and has passed this number of routers.
    Delivered { ce: bool, hops: u8 },
    /// The packet was lost at an instant. [`Network::place`] has words for `place`, a number that is the same in every run. With `message` a router tells the
    /// sender, and the fate of that message follows.
    Lost { lost_at: u64, place: u32, message: bool },
    /// A router's message has come to the sender of the packet, and has passed this number of routers.
    Message { said: Said, hops: u8 },
    /// A router's message about the packet was lost.
    MessageLost,
}

impl DeliveryStatus {
    /// Whether no other fate of the packet follows.
    pub(super) fn is_last(self) -> bool {
        !matches!(self, Self::Lost { message: true, .. })
    }
}

/// A fate, and its instant in picoseconds since the network began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) at: u64,
    pub(super) way: u32,
    pub(super) token: u64,
    pub(super) fate: DeliveryStatus,
}

/// A packet that enters the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) at: u64,
    pub(super) way: u32,
    /// Length of the IP packet in bytes.
    pub(super) bytes: u32,
    /// Bytes of headers behind the first 20.
    pub(super) header: u16,
    /// The upper byte of its IP header: six bits of DSCP, two of ECN.
    pub(super) class: u8,
    pub(super) ttl: u8,
    /// Protocol and ports; zero where the headers show none.
    pub(super) transport: Transport,
    /// Routers may not cut it.
    pub(super) whole: bool,
    /// The error messages that routers send about it.
    pub(super) errors: Errors,
    pub(super) token: u64,
}

/// A network whose packets come from outside. All times are picoseconds, and time never goes back.
pub(super) trait Network {
    /// All ways, by their numbers.
    fn ways(&self) -> &[Way];

    /// A packet enters at an instant that [`Self::run_until`] has not left behind.
    fn inject(&mut self, input: Input);

    /// Packets alike enter at one instant, one behind the other, with consecutive tokens.
    fn inject_alike(&mut self, input: Input, count: u32) {
        (0..count.into()).for_each(|place| self.inject(Input { token: input.token + place, ..input }));
    }

    /// Let the events of the testbed begin at an instant that [`Self::run_until`] has not left behind. Returns whether there are any.
    fn begin_events(&mut self, _at: u64) -> bool {
        false
    }

    /// Whether somebody captures: then [`Self::keep`] comes before [`Self::inject`].
    fn captures(&self) -> bool {
        false
    }

    /// The bytes of the packet with this token, of which `fates` will be told.
    fn keep(&mut self, _token: u64, _bytes: Vec<u8>, _fates: u32) {}

    /// Number of packets that wait for room in the memory of a host's interface.
    fn backlog(&self, host: usize) -> usize;

    /// Handle everything at or before `at`; hand out fates in order of time.
    fn run_until(&mut self, at: u64, out: &mut impl FnMut(Output));

    /// The instant of the next event, if nothing comes from outside.
    fn next_wake(&mut self) -> Option<u64>;

    /// Place and cause of a loss, in words.
    fn place(&self, place: u32) -> String;

    /// A router's message, in words.
    fn reason(&self, said: Said) -> String {
        let router = self.router(said.router);
        match said.error {
            Error::TimeExceeded => format!("time exceeded, {router}"),
            Error::TooBig { mtu } => format!("too big for {mtu} B, {router}"),
        }
    }

    /// The name of a router.
    fn router(&self, place: u16) -> String {
        format!("router {place}")
    }

    /// The state of the links, for a live view.
    fn seen(&mut self) -> Value;

    /// Count anew from here, which [`Self::run_until`] has reached.
    fn begin_window(&mut self, at: u64, out: &mut impl FnMut(Output));

    /// The outcome of the window that ends here.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    fn end_window(&mut self, at: u64, out: &mut impl FnMut(Output)) -> Result<Value, String>;
}
