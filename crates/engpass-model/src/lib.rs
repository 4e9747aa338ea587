//! The components of an Engpass network.
//!
//! Everything here is pure: no clock, no socket, no thread, no file. Time is an argument ([`time::Time`],
//! integer picoseconds), randomness comes from a seed and an element's name ([`random::Stream`]), and a component
//! is one file: its config (whose doc comments become the reference), its state, its behaviour, its tests.
//!
//! The folders follow a message on its way: [`source`] makes it, [`host`] pays for it, [`wire`] says how long it is at
//! every layer, [`shape`] spaces its cells, [`discard`] and [`schedule`] decide for a queue of cells and [`queue`] for one
//! of packets, [`forward`] chooses among ways, a [`bond`] among links, an [`event`] takes one away, and a [`tunnel`] is a way
//! with headers of its own; [`tcp`] is a transport protocol, an endpoint at a time.

pub mod arp;
pub mod bond;
pub mod circuit;
pub mod complaint;
pub mod discard;
pub mod event;
pub mod family;
pub mod forward;
pub mod host;
pub mod line;
pub mod link;
pub mod queue;
pub mod random;
pub mod router;
pub mod schedule;
pub mod shape;
pub mod source;
pub mod switch;
pub mod tcp;
pub mod text;
pub mod time;
pub mod tunnel;
pub mod unit;
pub mod wire;
