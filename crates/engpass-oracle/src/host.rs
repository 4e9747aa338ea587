//! Processes that send datagrams, and the receiving sockets (docs/model.md, "Hosts that send UDP").

use engpass_model::random::Stream;
use engpass_model::source::{Frames, Multicast, Poisson, UdpOnOff, UdpStream, Video};
use engpass_model::time::Pace;
use engpass_model::unit::Duration;

use crate::arrivals::{Arrivals, Bursts, Gaps, VideoFrames};
use crate::cell::after;
use crate::cost::ps;
use crate::transfer::datagram;

/// Due times and lengths of messages.
#[derive(Debug)]
enum Due {
    /// As soon as the previous message is handed over, or at a pace (time per payload byte); with the length in bytes.
    Stream(Option<Pace>, u64),
    /// A number of messages, perhaps with sentinels.
    Transfer { pace: Option<Pace>, bytes: u64, count: u64, sentinels: bool },
    /// Other times and lengths, which may be drawn.
    Drawn(Arrivals),
}

/// A process that sends datagrams.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) random: Stream,
    start: u64,
    pub(crate) stop: Option<u64>,
    due: Due,
    /// Payload of the message in work, or of the next one, in bytes.
    pub(crate) bytes: u64,
    /// Number of messages begun.
    pub(crate) messages: u64,
    /// Index of the message in work in the ledger.
    pub(crate) datagram: usize,
    /// Index of the fragment in work.
    pub(crate) fragment: usize,
}

impl Process {
    /// Builds a `udp-stream` before its first message.
    pub(crate) fn stream(config: &UdpStream, random: Stream) -> Self {
        let pace = config.rate.map(|rate| Pace::of_bits(8, rate.0));
        let bytes = config.message.bytes();
        let due = match config.count {
            Some(count) => Due::Transfer { pace, bytes, count, sentinels: config.sentinels },
            None => Due::Stream(pace, bytes),
        };
        Self::new((config.start, config.stop), due, random)
    }

    /// Builds a `poisson` source before its first message. `gaps` gives its gaps and payloads.
    pub(crate) fn poisson(config: &Poisson, random: Stream, gaps: Stream) -> Self {
        let due = Due::Drawn(Arrivals::Poisson(Gaps::new(config, gaps)));
        Self::new((config.start, config.stop), due, random)
    }

    /// Builds a `udp-on-off` source before its first message. `times` gives its on- and off-times.
    pub(crate) fn on_off(config: &UdpOnOff, random: Stream, times: Stream) -> Self {
        let due = Due::Drawn(Arrivals::OnOff(Bursts::new(config, times)));
        Self::new((config.start, config.stop), due, random)
    }

    /// Builds a `video` source before its first message.
    pub(crate) fn video(config: &Video, random: Stream) -> Self {
        let Video { frame_rate, group_of_pictures, intra_size, .. } = *config;
        let frames = Frames { frame_rate, group_of_pictures, intra_size };
        let sizes = (config.message.bytes(), config.rate.0);
        let due = Due::Drawn(Arrivals::Video(VideoFrames::new(&frames, sizes, config.start)));
        Self::new((config.start, config.stop), due, random)
    }

    /// Builds a multicast sender before its first message.
    pub(crate) fn group(config: &Multicast, random: Stream) -> Self {
        let sizes = (config.message.bytes(), config.rate.0);
        let due = match &config.video {
            Some(frames) => Due::Drawn(Arrivals::Video(VideoFrames::new(frames, sizes, config.start))),
            None => Due::Stream(Some(Pace::of_bits(8, sizes.1)), sizes.0),
        };
        Self::new((config.start, config.stop), due, random)
    }

    fn new((start, stop): (Option<Duration>, Option<Duration>), due: Due, random: Stream) -> Self {
        let (start, stop) = (ps(start), stop.map(|stop| stop.0));
        Self { random, start, stop, due, bytes: 0, messages: 0, datagram: 0, fragment: 0 }
    }

    /// Returns when the next message may begin, if the previous one was handed over at `handed`.
    pub(crate) fn ready(&mut self, handed: u64) -> u64 {
        let due = match &mut self.due {
            Due::Stream(pace, bytes) => {
                self.bytes = *bytes;
                self.start + pace.map_or(0, |pace| after(pace, self.messages * *bytes))
            }
            Due::Transfer { pace, bytes, count, sentinels } => {
                let next = datagram(self.messages, *count, *bytes, *sentinels);
                let Some((payload, before)) = next else { return u64::MAX };
                self.bytes = payload;
                self.start + pace.map_or(0, |pace| after(pace, before * *bytes))
            }
            Due::Drawn(arrivals) => {
                let (due, bytes) = arrivals.next();
                self.bytes = bytes;
                due
            }
        };
        handed.max(due)
    }
}
