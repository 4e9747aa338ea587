//! Finds the paths of packets and of circuits. All other code gets paths from here.
//!
//! [`Graph`] holds the links, for circuits and for error messages about missing paths. [`RoutingGraph`] holds what packets may take: links that carry frames,
//! circuits and tunnels. It finds all shortest paths between two hosts and the one that takes the first of several equally short ones ([`ShortestPaths`]),
//! and the path over a given circuit ([`RoutingGraph::path_over`]). [`lanes()`] finds the paths of each connection among those that policies choose from.

mod choice;
mod fan;
mod graph;
mod heads;
mod host_paths;
mod lanes;
mod over;
mod paths;
mod routing;
mod towards;

pub use choice::{Choice, choice, macs};
pub(crate) use fan::{ShortestPaths, narrowest};
pub(crate) use graph::Graph;
pub use heads::{heads, icmp_heads, node_address, source_ports, tunnel_heads};
pub use host_paths::{Gateway, NextHop};
pub use lanes::{Lane, Move, Onward, Spread, Stop, lanes};
pub(crate) use routing::{Passage, RoutingGraph};
