//! Packet injection on random testbeds: against modelled hosts, and against itself.

mod choices;
mod law;
mod modelled;
