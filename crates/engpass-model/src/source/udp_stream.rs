//! UDP datagrams as fast as the host can, or at a rate.

use super::transfer::{Datagrams, SENTINEL_BYTES, Transfer};
use super::udp_keys::udp_traffic;
use super::{Arrivals, Common, SourceConfig, SourceOutput};
use crate::random::Stream;
use crate::range_errors::{FASTEST, RangeErrors};
use crate::time::Pace;
use crate::unit::{Rate, Size};
use crate::wire::ip::MAX_UDP_PAYLOAD;

udp_traffic! {
    /// Datagrams of one size: one after the other as fast as the sending host can (netperf's UDP_STREAM), or paced.
    pub struct UdpStream {
        /// Payload of a datagram, 1 B to 65 507 B.
        pub message: Size,
        /// Offered rate of payload, evenly spaced. As fast as the host can if not given.
        pub rate: Option<Rate>,
        /// Number of messages; it then sends no more. If not given, it sends until it stops. The outcome then has the time of the transfer, as its receiver
        /// measures it.
        pub count: Option<u64>,
        /// Whether datagrams of 4 B mark the transfer as those of ttcp do: one before the first message, and five behind the last. The receiver measures from the
        /// first that it gets to the next one.
        #[serde(default)]
        pub sentinels: bool,
    }
}

impl SourceConfig for UdpStream {
    fn common(&self) -> Common<'_> {
        self.shared_settings()
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Datagrams { bytes: self.message.bytes(), rate: self.rate }
    }

    fn arrivals(&self, _random: Stream) -> Option<Arrivals> {
        let (count, bytes) = (self.count?, self.message.bytes());
        let pace = self.rate.map(|rate| Pace::of_bits(8 * bytes.max(1), rate.0.max(1)));
        Some(Box::new(Datagrams { bytes, pace, count, sentinels: self.sentinels, sent: 0, last: 0 }))
    }

    fn transfer(&self) -> Option<Transfer> {
        let bytes = self.message.bytes().saturating_mul(self.count?);
        Some(Transfer { bytes, sentinels: self.sentinels })
    }

    fn check(&self, errors: &mut RangeErrors) {
        super::check_count(self.count, errors);
        if self.sentinels && self.count.is_none() {
            let cause = "a stream without a number of messages has no end to mark";
            errors.add(&["sentinels"], cause, "add `count = 2048`, or remove it");
        }
        if self.sentinels && self.message.bytes() <= SENTINEL_BYTES {
            let cause = "a receiver takes datagrams of up to 4 B for sentinels";
            errors.add(&["message"], cause, "give 5 B or more, or remove `sentinels`");
        }
        let cause = "a UDP datagram cannot have a payload of this size";
        errors.between(&["message"], self.message.bytes(), (1, MAX_UDP_PAYLOAD), "B", cause);
        self.check_shared(errors);
        if let Some(rate) = self.rate {
            errors.between(&["rate"], rate.0, (1, FASTEST), "bit/s", "the rate is out of range");
        }
    }
}
