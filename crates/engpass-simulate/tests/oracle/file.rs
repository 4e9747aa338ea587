//! A random network written as a file and loaded is the same testbed, and has the topology that the oracle resolves.

use engpass_testbed::{Source, Testbed, load};
use proptest::prelude::*;

use crate::networks::text::text;
use crate::networks::{Drawn, bonds, frames, groups, joined, mesh, network_with_tcp};
use crate::resolve::resolve;

fn is_what_its_file_says(testbed: &Testbed) -> Result<(), TestCaseError> {
    let text = text(testbed);
    let campaign = load(&Source { name: "random.toml".into(), text: text.clone() }, &[], None);
    let campaign =
        campaign.map_err(|found| TestCaseError::fail(format!("{text}\n{}", found.render(false))))?;
    let point = campaign.point("base", &[]);
    let point = point.map_err(|found| TestCaseError::fail(format!("{text}\n{}", found.render(false))))?;
    prop_assert_eq!(&point.testbed, testbed);
    prop_assert_eq!(point.topology, resolve(testbed));
    Ok(())
}

proptest! {
    #[test]
    fn atm_network_file_round_trip_equals_original(Drawn(testbed) in network_with_tcp()) {
        is_what_its_file_says(&testbed)?;
    }

    #[test]
    fn ecmp_network_file_round_trip_equals_original(Drawn(testbed) in mesh()) {
        is_what_its_file_says(&testbed)?;
    }

    #[test]
    fn circuit_at_router_file_round_trip_equals_original(Drawn(testbed) in joined()) {
        is_what_its_file_says(&testbed)?;
    }

    #[test]
    fn bond_network_file_round_trip_equals_original(Drawn(testbed) in bonds()) {
        is_what_its_file_says(&testbed)?;
    }

    #[test]
    fn multicast_network_file_round_trip_equals_original(Drawn(testbed) in groups()) {
        is_what_its_file_says(&testbed)?;
    }

    #[test]
    fn frame_network_file_round_trip_equals_original(Drawn(testbed) in frames()) {
        is_what_its_file_says(&testbed)?;
    }
}
