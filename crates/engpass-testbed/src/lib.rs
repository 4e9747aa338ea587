//! From a testbed file to a checked testbed.
//!
//! [`load`] reads a file and everything that changes it, in this order: the text becomes a tree in which every value
//! knows its place (`tree`); `--set`, variants and sweep values are put in their places (`overrides`, `sweep`); the
//! tables become components (`read`), are checked (`check`) and joined to a [`Topology`] (`resolve`), whose ways `route` finds. Whatever is
//! wrong on the way becomes a [`Diagnostic`] and the way goes on, so that one pass finds everything.

mod amount;
mod arp;
mod bonds;
mod branches;
mod campaign;
mod catalogue;
mod check;
pub mod codes;
mod de;
pub mod diagnostic;
mod drawing;
mod events;
mod faulty;
mod findings;
mod links;
mod lost;
mod origin;
mod overrides;
pub mod path;
mod path_mtu;
mod plan;
mod rates;
mod read;
mod resolve;
mod route;
mod schema;
mod segments;
mod shape;
mod source;
mod spare;
mod sweep;
pub mod testbed;
pub mod topology;
mod tree;
mod tunnels;

pub use campaign::{Campaign, Point, load};
pub use catalogue::catalogue;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use drawing::{Drawing, drawing};
pub use events::{Change, EventChanges, changes, changes_by_event};
pub use plan::{PointPlan, plan};
pub use route::{
    Choice, Gateway, Lane, Move, NextHop, Onward, Spread, Stop, choice, heads, icmp_heads, lanes, macs,
    tunnel_heads,
};
pub use schema::{plan_schema, schema};
pub use source::{MAX_TEXT, Source};
pub use sweep::{Axis, AxisValue, MAX_VALUES};
pub use testbed::{Run, Testbed};
pub use topology::Topology;
