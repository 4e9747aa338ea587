//! Networks on which the engines once disagreed, and a tool that finds where they disagree on another one.

use engpass_model::unit::Duration;
use engpass_simulate::{SimOutcome, simulate};
use engpass_testbed::{Source, Testbed, load};

use crate::captured::capture;
use crate::fast::difference;
use crate::resolve::resolve;

pub(crate) fn testbed(name: &str, text: String) -> Testbed {
    let campaign = load(&Source { name: name.into(), text }, &[], None);
    let campaign = campaign.unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("base", &[]).expect("the file has a base point").testbed
}

/// Regression: the fast engine ignored the timer that the segment had set when it was formed.
#[test]
fn timer_of_a_segment_waiting_for_the_nic_still_expires() {
    let testbed = testbed("timer", include_str!("parted/timer-behind-a-full-nic.toml").into());
    assert_eq!(difference(&testbed, 3508241478408879250), Ok(()));
}

/// Regression: the fast engine did not call a discipline that held nothing, so its queues stayed on their lists.
#[test]
fn empty_queue_discipline_is_still_called() {
    let testbed = testbed("asked", include_str!("parted/asked-when-empty.toml").into());
    assert_eq!(difference(&testbed, 1608526377215507116), Ok(()));
}

/// Regression: the oracle counted a datagram as carried completely whose last frame had arrived while the gap behind it extended beyond the end.
#[test]
fn frame_gap_beyond_the_run_end_is_not_carried() {
    for kind in ["udp-on-off", "poisson", "udp-stream"] {
        let text = include_str!("parted/gap-at-the-end.toml");
        let text = match kind {
            "udp-on-off" => text.to_owned(),
            other => text
                .replace("udp-on-off", other)
                .replace("on = \"414 ms\"\noff = \"414 ms\"\nlengths = \"fixed\"\n", ""),
        };
        assert_eq!(difference(&testbed(kind, text), 0), Ok(()), "{kind}");
    }
}

/// Regression: the fast engine handled feedback that arrived together with an acknowledgment in the order of circuits and flows, not first.
#[test]
fn feedback_precedes_the_acknowledgment_of_its_pdu() {
    let testbed = testbed("answer", include_str!("parted/answer-with-an-acknowledgment.toml").into());
    assert_eq!(difference(&testbed, 1), Ok(()));
}

/// Regression: the fast engine delivered a generator's cells together, with the instant of the last one for the first, which ends the PDU of a datagram. If
/// that had lost a cell at the port meanwhile, the loss was attributed to the port.
#[test]
fn generator_cell_ends_a_pdu_when_it_arrives() {
    let testbed = testbed("cut", include_str!("parted/cut-by-a-generator.toml").into());
    for seed in 0..64 {
        assert_eq!(difference(&testbed, seed), Ok(()), "{seed}");
    }
}

/// Regression: a circuit's line begins the last cell of a packet when it is emitted, and a packet arrives a picosecond later. The fast engine did not notice
/// that the first one had left the queue.
#[test]
fn packet_arriving_1_ps_after_a_last_cell_equals_oracle() {
    let testbed = testbed("picosecond", include_str!("parted/picosecond-behind-a-last-cell.toml").into());
    assert_eq!(difference(&testbed, 1), Ok(()));
}

/// Finds the instant at which the engines start to disagree on a testbed from a file.
#[test]
#[ignore = "needs a file"]
#[allow(clippy::disallowed_methods, reason = "somebody looks for a difference by hand")]
fn replay() {
    let path = std::env::var("ORACLE_FILE").expect("ORACLE_FILE names a testbed");
    let seed = std::env::var("ORACLE_SEED").map_or(0, |seed| seed.parse().expect("ORACLE_SEED is a number"));
    let mut testbed = testbed(&path, std::fs::read_to_string(&path).expect("the file can be read"));
    testbed.run.warmup = None;
    // Differences nearly always persist: search for the first instant by bisection.
    let (mut equal, mut differs) = (0, testbed.run.duration.0 + 1);
    while differs - equal > 1 {
        let at = equal + (differs - equal) / 2;
        testbed.run.duration = Duration(at);
        match difference(&testbed, seed) {
            Ok(()) => equal = at,
            Err(_) => differs = at,
        }
    }
    testbed.run.duration = Duration(differs);
    match difference(&testbed, seed) {
        Ok(()) => println!("they are equal"),
        Err(difference) => println!("they part at {differs} ps:\n{difference}"),
    }
}

/// Regression: when the fast engine released the memory of packets, several records of one line no longer shared the snapshot of their sender.
#[test]
fn released_memory_does_not_change_idle_reasons() {
    let testbed = testbed("released", include_str!("parted/released-beside-choices.toml").into());
    assert_eq!(difference(&testbed, 7), Ok(()));
    let topology = resolve(&testbed);
    let alone = simulate(&testbed, &topology, 7, &|| false).expect("the simulation succeeds");
    // A capture pauses the run often, and memory is released at every pause.
    let (outcome, _) = capture(&testbed, &topology, 7);
    assert_eq!(SimOutcome { events: alone.events, ..outcome }, alone);
}
