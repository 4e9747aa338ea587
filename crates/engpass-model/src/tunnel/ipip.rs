//! IP within IP (RFC 2003).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TunnelHeaderConfig;

/// IP within IP (RFC 2003): the packet directly follows the outer IP header.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IpIp {}

impl TunnelHeaderConfig for IpIp {
    fn bytes(&self) -> u64 {
        0
    }

    fn protocol(&self) -> u8 {
        4
    }

    fn write(&self, _: &[u8], _: u32, _: &mut Vec<u8>) {}
}
