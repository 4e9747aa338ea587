//! Idle connections give back only memory that they do not need.

use engpass_model::random::Stream;
use engpass_model::tcp::{Profile, Segment, TcpParameters};
use engpass_model::time::Time;

use crate::bench::{Bench, Loss, Pipe, ms};
use crate::delivery::{RECOVERIES, congestion};

/// Bursts separated by pauses, over a line with loss and reordering. Returns all segments sent; with `rests`, idle memory is given back in
/// the pauses.
fn bursts(p: &TcpParameters, seed: u64, rests: bool) -> Vec<(Time, Segment)> {
    let mut random = Stream::new(seed, "bursts");
    let mut forward = Pipe::new(Some(10_000_000), ms(5));
    forward.queue = 60_000;
    // Some seeds have no loss or no reordering.
    let loss = Loss::Random { millionths: 10_000 * (seed % 3), stream: Stream::new(seed, "loss") };
    forward.late = Some((20_000 * (seed % 2), ms(20), Stream::new(seed, "late")));
    forward.loss = loss.clone();
    let mut back = Pipe::new(Some(10_000_000), ms(5));
    back.loss = loss;
    let mut bench = Bench::new(p, p, forward, back).transfer(0, 5000);
    (bench.close_at_end, bench.log) = (false, Some(Vec::new()));
    let mut until = Time::ZERO;
    for _ in 0..20 {
        until += ms(10 + random.below(5000));
        bench.run(until);
        if rests {
            bench.a.release_unused_memory(until);
            bench.b.release_unused_memory(until);
        }
        bench.write_more(random.below(100_000));
    }
    bench.run(until + Time::from_secs(100_000));
    assert_eq!(bench.out_b.delivered, bench.total);
    bench.log.expect("the log was kept")
}

#[test]
fn connection_that_shrinks_equals_one_that_does_not() {
    for profile in Profile::ALL {
        for recovery in RECOVERIES {
            for (seed, control) in (0..12).zip(["reno", "cubic", "dctcp", "bbr"].into_iter().cycle()) {
                let congestion = congestion(control);
                let p = TcpParameters { recovery, congestion, ..profile.parameters(1500) };
                assert!(bursts(&p, seed, true) == bursts(&p, seed, false), "{profile:?} {recovery:?} {seed}");
            }
        }
    }
}
