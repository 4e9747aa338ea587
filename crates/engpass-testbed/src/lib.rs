//! Reads a testbed file and checks it.
//!
//! [`load`] reads a file and all that changes it, in this order. The text becomes a tree in which every value knows its position (`tree`). `--set`, variants
//! and sweep values are applied (`overrides`, `sweep`). The tables become components (`read`), are checked (`check`) and resolved to a [`Topology`]
//! (`resolve`), with paths from `route`. Every problem becomes a [`Diagnostic`] and the work continues, so that one pass finds all problems.

mod amount;
mod arp;
mod bonds;
mod branches;
mod campaign;
mod catalogue;
mod check;
pub mod codes;
mod deserialize;
pub mod diagnostic;
mod drawing;
mod events;
mod findings;
mod fit;
mod links;
mod members;
mod membership;
mod no_route;
mod overrides;
pub mod path;
mod path_mtu;
mod plan;
mod provenance;
mod rates;
mod read;
mod reference;
mod reported;
mod required_keys;
mod resolve;
mod route;
mod schema;
mod segments;
mod settings;
mod source;
mod spare;
mod sweep;
pub mod testbed;
pub mod topology;
mod tree;
mod tunnels;
mod unclosed;

pub use campaign::{Campaign, Point, load};
pub use catalogue::catalogue;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use drawing::{Drawing, drawing};
pub use events::{Change, EventChanges, changes_by_event, shares_down};
pub use membership::Membership;
pub use plan::{PointPlan, plan};
pub use reference::reference;
pub use route::{
    Choice, Gateway, Lane, Move, NextHop, Onward, Spread, Stop, choice, heads, icmp_heads, lanes, macs,
    node_address, source_ports, tunnel_heads,
};
pub use schema::{plan_schema, schema};
pub use settings::Setting;
pub use source::{MAX_TEXT, Source};
pub use sweep::{Axis, AxisValue, MAX_VALUES};
pub use testbed::{Run, Testbed};
pub use topology::Topology;
