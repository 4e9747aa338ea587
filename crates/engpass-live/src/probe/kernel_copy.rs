//! Throughput of the kernel's copies: reads from and writes to a file in memory.

use std::io;

use schemars::JsonSchema;
use serde::Serialize;

use super::sample_stats::{Spread, spread};
use super::sys;

/// Bytes per call.
pub(super) const CALL: usize = 128 << 10;

/// Throughput of the kernel's copy, per CPU time of the thread, with [`CALL`] bytes per call.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct KernelCopy {
    /// Size in bytes of the file that the calls cycle through.
    pub bytes: u64,
    /// Bytes per second from the kernel to the program (`pread`).
    pub out: Spread,
    /// Bytes per second from the program to the kernel (`pwrite`).
    pub into: Spread,
}

/// Measures the kernel's copy on one CPU.
///
/// # Errors
/// Fails when the kernel has no memory for the file.
pub(super) fn kernel_copy(cpu: usize, bytes: u64, repeats: usize) -> io::Result<KernelCopy> {
    let work = move || {
        sys::pin(cpu);
        let file = sys::memory_file(bytes)?;
        let mut buffer = sys::Region::new(CALL)?;
        let rounds = ((128 << 20) / bytes).max(1);
        let mut rate = |into: bool| -> io::Result<f64> {
            let begin = sys::thread_cpu();
            for _ in 0..rounds {
                for at in (0..bytes).step_by(CALL) {
                    match into {
                        true => sys::write_at(&file, buffer.bytes(), at)?,
                        false => sys::read_at(&file, buffer.bytes_mut(), at)?,
                    };
                }
            }
            Ok((bytes * rounds) as f64 * 1e9 / (sys::thread_cpu() - begin).max(1) as f64)
        };
        let (mut out, mut into) = (Vec::new(), Vec::new());
        for _ in 0..repeats {
            out.push(rate(false)?);
            into.push(rate(true)?);
        }
        Ok(KernelCopy { bytes, out: spread(&out), into: spread(&into) })
    };
    sys::aside(work)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_copy_rates_are_measured() {
        let found = kernel_copy(sys::cpus()[0], 1 << 20, 1).unwrap();
        assert!(found.out.best > 1e6 && found.into.best > 1e6, "{found:?}");
    }
}
