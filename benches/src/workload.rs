//! Testbeds of the benchmarks.

use engpass_testbed::{Point, Source, load};

/// The Kyoto study: a UDP stream and a CBR source through one port.
pub const KYOTO: &str = include_str!("../testbeds/kyoto.toml");

/// The contended line of three hops, as written by [`line`](crate::line::line).
pub const THREE_HOPS: &str = include_str!("../testbeds/three-hops.toml");

/// Two bursty streams through one port, one of them in the higher priority class.
pub const PORT: &str = include_str!("../testbeds/port.toml");

/// A single bursty stream on a chain of five links.
pub const GENERATOR: &str = include_str!("../testbeds/generator.toml");

/// Returns the only point of `variant` of a testbed with these overrides.
///
/// # Panics
/// If the testbed has errors, or more than one point.
pub fn point(text: &str, variant: &str, overrides: &[(&str, &str)]) -> Point {
    let source = Source { name: "workload.toml".into(), text: text.into() };
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let campaign = load(&source, &overrides, None).unwrap_or_else(|wrong| panic!("{}", wrong.render(false)));
    assert!(campaign.axes().is_empty(), "a workload has no sweep axis: override the swept keys");
    campaign.point(variant, &[]).unwrap_or_else(|wrong| panic!("{}", wrong.render(false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{frames, line, ways};
    use crate::phones::phones;

    /// Engine tests use the file, and scaling is measured with the output of `line`.
    #[test]
    fn the_file_of_three_hops_is_the_line_of_three_hops() {
        assert_eq!(line(3), THREE_HOPS);
    }

    #[test]
    fn every_workload_is_a_point() {
        for hops in [1, 3, 10] {
            for text in [line(hops), frames(hops)] {
                assert_eq!(point(&text, "base", &[]).topology.links.len(), 3 * hops + 2);
            }
            for ecmp in ["first", "hash", "round-robin"] {
                assert_eq!(point(&ways(hops, ecmp), "base", &[]).topology.links.len(), 2 * hops + 20);
            }
        }
        assert_eq!(point(&phones(3), "base", &[]).topology.flows.len(), 3);
        for text in [PORT, GENERATOR] {
            assert!(point(text, "base", &[]).topology.flows.iter().all(|flow| flow.cells.is_some()));
        }
        let message = [("traffic.stream.message", "9 kB")];
        for variant in ["free", "congested", "shaped-16", "shaped-18"] {
            assert_eq!(point(KYOTO, variant, &message).topology.flows.len(), 2);
        }
    }
}
