//! No load balancing: one path carries all packets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, EcmpConfig, Forward, Keep, Member, PacketView};

/// All packets take the path whose links come first in the file. The other paths are never used, even while the first is down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct First {}

impl EcmpConfig for First {
    fn chooses(&self) -> bool {
        false
    }

    fn build(&self) -> Box<dyn Forward> {
        Box::new(Self {})
    }
}

impl Forward for First {
    fn decide(&mut self, _: &PacketView<'_>, _: &[Member]) -> Answer {
        Answer { member: 0, keep: Keep::Flow }
    }

    fn is_per_packet(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::tests::{HEADS, members};

    #[test]
    fn first_policy_uses_the_first_member_even_if_it_is_down() {
        let mut state = First {}.build();
        let view = PacketView { heads: &HEADS, fragment: false, macs: [0; 2] };
        for down in [&[] as &[usize], &[0], &[1]] {
            let answer = state.decide(&view, &members(&[1, 1], down));
            assert_eq!(answer, Answer { member: 0, keep: Keep::Flow });
        }
    }
}
