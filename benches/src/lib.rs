//! Workloads of the benchmarks: testbeds, and functions that run and measure them.

pub mod dumbbell;
pub mod heap;
pub mod line;
pub mod measure;
pub mod phones;
pub mod workload;
