//! Loops for other processors, as the compiler translates them.

use std::hint::black_box;

use super::Kernel;

/// Runs the kernel once. Returns the result of a read or checksum, and 0 for other kernels.
///
/// # Panics
/// For kernels that exist only with instructions of a particular processor.
pub(super) fn work(kernel: Kernel, from: &[u8], to: &mut [u8]) -> u64 {
    match kernel {
        Kernel::Read => {
            let mut all = [0_u64; 8];
            for block in words(from).chunks_exact(8) {
                all.iter_mut().zip(block).for_each(|(all, word)| *all ^= word);
            }
            all.iter().fold(0, |all, one| all ^ one)
        }
        Kernel::Write => {
            black_box(to).fill(black_box(3));
            0
        }
        Kernel::CopyVector => {
            black_box(to).copy_from_slice(black_box(from));
            0
        }
        Kernel::Checksum => words(from).iter().map(|word| (word & 0xffff_ffff) + (word >> 32)).sum(),
        other => panic!("{other:?} needs x86-64 instructions, see `is_here`"),
    }
}

fn words(bytes: &[u8]) -> &[u64] {
    // SAFETY: every bit pattern is a valid word.
    let (before, words, after) = unsafe { bytes.align_to::<u64>() };
    debug_assert!(before.is_empty() && after.is_empty(), "the block consists of whole aligned words");
    words
}
