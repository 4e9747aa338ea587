//! Networks whose packets come from outside, on random testbeds: against modelled hosts, and against themselves.

mod choices;
mod law;
mod modelled;
