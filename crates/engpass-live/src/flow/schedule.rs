//! When messages are due: an absolute schedule in integers, so that no rounding error accumulates. Pure.

use engpass_model::random::Stream;
use engpass_model::source::agent_limits::FASTEST;
use engpass_model::source::on_off::Lengths;
use engpass_model::source::video::{FRAME_RATES, MAX_GROUP, MAX_INTRA};
use engpass_model::source::{Bursts, FrameMessages, FramePattern};
use engpass_model::time::Pace;
use engpass_model::unit::{FrameRate, Share};
use serde::Deserialize;

use crate::protocol_error::{ProtocolError, Result};

/// Picoseconds per nanosecond.
const NS: u64 = 1000;

/// The schedule of a request. Rates count payload only.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Schedule {
    Cbr {
        rate_bit_per_s: u64,
    },
    Poisson {
        rate_bit_per_s: u64,
        #[serde(default)]
        seed: u64,
    },
    OnOff {
        rate_bit_per_s: u64,
        on_ns: u64,
        off_ns: u64,
        #[serde(default)]
        lengths: Lengths,
        #[serde(default)]
        seed: u64,
    },
    Video {
        rate_bit_per_s: u64,
        micro_frames_per_s: u64,
        group_of_pictures: u32,
        intra_size_ppb: u64,
    },
}

impl Schedule {
    /// Returns the payload rate in bit/s; for on-off sources, during on-times.
    pub(crate) fn rate(&self) -> u64 {
        match self {
            Self::Cbr { rate_bit_per_s }
            | Self::Poisson { rate_bit_per_s, .. }
            | Self::Video { rate_bit_per_s, .. }
            | Self::OnOff { rate_bit_per_s, .. } => *rate_bit_per_s,
        }
    }

    /// Returns the mean gap in ns between messages of `message` bytes; of on-off sources, during on-times.
    pub(crate) fn gap(&self, message: u64) -> u64 {
        Pace::of_bits(8, self.rate()).after(message) / NS
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !(1..=FASTEST).contains(&self.rate()) {
            return Err(ProtocolError::field(
                "schedule.rate_bit_per_s",
                format_args!("{} is out of range", self.rate()),
                format!("give 1 to {FASTEST}"),
            ));
        }
        if let Self::OnOff { on_ns, off_ns, .. } = self
            && (*on_ns == 0 || on_ns.max(off_ns) > &(u64::MAX / NS / 1000))
        {
            return Err(ProtocolError::field(
                "schedule.on_ns",
                "is out of range",
                "give at least 1, at most 5 hours",
            ));
        }
        if let Self::Video { micro_frames_per_s, group_of_pictures, intra_size_ppb, .. } = *self {
            let (slowest, fastest) = FRAME_RATES;
            for (name, value, (least, most)) in [
                ("schedule.micro_frames_per_s", micro_frames_per_s, (slowest.0, fastest.0)),
                ("schedule.group_of_pictures", group_of_pictures.into(), (1, MAX_GROUP)),
                ("schedule.intra_size_ppb", intra_size_ppb, (Share::WHOLE, MAX_INTRA.0)),
            ] {
                if !(least..=most).contains(&value) {
                    let help = format!("give {least} to {most}");
                    return Err(ProtocolError::field(name, format_args!("{value} is out of range"), help));
                }
            }
        }
        Ok(())
    }

    /// Returns the send instants for messages of `message` bytes. Each stream of a flow has its own random numbers.
    pub(crate) fn plan(&self, message: u64, stream: u16) -> Plan {
        let pace = Pace::of_bits(message * 8, self.rate());
        let random = |seed| Stream::new(seed, format_args!("stream {stream}"));
        match *self {
            Self::Cbr { .. } => Plan::Even { pace, sent: 0 },
            Self::Poisson { seed, .. } => {
                Plan::Poisson { mean: pace.after(1), at: 0, random: Box::new(random(seed)) }
            }
            Self::OnOff { on_ns, off_ns, lengths, seed, .. } => {
                let means = [on_ns * NS, off_ns * NS];
                Plan::OnOff(Box::new(Bursts::new(pace, means, lengths, random(seed))))
            }
            Self::Video { rate_bit_per_s, micro_frames_per_s, group_of_pictures, intra_size_ppb } => {
                let (frames, intra) = (FrameRate(micro_frames_per_s), Share(intra_size_ppb));
                let pattern = FramePattern::new(message, rate_bit_per_s, frames, group_of_pictures, intra);
                Plan::Video(Box::new(pattern.messages()))
            }
        }
    }
}

/// An endless, non-decreasing sequence of send instants for one stream.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Even { pace: Pace, sent: u64 },
    Poisson { mean: u64, at: u64, random: Box<Stream> },
    OnOff(Box<Bursts>),
    Video(Box<FrameMessages>),
}

impl Plan {
    /// Returns the instant at which the next message is due, in ns since the start.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        match self {
            Self::Even { pace, sent } => {
                let due = pace.after(*sent);
                *sent += 1;
                due / NS
            }
            Self::Poisson { mean, at, random } => {
                *at = at.saturating_add(random.exponential(*mean));
                *at / NS
            }
            Self::OnOff(bursts) => bursts.due() / NS,
            Self::Video(frames) => frames.due() / NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dues(schedule: &Schedule, message: u64, count: usize) -> Vec<u64> {
        let mut plan = schedule.plan(message, 0);
        (0..count).map(|_| plan.next()).collect()
    }

    #[test]
    fn cbr_schedule_never_drifts() {
        // 1472 B at 100 Mbit/s: 117.76 us.
        let due = dues(&Schedule::Cbr { rate_bit_per_s: 100_000_000 }, 1472, 100_001);
        assert_eq!((due[0], due[1], due[2]), (0, 117_760, 235_520));
        assert_eq!(due[100_000], 11_776_000_000);
        // Three messages per second have no finite decimal gap, yet message 300,000 is exact to the nanosecond.
        let due = dues(&Schedule::Cbr { rate_bit_per_s: 24 }, 1, 300_001);
        assert_eq!(due[300_000], 100_000_000_000_000);
    }

    #[test]
    fn on_off_schedule_alternates_on_and_off_times() {
        let schedule = Schedule::OnOff {
            rate_bit_per_s: 8_000_000,
            on_ns: 3_000_000,
            off_ns: 7_000_000,
            lengths: Lengths::Fixed,
            seed: 0,
        };
        let ms: Vec<_> = dues(&schedule, 1000, 8).iter().map(|due| due / 1_000_000).collect();
        assert_eq!(ms, [0, 1, 2, 10, 11, 12, 20, 21]);
    }

    #[test]
    fn video_schedule_sends_each_frame_at_once() {
        let schedule = |micro_frames_per_s, intra_size_ppb| Schedule::Video {
            rate_bit_per_s: 1_000_000,
            micro_frames_per_s,
            group_of_pictures: 4,
            intra_size_ppb,
        };
        // A group of 4 frames has 20 kB: an intra frame of 5 parts of 2.5 kB, and three frames of one part.
        let video = schedule(25_000_000, 5_000_000_000);
        let ms: Vec<_> = dues(&video, 1000, 18).iter().map(|due| due / 1_000_000).collect();
        assert_eq!(ms[..13], [0; 13]);
        assert_eq!(ms[13..], [40, 40, 80, 80, 80]);
        assert!(video.check().is_ok());
        assert!(schedule(0, 5_000_000_000).check().is_err() && schedule(25_000_000, 0).check().is_err());
    }

    #[test]
    fn poisson_schedule_has_its_mean_and_depends_on_its_seed() {
        let schedule = |seed| Schedule::Poisson { rate_bit_per_s: 8_000_000, seed };
        let due = dues(&schedule(1), 1000, 100_000);
        let mean = due[99_999] / 100_000;
        assert!((990_000..1_010_000).contains(&mean), "{mean}");
        assert_eq!(dues(&schedule(1), 1000, 10), due[..10]);
        assert_ne!(dues(&schedule(2), 1000, 10), due[..10]);
    }

    #[test]
    fn schedule_rejects_rates_of_zero_and_above_the_maximum() {
        assert!(Schedule::Cbr { rate_bit_per_s: 0 }.check().is_err());
        assert!(Schedule::Cbr { rate_bit_per_s: u64::MAX }.check().is_err());
        assert!(Schedule::Cbr { rate_bit_per_s: 1 }.check().is_ok());
    }
}
