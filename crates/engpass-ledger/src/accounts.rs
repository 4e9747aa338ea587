//! What a line was used for: parts of it by account.

use std::ops::AddAssign;

use engpass_model::wire::layers::Layer;

use super::attribute::REASONS;

/// The first accounts are those of the [`Layer`]s of what was delivered; behind its payload stands what else became of packets.
pub(super) const DELIVERED: usize = Layer::Payload as usize;
pub(super) const DUPLICATE: usize = DELIVERED + 1;
pub(super) const DEAD: usize = DELIVERED + 2;
pub(super) const IN_FLIGHT: usize = DELIVERED + 3;
pub(super) const CONTROL: usize = DELIVERED + 4;
/// What packets from outside leave of a line: their host sent nothing, and it alone knows whether that was its application, or
/// what held back its TCP.
pub(super) const HOST: usize = CONTROL + 1;
/// The first of the accounts of idle time by reason.
pub(super) const IDLE: usize = HOST + 1;

/// Overheads from the outside to the inside, packets by fate, idle time by reason. What generators sent is shown before [`HOST`].
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

/// Parts of a line by account, in the order in which they are shown; those without anything are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    pub(super) named: [u128; NAMES.len()],
    /// One for every generator.
    generated: Vec<(String, u128)>,
}

impl Accounts {
    /// Accounts that have anything, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u128)> {
        let named = NAMES.into_iter().zip(self.named);
        let generated = self.generated.iter().map(|(name, parts)| (name.as_str(), *parts));
        let all = named.clone().take(HOST).chain(generated).chain(named.skip(HOST));
        all.filter(|(_, parts)| *parts > 0)
    }

    /// What the account of this name has.
    pub fn get(&self, name: &str) -> u128 {
        self.iter().find(|(account, _)| *account == name).map_or(0, |(_, parts)| parts)
    }

    /// All accounts together.
    pub fn total(&self) -> u128 {
        let generated = self.generated.iter().map(|(_, parts)| parts);
        self.named.iter().chain(generated).sum()
    }

    /// So many parts are the cells of a generator that has not had any.
    pub(super) fn put_generated(&mut self, generator: &str, parts: u128) {
        self.generated.push((format!("generator: {generator}"), parts));
    }
}

impl AddAssign<&Self> for Accounts {
    /// Those of another direction of the link: no generator uses both.
    fn add_assign(&mut self, other: &Self) {
        self.named.iter_mut().zip(other.named).for_each(|(sum, parts)| *sum += parts);
        self.generated.extend_from_slice(&other.generated);
    }
}
