use super::super::super::sys::Region;
use super::*;

const BYTES: usize = 4096 * 3;

/// Returns bytes without a short period, which could hide a mix-up of vectors.
fn filled() -> Region {
    let mut region = Region::new(BYTES).unwrap();
    for (at, byte) in region.bytes_mut().iter_mut().enumerate() {
        *byte = (at * 7 + at / 251) as u8;
    }
    region
}

fn widths() -> Vec<Width> {
    let widest = Width::widest();
    [Width::Plain, Width::Avx2, Width::Avx512]
        .into_iter()
        .filter(|width| *width == Width::Plain || *width == widest || widest == Width::Avx512)
        .collect()
}

#[test]
fn copy_kernels_copy_exactly_their_range() {
    let from = filled();
    for width in widths() {
        for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.copies() && kernel.is_here()) {
            let mut to = Region::new(BYTES).unwrap();
            let part = BYTES - 2 * BLOCK;
            work(kernel, width, &from.bytes()[..part], &mut to.bytes_mut()[BLOCK..BLOCK + part]);
            assert_eq!(to.bytes()[BLOCK..BLOCK + part], from.bytes()[..part], "{kernel:?} {width:?}");
            assert!(to.bytes()[..BLOCK].iter().all(|byte| *byte == 1), "{kernel:?} {width:?}");
            assert!(to.bytes()[BLOCK + part..].iter().all(|byte| *byte == 1), "{kernel:?} {width:?}");
        }
    }
}

#[test]
fn write_kernels_write_exactly_their_range() {
    let from = filled();
    for width in widths() {
        for kernel in [Kernel::Write, Kernel::WriteNonTemporal] {
            if !kernel.is_here() {
                continue;
            }
            let mut to = Region::new(BYTES).unwrap();
            let part = BYTES - 2 * BLOCK;
            work(kernel, width, &from.bytes()[..part], &mut to.bytes_mut()[BLOCK..BLOCK + part]);
            let wrong = to.bytes()[BLOCK..BLOCK + part].iter().position(|byte| *byte == 1);
            // A store writes every byte of the register, so no byte keeps its initial value 1.
            assert_eq!(wrong, None, "{kernel:?} {width:?}");
            assert!(to.bytes()[..BLOCK].iter().chain(&to.bytes()[BLOCK + part..]).all(|byte| *byte == 1));
        }
    }
}

/// Straightforward Internet checksum: 16-bit words in ones' complement (RFC 1071 section 1).
fn by_the_book(bytes: &[u8]) -> u16 {
    let mut sum: u64 = bytes.chunks_exact(2).map(|two| u64::from(u16::from_le_bytes([two[0], two[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn checksum_kernel_equals_internet_checksum() {
    let from = filled();
    let mut to = Region::new(BYTES).unwrap();
    for width in widths() {
        let mut sum = work(Kernel::Checksum, width, from.bytes(), to.bytes_mut());
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        assert_eq!(sum as u16, by_the_book(from.bytes()), "{width:?}");
    }
}

#[test]
fn read_kernels_read_every_byte() {
    let mut from = filled();
    let mut to = Region::new(BYTES).unwrap();
    for width in widths() {
        let before = work(Kernel::Read, width, from.bytes(), to.bytes_mut());
        for at in [0, 31, 255, 256, BYTES / 2, BYTES - 1] {
            from.bytes_mut()[at] ^= 1;
            assert_ne!(work(Kernel::Read, width, from.bytes(), to.bytes_mut()), before, "{width:?} at {at}");
            from.bytes_mut()[at] ^= 1;
        }
    }
}
