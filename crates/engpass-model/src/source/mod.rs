//! Traffic sources.

pub mod agent_limits;
pub mod cbr;
pub mod multicast;
pub mod on_off;
pub mod poisson;
pub mod real_host_options;
pub mod request_response;
pub mod tcp_stream;
pub mod transfer;
mod udp_keys;
pub mod udp_on_off;
pub mod udp_stream;
pub mod video;

pub use cbr::Cbr;
pub use multicast::Multicast;
pub use on_off::OnOff;
pub use poisson::Poisson;
pub use real_host_options::{Live, Transport};
pub use request_response::RequestResponse;
pub use tcp_stream::TcpStream;
pub use transfer::Transfer;
pub use udp_on_off::{Bursts, UdpOnOff};
pub use udp_stream::UdpStream;
pub use video::{FrameMessages, FramePattern, Frames, Video};

use crate::circuit::Category;
use crate::component_family::family;
use crate::host::{DataPath, Side};
use crate::random::{Label, Stream};
use crate::range_errors::{LONGEST, RangeErrors};
use crate::tcp::TcpConfig;
use crate::unit::{Basis, Duration, FramedRate, Rate, Size};

family! {
    /// A source of traffic, by its kind.
    Traffic, "kind of traffic": SourceConfig {
        "udp-stream" => UdpStream(UdpStream),
        "tcp-stream" => TcpStream(TcpStream),
        "poisson" => Poisson(Poisson),
        "udp-on-off" => UdpOnOff(UdpOnOff),
        "video" => Video(Video),
        "request-response" => RequestResponse(RequestResponse),
        "multicast" => Multicast(Multicast),
        "cbr" => Cbr(Cbr),
        "on-off" => OnOff(OnOff),
    }
}

/// The settings that every source has.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// Names of the sending and of the receiving host; of a multicast group, the first receiver.
    pub ends: (&'a str, &'a str),
    /// The virtual circuit that the table names.
    pub circuit: Option<&'a str>,
    /// Start and stop time, if given.
    pub window: (Option<Duration>, Option<Duration>),
    /// Data paths at the sending and at the receiving host, if given.
    pub data_paths: (Option<DataPath>, Option<DataPath>),
    /// Priority of its packets, 0 to 7; 0 for cells, which have no priority.
    pub priority: u8,
    /// Time to live of its packets; `None` for cells.
    pub ttl: Option<u8>,
    /// Receive buffer of its UDP sockets, if it differs from that of the host.
    pub receive_buffer: Option<Size>,
    /// Settings for real hosts; `None` for cells, which no host sends.
    pub live: Option<&'a Live>,
}

impl<'a> Common<'a> {
    /// Returns the settings of a source of cells between these hosts. Other sources change the other fields.
    fn between(ends: (&'a str, &'a str), window: (Option<Duration>, Option<Duration>)) -> Self {
        Self {
            ends,
            circuit: None,
            window,
            data_paths: (None, None),
            priority: 0,
            ttl: None,
            receive_buffer: None,
            live: None,
        }
    }
}

/// The kind of data that a source sends.
#[derive(Clone, Copy, Debug)]
pub enum SourceOutput<'a> {
    /// UDP datagrams of an application on a host.
    Datagrams {
        /// Payload of each in bytes; the mean if payloads are drawn.
        bytes: u64,
        /// Offered rate of payload, the mean if gaps are drawn; `None` for as fast as the host can.
        rate: Option<Rate>,
    },
    /// Writes of an application to TCP connections.
    Writes(&'a TcpStream),
    /// Cells of a generator.
    Cells(CellDemand),
    /// Packets that only real hosts send; the text says why the model's engines do not.
    OnRealHosts(&'static str),
}

/// An endless series of datagrams that are not evenly spaced.
pub type Arrivals = Box<dyn Iterator<Item = poisson::Arrival> + Send>;

/// The settings of a source.
pub trait SourceConfig {
    /// Returns the settings that every source has.
    fn common(&self) -> Common<'_>;

    /// Returns the kind of data that it sends.
    fn sends(&self) -> SourceOutput<'_>;

    /// Returns its datagrams if they are not evenly spaced. Random values are drawn from `random`.
    fn arrivals(&self, _random: Stream) -> Option<Arrivals> {
        None
    }

    /// Returns its frames, if it sends video.
    fn frame_pattern(&self) -> Option<FramePattern> {
        None
    }

    /// Returns its transfer, if it sends a given number of messages and no more.
    fn transfer(&self) -> Option<Transfer> {
        None
    }

    /// Returns the number of its connections or conversations.
    fn streams(&self) -> u32 {
        1
    }

    /// Returns its TCP settings, which take precedence over those of its hosts; `None` without TCP.
    fn tcp(&self) -> Option<&TcpConfig> {
        None
    }

    /// Adds an error for each wrong value. [`Traffic::check`] checks start and stop; cell rates are checked later, because they need a
    /// link.
    fn check(&self, _complaints: &mut RangeErrors) {}
}

impl Traffic {
    /// Returns the names of the sending and of the receiving host; of a multicast group, the first receiver.
    pub fn ends(&self) -> (&str, &str) {
        self.config().common().ends
    }

    /// Returns the receiving hosts: several for a multicast group.
    pub fn receivers(&self) -> Vec<&str> {
        match self {
            Self::Multicast(config) => config.to.iter().map(String::as_str).collect(),
            _ => vec![self.ends().1],
        }
    }

    /// Returns the virtual circuit that the table names.
    pub fn circuit(&self) -> Option<&str> {
        self.config().common().circuit
    }

    /// Returns its data path at one side, if given. Cells have none, because their generators are no applications.
    pub fn data_path(&self, side: Side) -> Option<DataPath> {
        let (send, receive) = self.config().common().data_paths;
        match side {
            Side::Send => send,
            Side::Receive => receive,
        }
    }

    /// Returns the priority of its packets, 0 to 7; 0 for cells, which have no priority.
    pub fn priority(&self) -> u8 {
        self.config().common().priority
    }

    /// Returns the time to live of its packets; `None` for cells.
    pub fn ttl(&self) -> Option<u8> {
        self.config().common().ttl
    }

    /// Returns its start and stop time, if given.
    pub fn window(&self) -> (Option<Duration>, Option<Duration>) {
        self.config().common().window
    }

    /// Returns the kind of data that it sends.
    pub fn sends(&self) -> SourceOutput<'_> {
        self.config().sends()
    }

    /// Returns the cells that a generator sends; `None` for traffic of a host.
    pub fn cells(&self) -> Option<CellDemand> {
        match self.sends() {
            SourceOutput::Cells(demand) => Some(demand),
            _ => None,
        }
    }

    /// Returns the payload in bytes and the offered rate of its UDP datagrams, means if they are drawn; `None` if it sends no datagrams. Without a
    /// rate, the host sends as fast as it can.
    pub fn datagrams(&self) -> Option<(u64, Option<Rate>)> {
        match self.sends() {
            SourceOutput::Datagrams { bytes, rate } => Some((bytes, rate)),
            _ => None,
        }
    }

    /// Returns its datagrams if they are drawn or in bursts; `None` if they are evenly spaced, or if it sends none. The seed and the traffic's name
    /// give the random numbers.
    pub fn arrivals(&self, seed: u64, name: &str) -> Option<Arrivals> {
        self.config().arrivals(Stream::new(seed, Label::Arrivals(name)))
    }

    /// Returns its frames, if it sends video.
    pub fn frame_pattern(&self) -> Option<FramePattern> {
        self.config().frame_pattern()
    }

    /// Returns its transfer, if it sends a given number of messages and no more.
    pub fn transfer(&self) -> Option<Transfer> {
        self.config().transfer()
    }

    /// Returns the number of its connections or conversations; 1 for kinds without several.
    pub fn streams(&self) -> u32 {
        self.config().streams()
    }

    /// Returns its settings for real hosts; `None` for cells, which no host sends.
    pub fn live(&self) -> Option<&Live> {
        self.config().common().live
    }

    /// Returns its TCP settings, which take precedence over those of its hosts; `None` without TCP.
    pub fn tcp(&self) -> Option<&TcpConfig> {
        self.config().tcp()
    }

    /// Returns the receive buffer of its UDP sockets, if it differs from that of the host.
    pub fn receive_buffer(&self) -> Option<Size> {
        self.config().common().receive_buffer
    }

    /// Returns why the model's engines do not carry it; `None` if they do.
    pub fn unmodelled(&self) -> Option<&'static str> {
        match self.sends() {
            SourceOutput::OnRealHosts(cause) => Some(cause),
            _ => None,
        }
    }

    /// Adds an error for each wrong value. Does not check cell rates, which need a link.
    pub fn check(&self, errors: &mut RangeErrors) {
        self.config().check(errors);
        let (start, stop) = self.window();
        errors.at_most(&["start"], start, LONGEST);
        errors.at_most(&["stop"], stop, LONGEST);
        let start = start.unwrap_or(Duration(0));
        if stop.is_some_and(|stop| stop <= start) {
            let cause = format!("the traffic starts at {start}, so it would send nothing");
            errors.add(&["stop"], cause, "set `stop` later than `start`");
        }
    }
}

/// The time to live that RFC 1700 recommends.
fn default_ttl() -> u8 {
    64
}

/// Adds an error for each wrong TCP setting of a traffic.
fn check_tcp(tcp: &TcpConfig, errors: &mut RangeErrors) {
    let mut own = RangeErrors::default();
    tcp.check(&mut own);
    errors.under(&["tcp"], own);
}

/// Adds an error if the receive buffer of a UDP socket is wrong.
fn check_receive_buffer(size: Option<Size>, errors: &mut RangeErrors) {
    if let Some(size) = size {
        let cause = "a socket buffer cannot have this size";
        errors.between(&["receive_buffer"], size.bytes(), (1, 1 << 30), "B", cause);
    }
}

/// Adds an error if a number of messages is wrong.
fn check_count(count: Option<u64>, errors: &mut RangeErrors) {
    if let Some(count) = count {
        let cause = "the number of messages is out of range";
        errors.between(&["count"], count, (1, transfer::MAX_COUNT), "messages", cause);
    }
}

/// Adds an error if the priority or the time to live of packets is wrong.
fn check_packets(priority: u8, ttl: u8, errors: &mut RangeErrors) {
    if priority > 7 {
        errors.add(
            &["priority"],
            "a priority code point has 3 bits",
            "give `0` to `7`; `7` is the highest priority",
        );
    }
    if ttl == 0 {
        errors.add(&["ttl"], "a packet with a TTL of 0 cannot be sent", "give `1` to `255`");
    }
}

/// Cells that a generator sends, and the category of its own circuit if its table names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellDemand {
    /// Rate of the cells; of an `on-off` source, the rate while it is on.
    pub rate: FramedRate,
    /// Basis of the rate, if the rate does not include it.
    pub counts: Option<Basis>,
    /// Category of its own circuit, if the table names none.
    pub category: Category,
    /// Whether a rate of zero switches it off.
    pub can_be_off: bool,
}
