//! Laws with equal-cost paths and outages.

use engpass_limit::limit;
use engpass_model::link::Link;
use engpass_model::source::Traffic;
use engpass_outcome::MOST_PATHS;
use engpass_simulate::simulate;
use engpass_testbed::Testbed;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bounds::obeys;
use crate::choices::{UDP, flow, pair, simulated};
use crate::networks::text::fits;
use crate::networks::{Drawn, mesh};
use crate::resolve::resolve;
use crate::{candidate, laws};

/// A link that gets a parallel one, the link that the new one copies, and whether the new one is first in the file. This includes links of hosts: routers
/// choose among several to one host.
type Doubled = (usize, usize, bool);

fn doubled(mut testbed: Testbed, all: &[Doubled]) -> Testbed {
    for (index, (one, like, first)) in all.iter().enumerate() {
        let at = |place: usize| &testbed.links[place % testbed.links.len()];
        let (own, like) = (at(*one), at(*like));
        // An Ethernet switch has one MTU and no point-to-point link.
        let switched = own.ends.iter().chain(&like.ends).any(|end| end.starts_with('s'));
        let link = if switched { own.clone() } else { Link { ends: own.ends.clone(), ..like.clone() } };
        let place = if *first { 0 } else { testbed.links.len() };
        testbed.links.shift_insert(place, format!("d{index}"), link);
    }
    // The new link may be too narrow for the headers of a tunnel.
    if !fits(&testbed) {
        testbed.tunnels.clear();
    }
    testbed
}

/// Returns a random network with choices and events.
fn spread() -> impl Strategy<Value = Drawn> {
    (mesh(), vec((0usize..12, 0usize..12, any::<bool>()), 0..=2))
        .prop_map(|(Drawn(testbed), all)| Drawn(doubled(testbed, &all)))
}

proptest! {
    #![proptest_config(engpass_cases::cases(1000))]

    /// The laws of all outcomes, of bounds, and of idle delays.
    #[test]
    fn no_flow_with_ecmp_and_events_exceeds_its_bound(Drawn(testbed) in spread(), seed in any::<u64>()) {
        obeys(&testbed, seed)?;
        let topology = resolve(&testbed);
        let outcome = limit(&testbed, &topology);
        laws::check(&outcome);
        for (name, flow) in &outcome.flows {
            let shares: f64 = flow.paths.iter().map(|path| path.share).sum();
            let all = (shares - 1.0).abs() < 1e-9 || flow.paths.len() == MOST_PATHS;
            prop_assert!(all, "`{}`: {:?}", name, flow.paths);
            prop_assert!(flow.bound_bit_per_s.is_finite(), "{:#?}", flow);
        }
        let simulated = simulate(&testbed, &topology, seed, &|| false).expect("the simulation succeeds");
        for (name, flow) in &simulated.flows {
            prop_assert_eq!(&flow.paths, &outcome.flows[name].paths);
            // The idle delay is that of a message, and a sentinel is shorter.
            if let (Traffic::UdpStream(config), Some(delays)) = (&testbed.traffic[name], &flow.delay_s)
                && !config.sentinels
            {
                let idle = outcome.flows[name].idle_delay_s.expect("the flow sends datagrams");
                prop_assert!(delays.network.min >= idle, "`{}`: {} s, idle {} s", name, delays.network.min, idle);
            }
        }
    }
}

/// Returns two lines in turn: the policy, the rates of the line before them and of both, and the size of datagrams of one packet.
fn turns() -> impl Strategy<Value = (String, String, [String; 2], u32)> {
    let rate = || (1_000u32..100_000).prop_map(|kbit_s| format!("{kbit_s} kbit/s"));
    let weights = (1u32..5, 1u32..5).prop_map(|(upper, lower)| {
        format!("{{ round-robin = {{ weights = {{ upper = {upper}, lower = {lower} }} }} }}")
    });
    (weights, rate(), [rate(), rate()], 200u32..=1472)
}

fn datagrams(message: u32) -> String {
    UDP.replace("1472", &message.to_string())
}

proptest! {
    #![proptest_config(engpass_cases::cases(60))]

    /// A sender at full speed reaches the bound, whatever is lost in front of the slower line.
    #[test]
    fn round_robin_datagrams_reach_their_bound((ecmp, inward, [upper, lower], message) in turns()) {
        let text = pair(&ecmp, &inward, [&upper, &lower], &datagrams(message));
        let (bound, got) = (flow(&text).bound_bit_per_s, simulated(&text).goodput_bit_per_s);
        // In one second. A few packets are in flight at its start and end.
        let packets = f64::from(4 * 8 * message);
        prop_assert!((bound - got).abs() <= 0.002 * bound + packets, "{} of {}: {}", got, bound, text);
    }

    /// A sender slightly below the fair share loses nothing, and one slightly above does.
    #[test]
    fn round_robin_fair_share_is_the_highest_lossless_rate((ecmp, inward, [upper, lower], message) in turns()) {
        let text = pair(&ecmp, &inward, [&upper, &lower], &datagrams(message));
        let limits = flow(&text);
        let fair = limits.goodput_bit_per_s;
        let lost = |share: f64| {
            let rate = format!("rate = \"{:.0} bit/s\"\n", share * fair);
            // A queue of a few packets fills quickly.
            let text = text.replace("[router.near]", "[router.near]\nqueue = { drop-tail = { limit = \"6 packets\" } }");
            simulated(&format!("{text}{rate}")).datagrams.unwrap().lost
        };
        prop_assert_eq!(lost(0.99), 0);
        // The sender never sends faster than its first line carries: only a faster line lets it exceed the fair share by 10 %.
        if candidate(&limits, "link `in`") > 1.1 * fair {
            prop_assert!(lost(1.1) > 0);
        }
    }
}
