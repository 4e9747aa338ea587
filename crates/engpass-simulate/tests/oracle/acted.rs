//! Both engines agree on random networks, and each forwarding mechanism acts in enough of them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use engpass_oracle::acted::Mechanism;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::fast::{compared, difference};
use crate::networks::{Drawn, asking, bonds, engines, groups, joined, mesh, narrow, tunnels};
use crate::replay::testbed;

/// Number of networks from which on each mechanism must act in a tenth of them.
const MANY: u32 = 10_000;

/// Returns the number of networks in which a mechanism must act: a tenth, or with fewer networks, where chance matters more, a twentieth.
fn enough(networks: u32) -> u64 {
    u64::from(if networks >= MANY { networks / 10 } else { (networks / 20).max(1) })
}

/// Checks that both engines agree on every network, and that each of these mechanisms acts in enough of them, or is `rare`.
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
    println!(
        "\nnumber of networks, of {cases}, in which each mechanism acted ({name}):\n{}",
        rows.collect::<String>()
    );
    for mechanism in mechanisms {
        let (times, least) = (times(mechanism), enough(cases));
        assert!(times >= least, "{}: only {times} of {cases} networks, not {least}", mechanism.text());
    }
}

#[test]
fn frame_engine_with_ecmp_and_events_equals_oracle() {
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
    are_equal("acted::frame_engine_with_ecmp_and_events_equals_oracle", mesh(), &mechanisms, &[]);
}

#[test]
fn circuit_at_router_equals_oracle() {
    use Mechanism::{AdaptiveAtRouter, FragmentsApart, Hash, IntoCircuit, OutOfCircuit, RoundRobin, Weights};
    let mechanisms = [IntoCircuit, OutOfCircuit, AdaptiveAtRouter, Hash, RoundRobin, Weights, FragmentsApart];
    are_equal("acted::circuit_at_router_equals_oracle", joined(), &mechanisms, &[]);
}

#[test]
fn path_mtu_discovery_equals_oracle() {
    use Mechanism::{BlackHole, MessageCut, MessageLost, ShrankTwice, Signalled};
    let (mechanisms, rare) = ([Signalled, MessageLost], [MessageCut, BlackHole, ShrankTwice]);
    are_equal("acted::path_mtu_discovery_equals_oracle", narrow(), &mechanisms, &rare);
}

#[test]
fn tunnel_equals_oracle() {
    use Mechanism::{
        AroundTunnel, InnerFragmented, LostBeforeTunnel, NestedTunnel, OutOfSequence, OuterFragmented,
        ReassemblyMemory, ReassemblyTimeout, TunnelChoice, TunnelDown, TunnelRefused, TunnelUpAgain,
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
    let rare = [OutOfSequence, TunnelDown, TunnelUpAgain, AroundTunnel, LostBeforeTunnel];
    are_equal("acted::tunnel_equals_oracle", tunnels(), &mechanisms, &rare);
}

#[test]
fn bond_equals_oracle() {
    use Mechanism::{BondHash, BondMonitor, BondTurns, Failover, FollowsBond, InactiveMember, SwitchBond};
    let mechanisms = [BondHash, BondTurns, BondMonitor, Failover, FollowsBond];
    are_equal("acted::bond_equals_oracle", bonds(), &mechanisms, &[SwitchBond, InactiveMember]);
}

#[test]
fn routers_with_line_cards_equal_oracle() {
    use Mechanism::{
        CardFull, ControlTakesTime, CopiesAtRouter, ForwardedByCard, FragmentsTakeTime, InputFull,
        OuterFragmented, Punted,
    };
    let mechanisms = [ForwardedByCard, Punted, InputFull, CopiesAtRouter, ControlTakesTime];
    let rare = [CardFull, FragmentsTakeTime, OuterFragmented];
    are_equal("acted::routers_with_line_cards_equal_oracle", engines(), &mechanisms, &rare);
}

#[test]
fn multicast_equals_oracle() {
    use Mechanism::{
        AnswersQuery, CopiesAtRouter, CopiesAtSwitch, FragmentsCopied, Grafted, NotCopied, PartLost, Pruned,
        Unwanted,
    };
    let mechanisms =
        [CopiesAtRouter, CopiesAtSwitch, FragmentsCopied, PartLost, Grafted, Pruned, NotCopied, Unwanted];
    are_equal("acted::multicast_equals_oracle", groups(), &mechanisms, &[AnswersQuery]);
}

#[test]
fn address_resolution_equals_oracle() {
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
    are_equal("acted::address_resolution_equals_oracle", asking(), &mechanisms, &[]);
}

/// Regression: a tunnel remembers the indices of fragments. The fast engine read indices that it had released when nothing was in flight.
#[test]
fn tunnel_reassembly_survives_released_packet_indices() {
    let text = include_str!("parted/places-that-are-gone.toml");
    assert_eq!(difference(&testbed("places-that-are-gone.toml", text.into()), 1), Ok(()));
}

/// Regression: two lines fragment the reverse traffic, the second one after the timeout. The fast engine took a fragment of a discarded packet for a packet.
#[test]
fn fragment_split_again_after_the_timeout_is_lost() {
    let text = include_str!("parted/cut-again-after-the-timeout.toml");
    assert_eq!(difference(&testbed("cut-again-after-the-timeout.toml", text.into()), 1), Ok(()));
}

/// Regression: connections of one traffic wait for several members of a bond. The fast engine served those that found room at one instant in the order of the
/// links.
#[test]
fn waiting_connections_take_turns_at_bond_members() {
    let text = include_str!("parted/turns-at-members.toml");
    assert_eq!(difference(&testbed("turns-at-members.toml", text.into()), 4_148_889_989_085_126_119), Ok(()));
}

/// Regression: a write makes the next segment longer than the rest of the receive window. The fast engine kept the congestion window as the reason.
#[test]
fn a_longer_segment_waits_for_the_receive_window() {
    let text = include_str!("parted/longer-than-the-window.toml");
    assert_eq!(
        difference(&testbed("longer-than-the-window.toml", text.into()), 17_200_984_129_630_987_219),
        Ok(())
    );
}
