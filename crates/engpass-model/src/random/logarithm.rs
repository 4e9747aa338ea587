//! Logarithm of a random number, precise enough for a whole number of picoseconds.

/// Returns `-ln(uniform / 2^53) * mean`, rounded down. The logarithm of libm is the same on every machine.
#[inline(never)]
pub(super) fn exactly(uniform: u64, mean: u64) -> u64 {
    let uniform = uniform as f64 / (1u64 << 53) as f64;
    (-libm::log(uniform) * mean as f64) as u64
}

/// Computes [`exactly`] with a table and a short series in integers. Returns `None` if the result might differ.
#[inline]
pub(super) fn quickly(uniform: u64, mean: u64) -> Option<u64> {
    if mean >= LONG || uniform >= 1 << 53 {
        return None;
    }
    let shifted = uniform << 11;
    let halves = shifted.leading_zeros();
    // In units of 2^-63, from 1 to 2.
    let mantissa = shifted << halves;
    let (inverse, logarithm) = TABLE[(mantissa >> (63 - TABLE_BITS)) as usize % TABLE.len()];
    // Relative distance from the middle of the table's interval, in units of 2^-63. It is at most 2^-8, so the omitted terms of the series
    // are below 2^-42.
    let over = (high(mantissa.into(), inverse.into()) as u64).wrapping_sub(1 << 63) as i64;
    let half_square = signed_high(over, over);
    // In units of 2^-62.
    let series = (1 << 62) - signed_high(over, THIRD) + (half_square >> 1);
    let above = over - (signed_high(half_square, series) << 2);
    let exact = (u64::from(halves) * LN_2 + logarithm).wrapping_sub((above >> (63 - PLACES)) as u64);
    let product = u128::from(exact) * u128::from(mean);
    let (whole, behind) = ((product >> PLACES) as u64, product as u64 % (1 << PLACES));
    let wrong = mean << (PLACES - SURE);
    // If the logarithm came out slightly below zero, it wraps and is also near a whole number.
    let is_sure = behind.wrapping_sub(wrong) < (1 << PLACES) - 2 * wrong;
    is_sure.then_some(whole)
}

/// Upper half of a product of two 64-bit numbers.
#[inline(always)]
fn high(one: u128, other: u128) -> u128 {
    (one * other) >> 64
}

#[inline(always)]
fn signed_high(one: i64, other: i64) -> i64 {
    ((i128::from(one) * i128::from(other)) >> 64) as i64
}

/// Fractional bits of a logarithm, which is below 2^6.
const PLACES: u32 = 58;

/// Number of fractional bits that are certainly correct. The omitted terms and all rounding, including that of [`exactly`] (below 2^-45),
/// add up to less than 2^-41.
const SURE: u32 = 41;

/// For means from here on, this error reaches an eighth of the unit of the result.
const LONG: u64 = 1 << 38;

/// One third, in units of 2^-64.
const THIRD: i64 = i64::MAX / 3 * 2;

const LN_2: u64 = (std::f64::consts::LN_2 * (1u64 << PLACES) as f64) as u64;

const TABLE_BITS: u32 = 7;

/// The interval from 1 to 2 in equal parts. For the middle m of each part: 1 / m in units of 2^-64, and ln(2 / m) in units of 2^-`PLACES`.
static TABLE: [(u64, u64); 1 << TABLE_BITS] = table();

const fn table() -> [(u64, u64); 1 << TABLE_BITS] {
    let (mut table, mut place) = ([(0, 0); 1 << TABLE_BITS], 0);
    while place < table.len() {
        let (parts, middle) = (2 * table.len(), 2 * (table.len() + place) + 1);
        let inverse = ((parts as u128) << 64) / middle as u128;
        let logarithm = logarithm(2.0 * parts as f64 / middle as f64) * (1u64 << PLACES) as f64;
        table[place] = (inverse as u64, logarithm as u64);
        place += 1;
    }
    table
}

/// Natural logarithm of a number from 1 to 2, by the series of the inverse hyperbolic tangent.
const fn logarithm(number: f64) -> f64 {
    let of = (number - 1.0) / (number + 1.0);
    let (mut power, mut sum, mut place) = (of, 0.0, 1);
    while place < 40 {
        sum += power / place as f64;
        power *= of * of;
        place += 2;
    }
    2.0 * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fast_logarithm_is_known_for_nearly_all_numbers() {
        let spread = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for mean in [1, 90, 45_000_000, 145_000_000, 10_000_000_000] {
            let unknown = (1..100_000).filter(|number| quickly((spread(*number) >> 11) + 1, mean).is_none());
            assert!(unknown.count() <= 2000, "{mean}");
        }
        assert_eq!([quickly(1, u64::MAX), quickly(1 << 53, 1)], [None; 2]);
    }

    #[test]
    fn logarithm_table_is_accurate() {
        for (inverse, logarithm) in TABLE {
            let (inverse, logarithm) = (inverse as f64 / 2f64.powi(63), logarithm as f64 / 2f64.powi(58));
            assert!((libm::log(inverse) - logarithm).abs() < 1e-15);
        }
    }

    proptest! {
        #![proptest_config(engpass_cases::cases(20_000))]
        #[test]
        fn fast_logarithm_equals_exact_logarithm(bits: u64, shift in 11u32..64, near in -3i64..3, mean: u64, small in 0u32..64) {
            let mean = mean >> small;
            let power = 1i64 << (64 - shift);
            for uniform in [(bits >> shift) + 1, (power + near).clamp(1, 1 << 53) as u64, (1 << 53) - (bits >> shift)] {
                let quick = quickly(uniform, mean);
                prop_assert!(quick.is_none_or(|quick| quick == exactly(uniform, mean)), "{uniform} {mean} {quick:?}");
            }
        }
    }
}
