//! The loops that move memory, with as few instructions as the processor needs.
//!
//! Most are written in assembly, because a compiler might choose other vector widths, call a library or remove a loop.
#![allow(
    unsafe_code,
    reason = "vector instructions, non-temporal stores and `rep movsb` are not in safe Rust"
)]

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use schemars::JsonSchema;
use serde::Serialize;

/// A memory operation: a way to read, write or copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Vector loads.
    Read,
    /// Vector stores.
    Write,
    /// Vector stores that bypass the caches.
    WriteNonTemporal,
    /// `memcpy` of the C library.
    CopyLibrary,
    /// Vector loads and stores.
    CopyVector,
    /// Vector loads, and stores that bypass the caches.
    CopyNonTemporal,
    /// The instruction `rep movsb`.
    CopyString,
    /// 64 bits at a time, like lmbench's `bw_mem cp`.
    CopyWords,
    /// Loads and sums for the Internet checksum (RFC 1071).
    Checksum,
}

impl Kernel {
    /// All operations.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Write,
        Self::WriteNonTemporal,
        Self::CopyLibrary,
        Self::CopyVector,
        Self::CopyNonTemporal,
        Self::CopyString,
        Self::CopyWords,
        Self::Checksum,
    ];

    /// Least number of transfers over the memory bus per uncached byte: without the read that an ordinary store needs first.
    pub const fn transfers(self) -> u64 {
        match self {
            Self::Read | Self::Write | Self::WriteNonTemporal | Self::Checksum => 1,
            _ => 2,
        }
    }

    /// Returns whether the operation copies.
    pub const fn copies(self) -> bool {
        self.transfers() == 2
    }

    /// Returns whether this processor supports the operation.
    pub fn is_here(self) -> bool {
        match self {
            Self::WriteNonTemporal | Self::CopyNonTemporal | Self::CopyString => cfg!(target_arch = "x86_64"),
            _ => true,
        }
    }
}

/// Vector registers used by the loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// 512 bits (AVX-512).
    Avx512,
    /// 256 bits (AVX2).
    Avx2,
    /// Scalar loops, as the compiler translates them.
    Plain,
}

impl Width {
    /// Returns the widest registers that this processor has.
    pub fn widest() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                return Self::Avx512;
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Plain
    }
}

/// Slices must have an address and a length that are multiples of this many bytes.
pub const BLOCK: usize = 256;

/// Runs the operation once. The result depends on the data read, so that the compiler cannot remove the reads.
///
/// # Panics
/// If the slices differ in length, are empty, or violate the alignment of [`BLOCK`].
pub fn work(kernel: Kernel, width: Width, from: &[u8], to: &mut [u8]) -> u64 {
    assert!(
        from.len() == to.len() && from.len().is_multiple_of(BLOCK) && !from.is_empty(),
        "the length is a positive multiple of the block size"
    );
    assert!(
        from.as_ptr().addr().is_multiple_of(BLOCK) && to.as_ptr().addr().is_multiple_of(BLOCK),
        "the buffers are aligned to the block size"
    );
    match kernel {
        Kernel::CopyLibrary => {
            // SAFETY: the slices have equal length, and they do not overlap because one is borrowed mutably.
            unsafe { libc::memcpy(to.as_mut_ptr().cast(), from.as_ptr().cast(), from.len()) };
            0
        }
        Kernel::CopyWords => {
            let words = from.len() / size_of::<u64>();
            let (from, to) = (from.as_ptr().cast::<u64>(), to.as_mut_ptr().cast::<u64>());
            for at in 0..words {
                // SAFETY: `at` is below the number of words, and both pointers are aligned to more than a word.
                unsafe { to.add(at).write_volatile(from.add(at).read()) };
            }
            0
        }
        #[cfg(target_arch = "x86_64")]
        _ => x86::work(kernel, width, from, to),
        #[cfg(not(target_arch = "x86_64"))]
        _ => {
            let _ = width;
            portable::work(kernel, from, to)
        }
    }
}

#[cfg(test)]
mod tests;
