//! Traffic between real hosts. [`requests`] turns a point into requests to the agents of its hosts, and [`measured`] turns their answers into the outcome of
//! the point: figures of the flows, ledgers of the lines, and reasons. Both are pure.
//!
//! A kind of traffic is one file in `kind/`. The agents' protocol is in docs/agent.md.

mod answer;
mod bottleneck;
mod counters;
mod crossing;
mod dilation;
mod failure;
mod figures;
mod flow;
mod idle_reasons;
mod kind;
mod ledgers;
mod line;
mod membership;
mod model;
mod outcome;
mod pacing;
mod plan;
mod request;
mod schema;
mod tcp;
mod text;

pub use answer::{Answers, Emulation, GroupTrial};
pub use failure::{Failure, check_end};
pub use outcome::measured;
pub use plan::{requests, unset_keys};
pub use request::{
    Asked, Congestion, Engine, FlowRequests, Limits, Prepare, Requests, Schedule, Series, Socket, StopRule,
};
pub use schema::schema;
