//! Workloads of the benchmarks: testbeds, and how their runs are read.

pub mod dumbbell;
pub mod heap;
pub mod line;
pub mod measure;
pub mod phones;
pub mod workload;
