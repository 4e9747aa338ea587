//! The accounts of a line: its parts by use.

use std::ops::AddAssign;

use engpass_model::wire::layers::Layer;

use super::idle_reasons::REASONS;

/// Indices in [`NAMES`]. The first accounts are the [`Layer`]s of delivered packets; behind `delivered`, their payload, follow packets by delivery status.
pub(super) const DELIVERED: usize = Layer::Payload as usize;
pub(super) const DUPLICATE: usize = DELIVERED + 1;
pub(super) const DEAD: usize = DELIVERED + 2;
pub(super) const IN_FLIGHT: usize = DELIVERED + 3;
pub(super) const CONTROL: usize = DELIVERED + 4;
/// Account of idle time of a line whose sender is a path of an emulated network: its real host sent nothing. Only the host knows whether its application had
/// nothing to send, or what held back its TCP.
pub(super) const HOST: usize = CONTROL + 1;
/// The first account of idle time by reason.
pub(super) const IDLE: usize = HOST + 1;

/// Names of the accounts: overheads from the outermost layer inwards, packets by delivery status, idle time by reason. Those of generators come before
/// [`HOST`].
const NAMES: [&str; IDLE + REASONS] = [
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
];

/// Parts of a line by account, in the order of display.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    pub(super) named: [u128; NAMES.len()],
    /// Name of the account, and parts, of each generator.
    generated: Vec<(String, u128)>,
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

    /// Adds the account of a generator, which must have none yet.
    pub(super) fn put_generated(&mut self, generator: &str, parts: u128) {
        self.generated.push((format!("generator: {generator}"), parts));
    }
}

impl AddAssign<&Self> for Accounts {
    /// Adds the accounts of the other direction of the link. A generator uses only one of the two.
    fn add_assign(&mut self, other: &Self) {
        self.named.iter_mut().zip(other.named).for_each(|(sum, parts)| *sum += parts);
        self.generated.extend_from_slice(&other.generated);
    }
}
