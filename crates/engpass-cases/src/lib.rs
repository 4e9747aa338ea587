//! The number of cases that a property test runs.

use proptest::prelude::ProptestConfig;

/// Number of cases of a property without a configuration, if `PROPTEST_CASES` is not set.
const DEFAULT: u64 = 256;

/// Configures a property to run `count` cases.
///
/// `PROPTEST_CASES` scales the count as it scales the 256 cases of a property without a configuration: 2560 runs ten
/// times as many cases of every property.
pub fn cases(count: u32) -> ProptestConfig {
    let config = ProptestConfig::default();
    let scaled = (u64::from(count) * u64::from(config.cases)).div_ceil(DEFAULT);
    ProptestConfig { cases: scaled as u32, ..config }
}
