//! The oracle: a reference engine in which every cell, and every begin and end of a transmission, is an event.
//!
//! It is written from the pages of docs/ and from the standards that they cite. docs/why/ lists the code that it shares with the product;
//! `tools/oracle_apart.py` checks the list. The oracle is slow and simple on purpose: it is the specification in code. The tests of `engpass-simulate`
//! compare the fast engine with it, and the benchmarks measure how much time cell trains save.

mod accounts;
pub mod acted;
mod arp;
mod arrivals;
mod bond;
pub mod cell;
mod cost;
mod cpu;
pub mod engine;
mod entrance;
mod event_queue;
mod fragments;
mod frame_line;
mod generator;
mod group;
mod host;
mod icmp;
mod idle;
mod idle_reasons;
mod ledger;
mod line;
mod line_usage;
mod longest_queues;
mod membership;
mod nic;
mod outages;
pub mod outcome;
mod outer_ways;
mod packet;
mod policer;
mod possible;
pub mod queue;
mod rate;
mod reassembly;
pub mod resolve;
mod router;
mod routing;
mod sender_state;
mod switch;
mod tcp;
mod times;
mod transfer;
mod tunnel;
mod wire;
