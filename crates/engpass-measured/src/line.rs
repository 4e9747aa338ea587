//! One direction of a link: what real hosts have sent over it, by account.

use engpass_ledger::{Account, Accounts};
use engpass_model::wire::ethernet::{FCS_BYTES, HEADER_BYTES};
use engpass_model::wire::ip::{IP_HEADER_BYTES, MIN_MTU};
use engpass_model::wire::layers::{Change, Layer, Layers, Wire};
use engpass_outcome::{DirectionOutcome, Ledger};

use crate::idle_reasons::{Waits, post_idle};

/// Length of an IPv6 header beyond that of an IPv4 header, in bytes (RFC 8200 section 3).
const IPV6_BYTES: u64 = 20;
/// Length of the fragment header of IPv6, in bytes (RFC 8200 section 4.5).
const FRAGMENT_BYTES: u64 = 8;
/// A line that carried more than its capacity times this factor gets a note, because its real rate is higher than the rate of the file.
const NEARLY: f64 = 1.001;

/// The format of a flow's packets on a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    /// Layers below IP.
    pub(crate) wire: Wire,
    /// Smallest MTU on the path up to this line, in bytes.
    pub(crate) mtu: u64,
    /// True for IPv6.
    pub(crate) six: bool,
}

impl Packets {
    /// Returns the packets of a message whose transport header and payload have these lengths in bytes. A message above the MTU takes several packets.
    pub(crate) fn carry(&self, transport: u64, payload: u64) -> Load {
        // The longer headers of IPv6 are bytes behind a header of IPv4.
        let added = match (self.six, transport + payload + IP_HEADER_BYTES + IPV6_BYTES <= self.mtu) {
            (false, _) => 0,
            (true, true) => IPV6_BYTES,
            (true, false) => IPV6_BYTES + FRAGMENT_BYTES,
        };
        let mtu = self.mtu.saturating_sub(added).max(MIN_MTU);
        Load(self.wire.changed(transport, payload, &[Change::Cut(mtu), Change::Wrap(added)]))
    }
}

/// The packets of one message on a line: their parts of the line by layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load(Layers);

impl Load {
    fn parts(&self, layer: Layer) -> u128 {
        self.0.parts(layer).into()
    }

    /// Returns the number of packets.
    pub(crate) fn packets(&self) -> u64 {
        self.0.parts(Layer::IpHeader) / (8 * IP_HEADER_BYTES * self.0.parts_per_bit())
    }

    /// Returns the bytes that the kernel counts at an interface for the packets: frames without padding and FCS.
    pub(crate) fn counted_bytes(&self) -> u64 {
        let ip = [Layer::IpHeader, Layer::TunnelHeader, Layer::TransportHeader, Layer::Payload];
        let ip: u64 = ip.iter().map(|layer| self.0.parts(*layer)).sum();
        ip / (8 * self.0.parts_per_bit()) + self.packets() * (HEADER_BYTES - FCS_BYTES)
    }
}

/// The open ledger of one direction of a link that has an agent at one of its ends.
#[derive(Debug, Default)]
pub(crate) struct Line {
    accounts: Accounts,
    /// Reasons why the senders on this line were idle, for its idle time.
    pub(crate) senders: Vec<Waits>,
    /// Bytes of declared traffic over the whole run, as an interface counter at this line counts them.
    pub(crate) own_bytes: u64,
    /// The interface of an agent's host at this line; `None` before the first flow.
    pub(crate) device: Option<String>,
    /// Parts of the ledger for each bit of the line.
    parts_per_bit: u64,
}

impl Line {
    /// Creates a line without postings. `wire` determines the parts for each bit.
    pub(crate) fn new(wire: &Wire) -> Self {
        Self { parts_per_bit: wire.packet(0, 0).parts_per_bit(), ..Self::default() }
    }

    /// Posts the headers of delivered messages.
    pub(crate) fn deliver_headers(&mut self, one: &Load, messages: u64) {
        for layer in Layer::ALL.into_iter().filter(|layer| *layer != Layer::Payload) {
            // `carry` adds the longer headers of IPv6 as a tunnel header. Real tunnel headers do not reach hosts.
            let account = if layer == Layer::TunnelHeader { Layer::IpHeader } else { layer };
            self.accounts.post(Account::layer(account), one.parts(layer) * u128::from(messages));
        }
    }

    /// Posts the payload of messages to an account.
    pub(crate) fn post_payload(&mut self, account: Account, one: &Load, messages: u64) {
        self.accounts.post(account, one.parts(Layer::Payload) * u128::from(messages));
    }

    /// Posts payload bytes to an account.
    pub(crate) fn post_bytes(&mut self, account: Account, bytes: u64) {
        self.post_bits(account, bytes * 8);
    }

    /// Posts bits to an account.
    pub(crate) fn post_bits(&mut self, account: Account, bits: u64) {
        self.accounts.post(account, u128::from(bits) * u128::from(self.parts_per_bit));
    }

    /// Posts headers and payload of messages to one account. Physical framing keeps its own account.
    pub(crate) fn post_whole(&mut self, account: Account, one: &Load, messages: u64) {
        let physical = one.parts(Layer::Physical);
        self.accounts.post(Account::layer(Layer::Physical), physical * u128::from(messages));
        self.accounts.post(account, (u128::from(one.0.line()) - physical) * u128::from(messages));
    }

    /// Posts the headers of messages to one account. Physical framing keeps its own account.
    pub(crate) fn post_headers(&mut self, account: Account, one: &Load, messages: u64) {
        self.post_whole(account, one, messages);
        self.accounts.take(account, one.parts(Layer::Payload) * u128::from(messages));
    }

    /// Posts single fragments of messages to one account.
    pub(crate) fn post_fragments(&mut self, account: Account, one: &Load, fragments: u64) {
        let packets = u128::from(one.packets());
        let (physical, each) = (one.parts(Layer::Physical) / packets, u128::from(one.0.line()) / packets);
        self.accounts.post(Account::layer(Layer::Physical), physical * u128::from(fragments));
        self.accounts.post(account, (each - physical) * u128::from(fragments));
    }

    /// Closes the ledger: idle time fills it up to the capacity of the line in a window of `window_ns` nanoseconds. The names are of the link, the node where the
    /// line begins and the node where it ends. `wire` is the format of the line, `framed` is true if an idle line also sends its physical framing. Adds a note if
    /// the line carried more than its rate allows.
    pub(crate) fn close(
        mut self,
        names: [&str; 3],
        (wire, framed): (&Wire, bool),
        window_ns: u64,
        notes: &mut Vec<String>,
    ) -> ClosedLine {
        let [link, from, to] = names;
        let capacity = wire.capacity() * u128::from(window_ns) / 1_000_000_000;
        // Data of TCP that is still in a queue discipline of the sender has not crossed the line.
        self.accounts.take(Account::IN_FLIGHT, self.accounts.total().saturating_sub(capacity));
        let carried = self.accounts.total();
        if carried as f64 > capacity as f64 * NEARLY {
            // A window can be so short that the line carries nothing in it.
            let over = match capacity {
                0 => String::new(),
                _ => format!("{:.1} % ", 100.0 * (carried as f64 / capacity as f64 - 1.0)),
            };
            notes.push(format!(
                "link `{link}` carried {over}more than its rate from `{from}` on: its ledger counts the carried bits as capacity"
            ));
        }
        let whole = capacity.max(carried);
        let mut left = whole - carried;
        if framed && let Some(cell) = wire.cell() {
            let framing = left * u128::from(cell.parts(Layer::Physical)) / u128::from(cell.line());
            self.accounts.post(Account::layer(Layer::Physical), framing);
            left -= framing;
        }
        post_idle(&mut self.accounts, left, &self.senders);
        ClosedLine {
            from: from.to_owned(),
            to: to.to_owned(),
            capacity: whole,
            parts_per_bit: self.parts_per_bit,
            accounts: self.accounts,
        }
    }
}

/// The closed ledger of a line, in parts.
#[derive(Debug)]
pub(crate) struct ClosedLine {
    /// Node where the line begins.
    from: String,
    /// Node where the line ends.
    to: String,
    /// Sum of the accounts.
    capacity: u128,
    parts_per_bit: u64,
    accounts: Accounts,
}

impl ClosedLine {
    /// Returns two shares of the capacity: all but idle time, and the payload delivered to all flows; `None` without capacity.
    pub(crate) fn busy_and_delivered(&self) -> Option<(f64, f64)> {
        let whole = self.capacity as f64;
        let delivered = self.accounts.get(Account::DELIVERED.name());
        (self.capacity > 0).then(|| (1.0 - self.accounts.idle() as f64 / whole, delivered as f64 / whole))
    }

    /// Returns the rate of the line in bit/s for a window of this length; 0 for a length of 0.
    pub(crate) fn rate(&self, seconds: f64) -> f64 {
        if seconds > 0.0 { self.capacity as f64 / self.parts_per_bit as f64 / seconds } else { 0.0 }
    }

    /// Returns the ledger in the form of outcomes.
    pub(crate) fn stored(self) -> DirectionOutcome {
        let accounts = self.accounts.iter().map(|(name, parts)| (name.to_owned(), parts));
        let ledger = Ledger {
            units_per_bit: self.parts_per_bit,
            capacity: self.capacity,
            accounts: accounts.collect(),
        };
        DirectionOutcome { from: self.from, to: self.to, ledger: Some(ledger), ..DirectionOutcome::default() }
    }
}
