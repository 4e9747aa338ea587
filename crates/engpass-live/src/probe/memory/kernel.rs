//! The loops that move memory, each as few instructions as the processor needs for it.
//!
//! They are written in assembler where a compiler could do something else: choose other widths, call a library, leave a loop out.
#![allow(
    unsafe_code,
    reason = "vector instructions, non-temporal stores and `rep movsb` are not in safe Rust"
)]

mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

use schemars::JsonSchema;
use serde::Serialize;

/// A way to read, write or copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kernel {
    /// Vector loads.
    Read,
    /// Vector stores.
    Write,
    /// Vector stores that go past the caches.
    WriteNonTemporal,
    /// `memcpy` of the C library.
    CopyLibrary,
    /// Vector loads and stores.
    CopyVector,
    /// Vector loads, and stores that go past the caches.
    CopyNonTemporal,
    /// `rep movsb`.
    CopyString,
    /// 64 bits at a time, as lmbench's `bw_mem cp`.
    CopyWords,
    /// Reading for the Internet checksum (RFC 1071).
    Checksum,
}

impl Kernel {
    /// All of them.
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

    /// Transfers over the memory bus for a byte that is in no cache, at least: without what a plain store reads first.
    pub const fn transfers(self) -> u64 {
        match self {
            Self::Read | Self::Write | Self::WriteNonTemporal | Self::Checksum => 1,
            _ => 2,
        }
    }

    /// Whether it copies.
    pub const fn copies(self) -> bool {
        self.transfers() == 2
    }

    /// Whether this processor can do it.
    pub fn is_here(self) -> bool {
        match self {
            Self::WriteNonTemporal | Self::CopyNonTemporal | Self::CopyString => cfg!(target_arch = "x86_64"),
            _ => true,
        }
    }
}

/// Vector registers that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// 512 bits, AVX-512.
    Avx512,
    /// 256 bits, AVX2.
    Avx2,
    /// What the compiler makes of plain loops.
    Plain,
}

impl Width {
    /// The widest that this processor has.
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

/// A multiple of this many bytes can be worked on, at such an address.
pub const BLOCK: usize = 256;

/// Do it once. The result depends on what was read, so that reading is not for nothing.
///
/// # Panics
/// When the slices differ in length, or are no multiple of [`BLOCK`] at an address that is one.
pub fn work(kernel: Kernel, width: Width, from: &[u8], to: &mut [u8]) -> u64 {
    assert!(from.len() == to.len() && from.len().is_multiple_of(BLOCK) && !from.is_empty(), "whole blocks");
    assert!(
        from.as_ptr().addr().is_multiple_of(BLOCK) && to.as_ptr().addr().is_multiple_of(BLOCK),
        "aligned blocks"
    );
    match kernel {
        Kernel::CopyLibrary => {
            // SAFETY: the slices are as long as each other and do not overlap, one being borrowed for writing.
            unsafe { libc::memcpy(to.as_mut_ptr().cast(), from.as_ptr().cast(), from.len()) };
            0
        }
        Kernel::CopyWords => {
            let words = from.len() / size_of::<u64>();
            let (from, to) = (from.as_ptr().cast::<u64>(), to.as_mut_ptr().cast::<u64>());
            for at in 0..words {
                // SAFETY: `at` is below the number of words; both are aligned to more than a word.
                unsafe { to.add(at).write_volatile(from.add(at).read()) };
            }
            0
        }
        #[cfg(target_arch = "x86_64")]
        _ => x86::work(kernel, width, from, to),
        #[cfg(not(target_arch = "x86_64"))]
        _ => {
            let _ = width;
            plain::work(kernel, from, to)
        }
    }
}

#[cfg(test)]
mod tests;
