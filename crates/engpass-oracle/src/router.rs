//! Routers (docs/model.md, "Ethernet switches" and "Routers").

use std::collections::VecDeque;

/// What waits for a router, the packet in work in front.
#[derive(Debug, Default)]
pub(crate) struct Router {
    pub(crate) waiting: VecDeque<usize>,
}
