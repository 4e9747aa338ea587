//! Random networks in which both engines must see the same, and how often each mechanism of forwarding acts in them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use engpass_oracle::acted::Mechanism;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::fast::{compared, difference};
use crate::networks::{Drawn, asking, bonds, groups, joined, mesh, narrow, tunnels};
use crate::replay::testbed;

/// Networks of which each mechanism must act in a thousand.
const MANY: u32 = 10_000;

/// How many of so many networks a mechanism must act in: one of ten, and where chance has a greater part one of twenty.
fn enough(networks: u32) -> u64 {
    u64::from(if networks >= MANY { networks / 10 } else { (networks / 20).max(1) })
}

/// Both engines see the same of every network, and each of these mechanisms acts in enough of them, or is `rare`.
fn are_equal(
    name: &'static str,
    networks: impl Strategy<Value = Drawn>,
    mechanisms: &[Mechanism],
    rare: &[Mechanism],
) {
    let config =
        ProptestConfig { test_name: Some(name), source_file: Some(file!()), ..engpass_cases::cases(1000) };
    let cases = config.cases;
    let counts: RefCell<BTreeMap<Mechanism, u64>> = RefCell::default();
    let run = TestRunner::new(config).run(&(networks, any::<u64>()), |(Drawn(testbed), seed)| {
        let acted = compared(&testbed, seed).map_err(TestCaseError::fail)?;
        for mechanism in acted {
            *counts.borrow_mut().entry(mechanism).or_default() += 1;
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    let counts = counts.into_inner();
    let times = |mechanism: &Mechanism| counts.get(mechanism).copied().unwrap_or(0);
    let rows = mechanisms
        .iter()
        .chain(rare)
        .map(|mechanism| format!("{:>7} {}\n", times(mechanism), mechanism.text()));
    println!("\nacted in so many of {cases} networks ({name}):\n{}", rows.collect::<String>());
    for mechanism in mechanisms {
        let (times, least) = (times(mechanism), enough(cases));
        assert!(times >= least, "{}: only {times} of {cases} networks, not {least}", mechanism.text());
    }
}

#[test]
fn frames_with_choices_and_events_are_equal() {
    use Mechanism::{
        FragmentsApart, Hash, InputFull, InterfaceEvent, LinkEvent, Outage, RandomFailure, RoundRobin,
        Weights,
    };
    let mechanisms = [
        Hash,
        RoundRobin,
        Weights,
        LinkEvent,
        InterfaceEvent,
        RandomFailure,
        FragmentsApart,
        Outage,
        InputFull,
    ];
    are_equal("acted::frames_with_choices_and_events_are_equal", mesh(), &mechanisms, &[]);
}

#[test]
fn circuits_at_routers_are_equal() {
    use Mechanism::{AdaptiveAtRouter, FragmentsApart, Hash, IntoCircuit, OutOfCircuit, RoundRobin, Weights};
    let mechanisms = [IntoCircuit, OutOfCircuit, AdaptiveAtRouter, Hash, RoundRobin, Weights, FragmentsApart];
    are_equal("acted::circuits_at_routers_are_equal", joined(), &mechanisms, &[]);
}

#[test]
fn senders_that_discover_the_path_mtu_are_equal() {
    use Mechanism::{BlackHole, MessageCut, MessageLost, ShrankTwice, Signalled};
    let (mechanisms, rare) = ([Signalled, MessageLost], [MessageCut, BlackHole, ShrankTwice]);
    are_equal("acted::senders_that_discover_the_path_mtu_are_equal", narrow(), &mechanisms, &rare);
}

#[test]
fn tunnels_are_equal() {
    use Mechanism::{
        InnerFragmented, NestedTunnel, OuterFragmented, ReassemblyMemory, ReassemblyTimeout, TunnelChoice,
        TunnelRefused,
    };
    let mechanisms = [
        OuterFragmented,
        InnerFragmented,
        TunnelRefused,
        NestedTunnel,
        TunnelChoice,
        ReassemblyTimeout,
        ReassemblyMemory,
    ];
    are_equal("acted::tunnels_are_equal", tunnels(), &mechanisms, &[]);
}

#[test]
fn bonds_are_equal() {
    use Mechanism::{BondHash, BondMonitor, BondTurns, Failover, FollowsBond, InactiveMember, SwitchBond};
    let mechanisms = [BondHash, BondTurns, BondMonitor, Failover, FollowsBond];
    are_equal("acted::bonds_are_equal", bonds(), &mechanisms, &[SwitchBond, InactiveMember]);
}

#[test]
fn groups_are_equal() {
    use Mechanism::{CopiesAtRouter, CopiesAtSwitch, FragmentsCopied, PartLost};
    let mechanisms = [CopiesAtRouter, CopiesAtSwitch, FragmentsCopied, PartLost];
    are_equal("acted::groups_are_equal", groups(), &mechanisms, &[]);
}

#[test]
fn address_resolution_is_equal() {
    use Mechanism::{
        AskedAgain, Expired, ForgottenOnDown, HoldFull, LearnedFromRequest, NoReply, RequestCopied, Resolved,
    };
    let mechanisms = [
        Resolved,
        HoldFull,
        NoReply,
        AskedAgain,
        Expired,
        LearnedFromRequest,
        RequestCopied,
        ForgottenOnDown,
    ];
    are_equal("acted::address_resolution_is_equal", asking(), &mechanisms, &[]);
}

/// A tunnel remembers the places of fragments: the fast engine looked into places that it had given back when nothing was under way.
#[test]
fn a_tunnel_remembers_places_that_are_gone() {
    let text = include_str!("parted/places-that-are-gone.toml");
    assert_eq!(difference(&testbed("places-that-are-gone.toml", text.into()), 1), Ok(()));
}

/// Two lines cut what comes back, the second one after the timeout: the fast engine took a fragment of a packet that was given up for a packet.
#[test]
fn a_fragment_that_is_cut_again_after_the_timeout_is_lost() {
    let text = include_str!("parted/cut-again-after-the-timeout.toml");
    assert_eq!(difference(&testbed("cut-again-after-the-timeout.toml", text.into()), 1), Ok(()));
}

/// Connections of one table wait for several members of a bond: the fast engine took those that found room at one instant in the order of the links.
#[test]
fn connections_take_turns_at_the_members_of_a_bond() {
    let text = include_str!("parted/turns-at-members.toml");
    assert_eq!(difference(&testbed("turns-at-members.toml", text.into()), 4_148_889_989_085_126_119), Ok(()));
}

/// A write makes the next segment longer than what is left of the receive window: the fast engine kept the congestion window as the reason.
#[test]
fn a_longer_segment_waits_for_the_receive_window() {
    let text = include_str!("parted/longer-than-the-window.toml");
    assert_eq!(
        difference(&testbed("longer-than-the-window.toml", text.into()), 17_200_984_129_630_987_219),
        Ok(())
    );
}
