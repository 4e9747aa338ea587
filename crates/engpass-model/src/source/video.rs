//! A video sender: frames at a frame rate, each as a burst of datagrams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::poisson::Arrival;
use super::udp_keys::udp_traffic;
use super::{Arrivals, Common, SourceConfig, SourceOutput};
use crate::random::Stream;
use crate::range_errors::{FASTEST, RangeErrors};
use crate::time::{Pace, SECOND, Time};
use crate::unit::{FrameRate, Rate, Share, Size};
use crate::wire::ip::MAX_UDP_PAYLOAD;

udp_traffic! {
    /// Video over UDP: frames at a frame rate, whose datagrams are all due together. All datagrams have one length. The frames of a group of pictures may begin
    /// with a larger intra frame.
    pub struct Video {
        /// Payload of a datagram, 1 B to 65 507 B. Seven packets of an MPEG transport stream have 1316 B.
        pub message: Size,
        /// Mean offered rate of payload, over whole groups of pictures.
        pub rate: Rate,
        /// Frames per second. The first frame is due at the start.
        pub frame_rate: FrameRate,
        /// Frames in a group of pictures, of which the first is an intra frame; 1 (default) for frames of one size.
        #[serde(default = "one")]
        pub group_of_pictures: u32,
        /// Size of an intra frame, relative to any other frame: 100 % (default) to 10 000 %.
        #[serde(default = "whole")]
        pub intra_size: Share,
    }
}

/// The slowest and the fastest frame rate: one frame in 10 s, and 1000 fps.
pub const FRAME_RATES: (FrameRate, FrameRate) =
    (FrameRate(FrameRate::ONE / 10), FrameRate(1000 * FrameRate::ONE));
/// The largest number of frames in a group of pictures.
pub const MAX_GROUP: u64 = 1000;
/// The largest intra frame.
pub const MAX_INTRA: Share = Share(100 * Share::WHOLE);

fn one() -> u32 {
    1
}

fn whole() -> Share {
    Share(Share::WHOLE)
}

impl SourceConfig for Video {
    fn common(&self) -> Common<'_> {
        self.shared_settings()
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Datagrams { bytes: self.message.bytes(), rate: Some(self.rate) }
    }

    fn arrivals(&self, _random: Stream) -> Option<Arrivals> {
        Some(self.frames().arrivals(self.message, self.rate))
    }

    fn frame_pattern(&self) -> Option<FramePattern> {
        Some(self.frames().pattern(self.message, self.rate))
    }

    fn check(&self, errors: &mut RangeErrors) {
        let cause = "a UDP datagram cannot have a payload of this size";
        errors.between(&["message"], self.message.bytes(), (1, MAX_UDP_PAYLOAD), "B", cause);
        errors.between(&["rate"], self.rate.0, (1, FASTEST), "bit/s", "the rate is out of range");
        self.frames().check(errors);
        self.check_shared(errors);
    }
}

impl Video {
    /// Returns its frames.
    pub fn frames(&self) -> Frames {
        let Self { frame_rate, group_of_pictures, intra_size, .. } = *self;
        Frames { frame_rate, group_of_pictures, intra_size }
    }
}

/// The frames of a video, whose datagrams are due together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Frames {
    /// Frames per second. The first frame is due at the start.
    pub frame_rate: FrameRate,
    /// Frames in a group of pictures, of which the first is an intra frame; 1 (default) for frames of one size.
    #[serde(default = "one")]
    pub group_of_pictures: u32,
    /// Size of an intra frame, relative to any other frame: 100 % (default) to 10 000 %.
    #[serde(default = "whole")]
    pub intra_size: Share,
}

impl Frames {
    /// Returns their sizes and times, for messages of this size at this mean rate of payload.
    pub fn pattern(&self, message: Size, rate: Rate) -> FramePattern {
        FramePattern::new(message.bytes(), rate.0, self.frame_rate, self.group_of_pictures, self.intra_size)
    }

    /// Returns the datagrams of a video with these frames.
    pub(super) fn arrivals(&self, message: Size, rate: Rate) -> Arrivals {
        Box::new(Datagrams {
            bytes: message.bytes(),
            last: 0,
            frames: self.pattern(message, rate).messages(),
        })
    }

    /// Adds an error for each wrong value.
    pub(super) fn check(&self, errors: &mut RangeErrors) {
        let (slowest, fastest) = FRAME_RATES;
        if self.frame_rate < slowest || self.frame_rate > fastest {
            let help = format!("give {slowest} to {fastest}");
            errors.add(&["frame_rate"], "the frame rate is out of range", help);
        }
        let (group, cause) = (u64::from(self.group_of_pictures), "the number of frames is out of range");
        errors.between(&["group_of_pictures"], group, (1, MAX_GROUP), "frames", cause);
        if self.intra_size < whole() || self.intra_size > MAX_INTRA {
            let help = format!("give {} to {MAX_INTRA}", whole());
            errors.add(&["intra_size"], "an intra frame cannot have this size", help);
        } else if self.intra_size > whole() && group == 1 {
            let cause = "all frames of this video are intra frames, so they have one size";
            errors.add(&["intra_size"], cause, "add `group_of_pictures = 12`, or remove it");
        }
    }
}

/// The frames of a video: when each is due, and how many messages it has.
///
/// The messages of all frames up to and including one are those that the payload of these frames at the mean rate needs, rounded up once. Therefore the
/// mean rate is exact, and the first frame has at least one message.
#[derive(Clone, Copy, Debug)]
pub struct FramePattern {
    /// Time from frame to frame.
    pace: Pace,
    group: u32,
    /// Payload of an intra frame and of any other frame, in a common unit.
    weights: [u128; 2],
    /// Payload of a message in this unit.
    message: u128,
}

impl FramePattern {
    /// Creates the pattern of a video with messages of `message` bytes at a mean payload rate of `rate` bit/s. Impossible values, which the checks of files
    /// and requests reject, are taken as the nearest possible one.
    pub fn new(message: u64, rate: u64, frames: FrameRate, group: u32, intra: Share) -> Self {
        let (frames, group) = (frames.0.max(1), group.max(1));
        // A group has `rate * group / frame rate` bits, which its frames share by their weights.
        let group_bits = u128::from(rate) * u128::from(FrameRate::ONE) * u128::from(group);
        let [intra, other] = [u128::from(intra.0), u128::from(Share::WHOLE)];
        let all = intra + u128::from(group - 1) * other;
        Self {
            pace: Pace::new(u128::from(SECOND) * u128::from(FrameRate::ONE), u128::from(frames)),
            group,
            weights: [group_bits * intra, group_bits * other],
            message: u128::from(8 * message.max(1)) * u128::from(frames) * all,
        }
    }

    /// Returns when the messages are due, an endless series.
    pub fn messages(self) -> FrameMessages {
        FrameMessages { pattern: self, frame: 0, left: 0, due: 0, ahead: 0 }
    }

    /// Returns the largest number of messages in `count` times that add up to `ps` picoseconds.
    pub fn most_within_several(self, count: u64, ps: u64) -> f64 {
        let [intra, other] = self.weights.map(|weight| weight as f64 / self.message as f64);
        let mean = (intra + f64::from(self.group - 1) * other) / f64::from(self.group);
        let frames = ps as f64 / self.pace.after(1).max(1) as f64;
        // Beyond the mean, a time has at most an intra frame, and part of a message from rounding. A whole picosecond per frame is rounding, too.
        mean * frames * (1.0 + 1e-9) + count as f64 * (intra + 1.0)
    }

    /// Returns the largest number of messages in any time of `ps` picoseconds, both ends included.
    pub fn most_within(self, ps: u64) -> f64 {
        let frames = self.pace.units_within(ps) + 1;
        let group = u64::from(self.group);
        let [intra, other] = self.weights.map(|weight| weight as f64 / self.message as f64);
        let (groups, rest) = ((frames / group) as f64, frames % group);
        let whole = groups * (intra + (group - 1) as f64 * other);
        // The largest part of a group begins with its intra frame.
        let part = if rest == 0 { 0.0 } else { intra + (rest - 1) as f64 * other };
        // Floating-point sums may be a little too small.
        ((whole + part) * (1.0 + 1e-12)).ceil()
    }
}

/// The times at which the messages of a video are due, in picoseconds from its start: an endless series.
#[derive(Clone, Copy, Debug)]
pub struct FrameMessages {
    pattern: FramePattern,
    /// Number of frames begun.
    frame: u64,
    /// Messages of the present frame still to come, and when they are due.
    left: u64,
    due: u64,
    /// Payload of messages sent beyond that of the frames begun, less than a message, in the unit of the pattern.
    ahead: u128,
}

impl FrameMessages {
    /// Returns when the next message is due, never before the last one. Returns `u64::MAX` at the end of time.
    pub fn due(&mut self) -> u64 {
        while self.left == 0 {
            let pattern = &self.pattern;
            self.due = pattern.pace.after(self.frame);
            if self.due == u64::MAX {
                return u64::MAX;
            }
            let payload = pattern.weights[usize::from(!self.frame.is_multiple_of(pattern.group.into()))];
            let more = payload.saturating_sub(self.ahead).div_ceil(pattern.message);
            self.ahead = self.ahead + more * pattern.message - payload;
            self.left = u64::try_from(more).unwrap_or(u64::MAX);
            self.frame += 1;
        }
        self.left -= 1;
        self.due
    }
}

/// The datagrams of a video, an endless series.
#[derive(Clone, Debug)]
struct Datagrams {
    bytes: u64,
    /// When the last datagram was due.
    last: u64,
    frames: FrameMessages,
}

impl Iterator for Datagrams {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let due = self.frames.due();
        let gap = Time(due - self.last);
        self.last = due;
        Some(Arrival { gap, bytes: self.bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    /// Frames of 40 ms; the mean frame has `rate / 25` bits in messages of 1000 B.
    fn video(rate: u64, group: u32, intra_per_cent: u64) -> Video {
        let table = serde_json::json!({
            "from": "a", "to": "b", "message": "1 kB", "rate": Rate(rate), "frame_rate": "25 fps",
            "group_of_pictures": group, "intra_size": Share(intra_per_cent * Share::WHOLE / 100),
        });
        serde_json::from_value(table).expect("the test's JSON is valid")
    }

    /// Returns the number of messages of each of the first frames.
    fn frames(video: &Video, count: usize) -> Vec<usize> {
        let mut sizes = vec![0; count];
        let mut messages = video.frames().pattern(video.message, video.rate).messages();
        loop {
            let due = messages.due();
            assert!(due.is_multiple_of(40 * MS), "{due}");
            match sizes.get_mut((due / (40 * MS)) as usize) {
                Some(size) => *size += 1,
                None => return sizes,
            }
        }
    }

    #[test]
    fn frames_of_one_size_are_bursts_at_the_frame_rate() {
        // 1 Mbit/s: 5 kB per frame.
        assert_eq!(frames(&video(1_000_000, 1, 100), 4), [5, 5, 5, 5]);
        // 1.1 Mbit/s: 5.5 kB per frame, rounded up after each frame.
        assert_eq!(frames(&video(1_100_000, 1, 100), 4), [6, 5, 6, 5]);
        // 50 kbit/s: a message in every fourth frame.
        assert_eq!(frames(&video(50_000, 1, 100), 9), [1, 0, 0, 0, 1, 0, 0, 0, 1]);
    }

    #[test]
    fn intra_frame_is_larger_and_the_mean_rate_stays() {
        // A group of 4 frames has 20 kB: an intra frame of 5 parts, and three frames of one part of 2.5 kB.
        assert_eq!(frames(&video(1_000_000, 4, 500), 8), [13, 2, 3, 2, 13, 2, 3, 2]);
        let group: usize = frames(&video(1_234_567, 12, 437), 1200).iter().sum();
        // 48 s at 1.234567 Mbit/s: 7407.402 messages.
        assert_eq!(group, 7408);
    }

    #[test]
    fn gaps_of_datagrams_add_up_to_their_due_times() {
        let config = video(1_000_000, 4, 500);
        let arrivals = config.arrivals(Stream::new(1, "unused")).expect("frames are bursts");
        let gaps: Vec<_> = arrivals.take(15).map(|arrival| (arrival.gap.0 / MS, arrival.bytes)).collect();
        assert!(gaps[..13].iter().all(|gap| *gap == (0, 1000)));
        assert_eq!(gaps[13..], [(40, 1000), (0, 1000)]);
    }

    #[test]
    fn no_time_has_more_messages_than_the_bound() {
        for (rate, group, intra) in [(1_000_000, 4, 500), (1_100_000, 1, 100), (333_333, 7, 250)] {
            let config = video(rate, group, intra);
            let sizes = frames(&config, 60);
            for length in 1..=20 {
                let most = sizes.windows(length).map(|frames| frames.iter().sum::<usize>()).max();
                let bound = config
                    .frames()
                    .pattern(config.message, config.rate)
                    .most_within((length as u64 - 1) * 40 * MS);
                let most = most.expect("the window is shorter than the video") as f64;
                // Both ends of the rounding may be unlucky at once.
                assert!(most <= bound && bound <= most + 1.0, "{rate} {group} {length}: {most} {bound}");
            }
        }
    }

    #[test]
    fn video_rejects_impossible_frames() {
        let keys = |config: &Video| {
            let mut errors = RangeErrors::default();
            config.check(&mut errors);
            errors.into_iter().map(|complaint| complaint.path.join(".")).collect::<Vec<_>>()
        };
        assert!(keys(&video(1_000_000, 12, 500)).is_empty());
        assert_eq!(keys(&video(1_000_000, 1, 500)), ["intra_size"]);
        assert_eq!(keys(&video(1_000_000, 0, 50)), ["group_of_pictures", "intra_size"]);
        let slow = Video { frame_rate: FrameRate(99_999), ..video(0, 1001, 100) };
        assert_eq!(keys(&slow), ["rate", "frame_rate", "group_of_pictures"]);
    }
}
