//! Caches of the processor: what is needed soon can be on its way into them while something else is done.

/// Bytes of a line.
const LINE: usize = 64;

/// Let the caches fetch what `of` is, without waiting for it. Nothing else comes of it: on processors for which the standard library
/// has no such instruction, nothing at all.
#[inline(always)]
pub fn fetch<T>(of: &T) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of::<T>()).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let place = std::ptr::from_ref(of).cast::<i8>().wrapping_add(offset);
        // SAFETY: the instruction neither reads nor writes, and faults at no address.
        #[expect(unsafe_code, reason = "the instruction is only there as one that takes a pointer")]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(place);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (of, LINE);
}
