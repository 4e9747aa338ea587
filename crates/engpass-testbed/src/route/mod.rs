//! The router: it finds the ways of packets and of circuits. Everything that asks which way something takes asks here.
//!
//! A [`Graph`] knows links, for circuits and for messages about ways that do not exist. [`Ways`] knows what packets may take, links that carry
//! frames and circuits. It finds everything that packets between two hosts may take, and the one way that always takes the first of several
//! equally short ones ([`Reach`]); and the way over a given circuit ([`Ways::path_over`]). Of the ways between which policies choose, [`lanes`]
//! finds those that the packets of each connection take.

mod between;
mod choice;
mod fan;
mod graph;
mod heads;
mod lanes;
mod over;
mod paths;
mod towards;
mod ways;

pub use between::{Gateway, NextHop};
pub use choice::{Choice, choice, macs};
pub(crate) use fan::{Reach, narrowest};
pub(crate) use graph::Graph;
pub use heads::{heads, icmp_heads, tunnel_heads};
pub use lanes::{Lane, Move, Onward, Spread, Stop, lanes};
pub(crate) use ways::{Passage, Ways};
