//! Due times of datagrams of sources without a fixed interval (docs/model.md, "poisson", "udp-on-off" and "video").

use engpass_model::random::Stream;
use engpass_model::source::on_off::Lengths;
use engpass_model::source::poisson::Sizes;
use engpass_model::source::{Frames, Poisson, UdpOnOff};
use engpass_model::time::{Pace, SECOND};
use engpass_model::unit::{Duration, FrameRate, Share};

use crate::cell::after;
use crate::cost::ps;

/// The sequence of datagrams of a source.
#[derive(Debug)]
pub(crate) enum Arrivals {
    Poisson(Gaps),
    OnOff(Bursts),
    Video(VideoFrames),
}

impl Arrivals {
    /// Returns when the next datagram is due, in picoseconds, and its payload in bytes.
    pub(crate) fn next(&mut self) -> (u64, u64) {
        match self {
            Self::Poisson(gaps) => gaps.next(),
            Self::OnOff(bursts) => bursts.next(),
            Self::Video(frames) => frames.next(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Gaps {
    random: Stream,
    /// Mean gap in picoseconds.
    mean_gap: u64,
    mean_bytes: u64,
    sizes: Sizes,
    /// Due time of the last datagram in picoseconds.
    due: u64,
}

impl Gaps {
    pub(crate) fn new(config: &Poisson, random: Stream) -> Self {
        let mean_bytes = config.message.bytes();
        let mean_gap = after(Pace::of_bits(8, config.rate.0), mean_bytes);
        Self { random, mean_gap, mean_bytes, sizes: config.sizes, due: ps(config.start) }
    }

    pub(crate) fn next(&mut self) -> (u64, u64) {
        self.due += self.random.exponential(self.mean_gap);
        let bytes = match self.sizes {
            Sizes::Fixed => self.mean_bytes,
            // In 2^-16 of a byte, rounded to the nearest.
            Sizes::Exponential => {
                ((self.random.exponential(self.mean_bytes << 16) + (1 << 15)) >> 16).clamp(1, 65_507)
            }
        };
        (self.due, bytes)
    }
}

/// On-times with evenly spaced datagrams.
#[derive(Debug)]
pub(crate) struct Bursts {
    random: Stream,
    bytes: u64,
    /// Time between datagrams at the rate.
    pace: Pace,
    /// Means in picoseconds.
    on: u64,
    off: u64,
    lengths: Lengths,
    /// The current on-time: its beginning and length in picoseconds, and its number of datagrams so far.
    begun: u64,
    length: u64,
    sent: u64,
}

impl Bursts {
    pub(crate) fn new(config: &UdpOnOff, random: Stream) -> Self {
        let bytes = config.message.bytes();
        let mut bursts = Self {
            random,
            bytes,
            pace: Pace::of_bits(8 * bytes, config.rate.0),
            on: config.on.0,
            off: config.off.0,
            lengths: config.lengths,
            begun: ps(config.start),
            length: 0,
            sent: 0,
        };
        bursts.length = bursts.draw(bursts.on);
        bursts
    }

    pub(crate) fn draw(&mut self, mean: u64) -> u64 {
        match self.lengths {
            Lengths::Fixed => mean,
            Lengths::Exponential => self.random.exponential(mean),
        }
    }

    pub(crate) fn next(&mut self) -> (u64, u64) {
        loop {
            let offset = after(self.pace, self.sent);
            if offset < self.length {
                self.sent += 1;
                return (self.begun + offset, self.bytes);
            }
            let off = self.draw(self.off);
            self.begun += self.length + off;
            self.length = self.draw(self.on);
            self.sent = 0;
        }
    }
}

/// Frames of a video, whose messages are due together.
#[derive(Debug)]
pub(crate) struct VideoFrames {
    start: u64,
    bytes: u64,
    /// Messages of a group of pictures, as a fraction.
    messages_per_group: (u128, u128),
    /// Frames per second in millionths, and frames in a group.
    rate: u128,
    group: u128,
    /// Size of an intra frame and of any other frame, in a common unit.
    intra: u128,
    other: u128,
    /// Number of the frame in work, from 0, and of messages so far.
    frame: u128,
    sent: u128,
}

impl VideoFrames {
    /// Creates the frames of a video with messages of `bytes` bytes and a mean rate in bit/s.
    pub(crate) fn new(config: &Frames, (bytes, bit_per_s): (u64, u64), start: Option<Duration>) -> Self {
        let (rate, group) = (u128::from(config.frame_rate.0), u128::from(config.group_of_pictures));
        let bits = u128::from(bit_per_s) * u128::from(FrameRate::ONE) * group;
        let message = u128::from(bytes) * 8 * rate;
        let shared = common_divisor(bits, message);
        let sizes = (u128::from(config.intra_size.0), u128::from(Share::WHOLE));
        let unit = common_divisor(sizes.0, sizes.1);
        Self {
            start: ps(start),
            bytes,
            messages_per_group: (bits / shared, message / shared),
            rate,
            group,
            intra: sizes.0 / unit,
            other: sizes.1 / unit,
            frame: 0,
            sent: 0,
        }
    }

    /// Returns the number of messages of the first `frames` frames.
    fn messages_of(&self, frames: u128) -> u128 {
        let size_of = |frames: u128| match frames {
            0 => 0,
            _ => self.intra + (frames - 1) * self.other,
        };
        let whole = size_of(self.group);
        let size = frames / self.group * whole + size_of(frames % self.group);
        let (messages, groups) = self.messages_per_group;
        (size * messages).div_ceil(whole * groups)
    }

    pub(crate) fn next(&mut self) -> (u64, u64) {
        while self.messages_of(self.frame + 1) <= self.sent {
            self.frame += 1;
        }
        self.sent += 1;
        let due = (self.frame * u128::from(SECOND) * u128::from(FrameRate::ONE)).div_ceil(self.rate);
        (self.start + u64::try_from(due).expect("a run ends before 213 days"), self.bytes)
    }
}

fn common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
