//! The accounts of a line: its parts by use.

use std::ops::{AddAssign, Range};

use engpass_model::wire::layers::Layer;

use super::idle_reasons::REASONS;

/// Indices in [`NAMES`]. The first accounts are the [`Layer`]s of delivered packets; behind `delivered`, their payload, follow packets by delivery status.
pub(super) const DELIVERED: usize = Layer::Payload as usize;
pub(super) const DUPLICATE: usize = DELIVERED + 1;
pub(super) const DEAD: usize = DELIVERED + 2;
pub(super) const IN_FLIGHT: usize = DELIVERED + 3;
pub(super) const CONTROL: usize = DELIVERED + 4;
/// Packets that a measured interface counted and no declared traffic explains.
const UNDECLARED: usize = CONTROL + 1;
/// Account of idle time of a line whose sender is a path of an emulated network: its real host sent nothing. Only the host knows whether its application had
/// nothing to send, or what held back its TCP.
pub(super) const HOST: usize = UNDECLARED + 1;
/// The first account of idle time by reason.
pub(super) const IDLE: usize = HOST + 1;
/// Idle time for which no counter of a real host gives a reason.
const UNKNOWN: usize = IDLE + REASONS;

/// Names of the accounts: overheads from the outermost layer inwards, packets by delivery status, idle time by reason. Those of generators come before
/// [`HOST`].
const NAMES: [&str; UNKNOWN + 1] = [
    "physical framing",
    "cell headers",
    "frame headers",
    "padding",
    "AAL5 trailers",
    "encapsulation",
    "IP headers",
    "tunnel headers",
    "transport headers",
    "delivered",
    "duplicate",
    "lost datagrams",
    "in flight",
    "ACK and control",
    "undeclared traffic",
    "idle: real host",
    "idle: application",
    "idle: CPU",
    "idle: NIC buffer",
    "idle: send buffer",
    "idle: receive window",
    "idle: congestion window",
    "idle: retransmission timer",
    "idle: Nagle",
    "idle: silly window avoidance",
    "idle: handshake",
    "idle: pacing",
    "idle: shaper",
    "idle: upstream",
    "idle: other way",
    "idle: line down",
    "idle: no sender",
    "idle: unknown",
];

/// Accounts that belong together.
pub struct Family {
    /// Name for programs.
    pub key: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Accounts that begin with this text belong to the family, too; empty if there are none.
    pub prefix: &'static str,
    accounts: Range<usize>,
}

impl Family {
    /// Returns the names of the accounts in the order of display, without those that the prefix adds.
    pub fn accounts(&self) -> &'static [&'static str] {
        &NAMES[self.accounts.clone()]
    }
}

/// All families, in the order of display. Each account is in one of them.
pub const FAMILIES: [Family; 6] = [
    Family { key: "overhead", title: "framing and headers", prefix: "", accounts: 0..DELIVERED },
    Family { key: "delivered", title: "delivered", prefix: "", accounts: DELIVERED..DUPLICATE },
    Family { key: "waste", title: "wasted", prefix: "", accounts: DUPLICATE..IN_FLIGHT },
    Family { key: "transit", title: "in flight at the end", prefix: "", accounts: IN_FLIGHT..CONTROL },
    Family { key: "other", title: "other traffic", prefix: GENERATOR, accounts: CONTROL..HOST },
    Family { key: "idle", title: "idle", prefix: "idle: ", accounts: HOST..NAMES.len() },
];

/// Beginning of the names of generators' accounts.
const GENERATOR: &str = "generator: ";

/// An account to which counters of real hosts are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account(usize);

impl Account {
    /// Payload that arrived.
    pub const DELIVERED: Self = Self(DELIVERED);
    /// Payload that arrived before.
    pub const DUPLICATE: Self = Self(DUPLICATE);
    /// Packets of datagrams and segments that did not arrive.
    pub const LOST: Self = Self(DEAD);
    /// Payload that had left its sender, but not arrived, when the window closed.
    pub const IN_FLIGHT: Self = Self(IN_FLIGHT);
    /// Packets without payload.
    pub const CONTROL: Self = Self(CONTROL);
    /// Packets that no declared traffic explains.
    pub const UNDECLARED: Self = Self(UNDECLARED);
    /// Idle: the application had nothing to send.
    pub const APPLICATION: Self = Self(IDLE);
    /// Idle: the sender had no CPU time.
    pub const CPU: Self = Self(IDLE + 1);
    /// Idle: the send buffer was full.
    pub const SEND_BUFFER: Self = Self(IDLE + 3);
    /// Idle: the receive window was full.
    pub const RECEIVE_WINDOW: Self = Self(IDLE + 4);
    /// Idle: the congestion window was full.
    pub const CONGESTION_WINDOW: Self = Self(IDLE + 5);
    /// Idle: the sender waited for its retransmission timer.
    pub const RETRANSMISSION_TIMER: Self = Self(IDLE + 6);
    /// Idle: something before the line held packets back.
    pub const UPSTREAM: Self = Self(UNKNOWN - 4);
    /// Idle: no flow sends over the line.
    pub const NO_SENDER: Self = Self(UNKNOWN - 1);
    /// Idle: no counter gives a reason.
    pub const UNKNOWN: Self = Self(UNKNOWN);

    /// Returns the account of a layer of delivered packets.
    pub const fn layer(layer: Layer) -> Self {
        Self(layer as usize)
    }

    /// Returns the name of the account.
    pub const fn name(self) -> &'static str {
        NAMES[self.0]
    }

    /// Returns true for an account of idle time.
    pub const fn is_idle(self) -> bool {
        self.0 >= HOST
    }
}

/// Parts of a line by account, in the order of display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accounts {
    pub(super) named: [u128; NAMES.len()],
    /// Name of the account, and parts, of each generator.
    generated: Vec<(String, u128)>,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { named: [0; NAMES.len()], generated: Vec::new() }
    }
}

impl Accounts {
    /// Returns the names of all accounts that are not zero, and their parts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u128)> {
        let named = NAMES.into_iter().zip(self.named);
        let generated = self.generated.iter().map(|(name, parts)| (name.as_str(), *parts));
        let all = named.clone().take(HOST).chain(generated).chain(named.skip(HOST));
        all.filter(|(_, parts)| *parts > 0)
    }

    /// Returns the parts of the account `name`, or 0 if there is no such account.
    pub fn get(&self, name: &str) -> u128 {
        self.iter().find(|(account, _)| *account == name).map_or(0, |(_, parts)| parts)
    }

    /// Returns the sum of all accounts.
    pub fn total(&self) -> u128 {
        let generated = self.generated.iter().map(|(_, parts)| parts);
        self.named.iter().chain(generated).sum()
    }

    /// Adds parts to an account.
    pub fn post(&mut self, account: Account, parts: u128) {
        self.named[account.0] += parts;
    }

    /// Takes parts from an account, at most all, and returns how many it took.
    pub fn take(&mut self, account: Account, parts: u128) -> u128 {
        let taken = parts.min(self.named[account.0]);
        self.named[account.0] -= taken;
        taken
    }

    /// Returns the parts of all accounts of idle time.
    pub fn idle(&self) -> u128 {
        self.named[HOST..].iter().sum()
    }

    /// Adds the account of a generator, which must have none yet.
    pub(super) fn put_generated(&mut self, generator: &str, parts: u128) {
        self.generated.push((format!("{GENERATOR}{generator}"), parts));
    }
}

impl AddAssign<&Self> for Accounts {
    /// Adds the accounts of the other direction of the link. A generator uses only one of the two.
    fn add_assign(&mut self, other: &Self) {
        self.named.iter_mut().zip(other.named).for_each(|(sum, parts)| *sum += parts);
        self.generated.extend_from_slice(&other.generated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_account_is_in_one_family() {
        let listed: Vec<_> = FAMILIES.iter().flat_map(Family::accounts).collect();
        assert_eq!(listed, NAMES.iter().collect::<Vec<_>>());
    }

    #[test]
    fn accounts_have_the_names_of_the_contract() {
        let named = [
            (Account::layer(Layer::Physical), "physical framing"),
            (Account::layer(Layer::TransportHeader), "transport headers"),
            (Account::DELIVERED, "delivered"),
            (Account::DUPLICATE, "duplicate"),
            (Account::LOST, "lost datagrams"),
            (Account::IN_FLIGHT, "in flight"),
            (Account::CONTROL, "ACK and control"),
            (Account::UNDECLARED, "undeclared traffic"),
            (Account::APPLICATION, "idle: application"),
            (Account::CPU, "idle: CPU"),
            (Account::SEND_BUFFER, "idle: send buffer"),
            (Account::RECEIVE_WINDOW, "idle: receive window"),
            (Account::CONGESTION_WINDOW, "idle: congestion window"),
            (Account::RETRANSMISSION_TIMER, "idle: retransmission timer"),
            (Account::UPSTREAM, "idle: upstream"),
            (Account::NO_SENDER, "idle: no sender"),
            (Account::UNKNOWN, "idle: unknown"),
        ];
        for (account, name) in named {
            assert_eq!(account.name(), name);
            assert_eq!(account.is_idle(), name.starts_with("idle: "));
        }
    }
}
