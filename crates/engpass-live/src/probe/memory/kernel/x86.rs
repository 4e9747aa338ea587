//! Loops for x86-64: AVX-512, AVX2, or scalar code for processors with neither.

use std::arch::asm;

use super::{Kernel, Width, portable};

/// Runs the kernel once.
pub(super) fn work(kernel: Kernel, width: Width, from: &[u8], to: &mut [u8]) -> u64 {
    let (start, length) = (from.as_ptr(), from.len());
    let target = to.as_mut_ptr();
    // SAFETY: the processor supports `width` (`Width::widest`), the slices are whole blocks at aligned addresses, and the loops stay within them.
    unsafe {
        match (kernel, width) {
            (Kernel::CopyString, _) => {
                string(start, target, length);
                0
            }
            (Kernel::WriteNonTemporal, Width::Plain) => words_past_caches(None, target, length),
            (Kernel::CopyNonTemporal, Width::Plain) => words_past_caches(Some(start), target, length),
            (_, Width::Plain) => portable::work(kernel, from, to),
            (Kernel::Read, Width::Avx512) => avx512::read(start, length),
            (Kernel::Read, Width::Avx2) => avx2::read(start, length),
            (Kernel::Write, Width::Avx512) => avx512::write(target, length),
            (Kernel::Write, Width::Avx2) => avx2::write(target, length),
            (Kernel::WriteNonTemporal, Width::Avx512) => avx512::write_past(target, length),
            (Kernel::WriteNonTemporal, Width::Avx2) => avx2::write_past(target, length),
            (Kernel::CopyVector, Width::Avx512) => avx512::copy(start, target, length),
            (Kernel::CopyVector, Width::Avx2) => avx2::copy(start, target, length),
            (Kernel::CopyNonTemporal, Width::Avx512) => avx512::copy_past(start, target, length),
            (Kernel::CopyNonTemporal, Width::Avx2) => avx2::copy_past(start, target, length),
            (Kernel::Checksum, Width::Avx512) => avx512::checksum(start, length),
            (Kernel::Checksum, Width::Avx2) => avx2::checksum(start, length),
            (Kernel::CopyLibrary | Kernel::CopyWords, _) => {
                unreachable!("copies without vectors are handled above")
            }
        }
    }
}

unsafe fn string(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        asm!("rep movsb", inout("rcx") length => _, inout("rsi") from => _, inout("rdi") to => _,
            options(nostack, preserves_flags));
    }
}

/// Writes 64-bit words with stores that bypass the caches. Without a source it writes a constant.
unsafe fn words_past_caches(from: Option<*const u8>, to: *mut u8, length: usize) -> u64 {
    for at in (0..length).step_by(8) {
        // SAFETY: guaranteed by the caller; `at` is below the length.
        unsafe {
            let word = from.map_or(3, |from| from.add(at).cast::<u64>().read());
            asm!("movnti [{to}], {word}", to = in(reg) to.add(at), word = in(reg) word, options(nostack, preserves_flags));
        }
    }
    // SAFETY: a fence has no operands.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) };
    0
}

/// The loops for one vector width. Parameters: register name (`zmm`), bytes per register, and the mnemonics of an aligned move, an unaligned move, a
/// non-temporal store, exclusive or, and, and the instruction that sets all bits of a register.
macro_rules! loops {
    ($name:ident, $r:literal, $bytes:literal, $move:literal, $any:literal, $past:literal, $xor:literal, $and:literal, $ones:literal) => {
        mod $name {
            use std::arch::asm;

            /// Reads with four registers at a time.
            pub(super) unsafe fn read(from: *const u8, length: usize) -> u64 {
                let mut all = [0_u64; 8];
                // SAFETY: guaranteed by the caller; `all` is as long as the widest register.
                unsafe {
                    asm!(
                        "vpxor xmm0, xmm0, xmm0",
                        "vpxor xmm1, xmm1, xmm1",
                        "vpxor xmm2, xmm2, xmm2",
                        "vpxor xmm3, xmm3, xmm3",
                        ".p2align 5",
                        "2:",
                        concat!($xor, " ", $r, "0, ", $r, "0, [{at}]"),
                        concat!($xor, " ", $r, "1, ", $r, "1, [{at} + ", $bytes, "]"),
                        concat!($xor, " ", $r, "2, ", $r, "2, [{at} + 2*", $bytes, "]"),
                        concat!($xor, " ", $r, "3, ", $r, "3, [{at} + 3*", $bytes, "]"),
                        concat!("add {at}, 4*", $bytes),
                        "cmp {at}, {end}",
                        "jb 2b",
                        concat!($xor, " ", $r, "0, ", $r, "0, ", $r, "1"),
                        concat!($xor, " ", $r, "2, ", $r, "2, ", $r, "3"),
                        concat!($xor, " ", $r, "0, ", $r, "0, ", $r, "2"),
                        concat!($any, " [{all}], ", $r, "0"),
                        "vzeroupper",
                        at = inout(reg) from => _, end = in(reg) from.add(length), all = in(reg) all.as_mut_ptr(),
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, options(nostack),
                    );
                }
                all.iter().fold(0, |all, one| all ^ one)
            }

            /// Sums 32-bit words in 64-bit lanes. The caller folds the sum to 16 bits (RFC 1071).
            pub(super) unsafe fn checksum(from: *const u8, length: usize) -> u64 {
                let mut all = [0_u64; 16];
                // SAFETY: guaranteed by the caller; `all` holds two registers.
                unsafe {
                    asm!(
                        "vpxor xmm0, xmm0, xmm0",
                        "vpxor xmm1, xmm1, xmm1",
                        "vpxor xmm2, xmm2, xmm2",
                        "vpxor xmm3, xmm3, xmm3",
                        $ones,
                        concat!("vpsrlq ", $r, "6, ", $r, "6, 32"),
                        ".p2align 5",
                        "2:",
                        concat!($move, " ", $r, "4, [{at}]"),
                        concat!($move, " ", $r, "5, [{at} + ", $bytes, "]"),
                        concat!($and, " ", $r, "7, ", $r, "4, ", $r, "6"),
                        concat!("vpsrlq ", $r, "4, ", $r, "4, 32"),
                        concat!("vpaddq ", $r, "0, ", $r, "0, ", $r, "7"),
                        concat!("vpaddq ", $r, "1, ", $r, "1, ", $r, "4"),
                        concat!($and, " ", $r, "7, ", $r, "5, ", $r, "6"),
                        concat!("vpsrlq ", $r, "5, ", $r, "5, 32"),
                        concat!("vpaddq ", $r, "2, ", $r, "2, ", $r, "7"),
                        concat!("vpaddq ", $r, "3, ", $r, "3, ", $r, "5"),
                        concat!("add {at}, 2*", $bytes),
                        "cmp {at}, {end}",
                        "jb 2b",
                        concat!("vpaddq ", $r, "0, ", $r, "0, ", $r, "1"),
                        concat!("vpaddq ", $r, "2, ", $r, "2, ", $r, "3"),
                        concat!("vpaddq ", $r, "0, ", $r, "0, ", $r, "2"),
                        concat!($any, " [{all}], ", $r, "0"),
                        "vzeroupper",
                        at = inout(reg) from => _, end = in(reg) from.add(length), all = in(reg) all.as_mut_ptr(),
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                        out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _, options(nostack),
                    );
                }
                all.iter().sum()
            }

            pub(super) unsafe fn write(to: *mut u8, length: usize) -> u64 {
                // SAFETY: guaranteed by the caller.
                unsafe { store!($r, $bytes, $move, "", to, length) };
                0
            }

            pub(super) unsafe fn write_past(to: *mut u8, length: usize) -> u64 {
                // SAFETY: guaranteed by the caller.
                unsafe { store!($r, $bytes, $past, "sfence", to, length) };
                0
            }

            pub(super) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) -> u64 {
                // SAFETY: guaranteed by the caller.
                unsafe { transfer!($r, $bytes, $move, $move, "", from, to, length) };
                0
            }

            pub(super) unsafe fn copy_past(from: *const u8, to: *mut u8, length: usize) -> u64 {
                // SAFETY: guaranteed by the caller.
                unsafe { transfer!($r, $bytes, $move, $past, "sfence", from, to, length) };
                0
            }
        }
    };
}

/// Stores a constant, two registers per iteration.
macro_rules! store {
    ($r:literal, $bytes:literal, $move:literal, $end:literal, $to:ident, $length:ident) => {
        asm!(
            "vpcmpeqd xmm0, xmm0, xmm0",
            ".p2align 5",
            "2:",
            concat!($move, " [{at}], ", $r, "0"),
            concat!($move, " [{at} + ", $bytes, "], ", $r, "0"),
            concat!("add {at}, 2*", $bytes),
            "cmp {at}, {end}",
            "jb 2b",
            $end,
            "vzeroupper",
            at = inout(reg) $to => _, end = in(reg) $to.add($length), out("xmm0") _, options(nostack),
        )
    };
}

/// Loads and stores, two registers per iteration.
macro_rules! transfer {
    ($r:literal, $bytes:literal, $load:literal, $store:literal, $end:literal, $from:ident, $to:ident, $length:ident) => {
        asm!(
            ".p2align 5",
            "2:",
            concat!($load, " ", $r, "0, [{at}]"),
            concat!($load, " ", $r, "1, [{at} + ", $bytes, "]"),
            concat!($store, " [{at} + {way}], ", $r, "0"),
            concat!($store, " [{at} + {way} + ", $bytes, "], ", $r, "1"),
            concat!("add {at}, 2*", $bytes),
            "cmp {at}, {end}",
            "jb 2b",
            $end,
            "vzeroupper",
            at = inout(reg) $from => _,
            way = in(reg) $to.addr().wrapping_sub($from.addr()),
            end = in(reg) $from.add($length),
            out("xmm0") _, out("xmm1") _, options(nostack),
        )
    };
}

loops!(
    avx512,
    "zmm",
    "64",
    "vmovdqa64",
    "vmovdqu64",
    "vmovntdq",
    "vpxorq",
    "vpandq",
    "vpternlogd zmm6, zmm6, zmm6, 0xff"
);
loops!(avx2, "ymm", "32", "vmovdqa", "vmovdqu", "vmovntdq", "vpxor", "vpand", "vpcmpeqd ymm6, ymm6, ymm6");
