//! The components of an Engpass network.
//!
//! The crate is pure: it uses no clock, socket, thread or file. Time is an argument ([`time::Time`], integer picoseconds). Random numbers
//! come from a seed and an element's name ([`random::Stream`]). Each component is one file: its config (whose doc comments become the
//! reference), its state, its behaviour, its tests.
//!
//! The modules follow a message through the network:
//!
//! - [`source`] creates messages, and [`host`] computes the CPU time of sending and receiving them.
//! - [`wire`] gives their length at every layer, [`idle`] their time in a network without other traffic.
//! - [`shape`] paces cells, which move in [trains](cell_train). [`discard`] and [`schedule`] manage queues of cells, [`queue`] queues of packets.
//! - A [`router`] forwards packets with its [`engine`]s: [`switching`] says which one. [`forward`] chooses among equal-cost paths, and a [`bond`] among its member links.
//! - An [`event`] takes a link down or up, or lets a receiver join or leave a group ([`igmp`]). A [`tunnel`] adds headers between two routers.
//! - [`tcp`] is one TCP endpoint.
//!
//! A [`window`] is the part of a run that is measured.

pub mod arp;
pub mod bond;
pub mod cell_train;
pub mod circuit;
pub mod component_family;
pub mod discard;
pub mod engine;
pub mod event;
pub mod forward;
pub mod host;
pub mod idle;
pub mod igmp;
pub mod line;
pub mod link;
pub mod queue;
pub mod random;
pub mod range_errors;
pub mod router;
pub mod schedule;
pub mod shape;
pub mod source;
pub mod switch;
pub mod switching;
pub mod tcp;
pub mod text;
pub mod time;
pub mod tunnel;
pub mod unit;
pub mod window;
pub mod wire;
