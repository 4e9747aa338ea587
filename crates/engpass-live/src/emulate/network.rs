//! What the driver asks of a network: the one of the model, or one that a test makes up.

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
    /// The longest IP packet that the whole way carries whole, in bytes.
    pub(super) mtu: u32,
    /// The longest that may enter it: behind its first line routers cut packets, or refuse them.
    pub(super) longest: u32,
    /// Routers on it, on the first of equally short ways.
    pub(super) hops: u8,
    /// It leads to several hosts: `to` is none of them.
    pub(super) group: Option<Group>,
}

/// Hosts that get every packet of one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The address of a multicast group; none: all on the sender's segment.
    pub(super) address: Option<IpAddr>,
    /// How many they are. The network tells the fate of a packet for each, under the number of its own way.
    pub(super) members: u32,
}

/// What became of a packet, or of a router's message about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It has arrived, marked CE or not, behind so many routers.
    Delivered { ce: bool, hops: u8 },
    /// It lost something, then; where and why, as a number that is the same in every run: [`Network::place`] has the words. What becomes of a router's
    /// message about it is told, too, if there is one.
    Lost { lost_at: u64, place: u32, message: bool },
    /// A router's message about it, which is lost, has come to its sender, behind so many routers.
    Message { said: Said, hops: u8 },
    /// A router's message about it was lost.
    MessageLost,
}

impl Fate {
    /// Whether nothing more of the packet is told.
    pub(super) fn is_last(self) -> bool {
        !matches!(self, Self::Lost { message: true, .. })
    }
}

/// A packet that has come to an end, picoseconds since the network began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Output {
    pub(super) at: u64,
    pub(super) way: u32,
    pub(super) token: u64,
    pub(super) fate: Fate,
}

/// A packet that begins its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) at: u64,
    pub(super) way: u32,
    /// IP bytes.
    pub(super) bytes: u32,
    /// Bytes of headers behind the first 20.
    pub(super) header: u16,
    /// The upper byte of its IP header: six bits of DSCP, two of ECN.
    pub(super) class: u8,
    pub(super) ttl: u8,
    /// Protocol and ports, as far as its headers show any.
    pub(super) transport: Transport,
    /// Routers may not cut it.
    pub(super) whole: bool,
    /// The error messages that routers send about it.
    pub(super) errors: Errors,
    pub(super) token: u64,
}

/// A network whose packets come from outside. All times are picoseconds, and it never goes back.
pub(super) trait Network {
    /// All ways; the place of one here is its number.
    fn ways(&self) -> &[Way];

    /// A packet enters at an instant that [`Self::run_until`] has not left behind.
    fn inject(&mut self, input: Input);

    /// So many packets alike enter at one instant, one behind the other, each with the token behind that of the one before.
    fn inject_alike(&mut self, input: Input, count: u32) {
        (0..count.into()).for_each(|place| self.inject(Input { token: input.token + place, ..input }));
    }

    /// Let the events of the testbed begin at an instant that [`Self::run_until`] has not left behind. Whether there are any.
    fn begin_events(&mut self, _at: u64) -> bool {
        false
    }

    /// Whether somebody captures: then [`Self::keep`] comes before [`Self::inject`].
    fn captures(&self) -> bool {
        false
    }

    /// The bytes of the packet with this token, of which so many fates will be told.
    fn keep(&mut self, _token: u64, _bytes: Vec<u8>, _fates: u32) {}

    /// Packets that wait for room in the memory of a host's interface.
    fn backlog(&self, host: usize) -> usize;

    /// Handle everything at or before `at`; hand out what has come to an end, in order of time.
    fn run_until(&mut self, at: u64, out: &mut impl FnMut(Output));

    /// When something happens next, if nothing comes from outside.
    fn next_wake(&mut self) -> Option<u64>;

    /// Where a packet was lost, and why, in words.
    fn place(&self, place: u32) -> String;

    /// What a router has said, in words.
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

    /// What the links do, for a live view.
    fn seen(&mut self) -> Value;

    /// Count anew from here, which [`Self::run_until`] has reached.
    fn begin_window(&mut self, at: u64, out: &mut impl FnMut(Output));

    /// What was counted since the window began, up to here.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    fn end_window(&mut self, at: u64, out: &mut impl FnMut(Output)) -> Result<Value, String>;
}
