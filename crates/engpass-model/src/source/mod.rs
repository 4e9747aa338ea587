//! Sources of traffic.

pub mod agents;
pub mod cbr;
pub mod live;
pub mod multicast;
pub mod on_off;
pub mod poisson;
pub mod request_response;
pub mod tcp_stream;
pub mod udp_on_off;
pub mod udp_stream;

pub use cbr::Cbr;
pub use live::{Live, Transport};
pub use multicast::Multicast;
pub use on_off::OnOff;
pub use poisson::Poisson;
pub use request_response::RequestResponse;
pub use tcp_stream::TcpStream;
pub use udp_on_off::{Bursts, UdpOnOff};
pub use udp_stream::UdpStream;

use crate::circuit::Category;
use crate::complaint::{LONGEST, RangeErrors};
use crate::family::family;
use crate::host::{DataPath, Side};
use crate::random::{Label, Stream};
use crate::tcp::TcpConfig;
use crate::unit::{Basis, Duration, FramedRate, Rate, Size};

family! {
    /// A source of traffic, by its kind.
    Traffic, "kind of traffic": SourceConfig {
        "udp-stream" => UdpStream(UdpStream),
        "tcp-stream" => TcpStream(TcpStream),
        "poisson" => Poisson(Poisson),
        "udp-on-off" => UdpOnOff(UdpOnOff),
        "request-response" => RequestResponse(RequestResponse),
        "multicast" => Multicast(Multicast),
        "cbr" => Cbr(Cbr),
        "on-off" => OnOff(OnOff),
    }
}

/// What every source says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// Names of the sending and of the receiving host, the first of a group's.
    pub ends: (&'a str, &'a str),
    /// The circuit that the table names.
    pub circuit: Option<&'a str>,
    /// When it starts and when it stops, as far as the table says.
    pub window: (Option<Duration>, Option<Duration>),
    /// Ways of its data at the sending and at the receiving host, as far as the table says.
    pub data_paths: (Option<DataPath>, Option<DataPath>),
    /// Priority of its packets, 0 to 7; 0 for cells, which have none.
    pub priority: u8,
    /// Time to live of its packets; `None` for cells.
    pub ttl: Option<u8>,
    /// Receive buffer of its UDP sockets, where it differs from that of the host.
    pub receive_buffer: Option<Size>,
    /// How real hosts make it; `None` for cells, which no host makes.
    pub live: Option<&'a Live>,
}

impl<'a> Common<'a> {
    /// A source of cells between these hosts, with this start and stop.
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

/// What a source sends.
#[derive(Clone, Copy, Debug)]
pub enum Sends<'a> {
    /// UDP datagrams of a process at a host.
    Datagrams {
        /// Payload of each, the mean where it is drawn.
        bytes: u64,
        /// Rate at which the payload is offered, the mean where gaps are drawn; as fast as the host can where there is none.
        rate: Option<Rate>,
    },
    /// Writes of an application to its TCP connections.
    Writes(&'a TcpStream),
    /// Cells of a generator.
    Cells(CellDemand),
    /// Packets that only real hosts make, and why the engines of the model do not.
    OnRealHosts(&'static str),
}

/// Datagrams that do not come evenly, without end.
pub type Arrivals = Box<dyn Iterator<Item = poisson::Arrival> + Send>;

/// The settings of a source.
pub trait SourceConfig {
    /// What every source says of itself.
    fn common(&self) -> Common<'_>;

    /// What it sends.
    fn sends(&self) -> Sends<'_>;

    /// When its datagrams come, where these are not even; what is drawn comes from `random`.
    fn arrivals(&self, _random: Stream) -> Option<Arrivals> {
        None
    }

    /// Its connections or conversations.
    fn streams(&self) -> u32 {
        1
    }

    /// What it sets of TCP beyond its hosts; `None` where there is no TCP.
    fn tcp(&self) -> Option<&TcpConfig> {
        None
    }

    /// What is wrong with the values, start, stop and the rates of cells apart: those need a link.
    fn check(&self, _complaints: &mut RangeErrors) {}
}

impl Traffic {
    /// Names of the sending and of the receiving host, the first of a group's.
    pub fn ends(&self) -> (&str, &str) {
        self.config().common().ends
    }

    /// The hosts that it goes to: several of a group.
    pub fn receivers(&self) -> Vec<&str> {
        match self {
            Self::Multicast(config) => config.to.iter().map(String::as_str).collect(),
            _ => vec![self.ends().1],
        }
    }

    /// The circuit that the table names.
    pub fn circuit(&self) -> Option<&str> {
        self.config().common().circuit
    }

    /// Way of its data at one side, if the table says it; never for cells, whose generators are no hosts' programs.
    pub fn data_path(&self, side: Side) -> Option<DataPath> {
        let (send, receive) = self.config().common().data_paths;
        match side {
            Side::Send => send,
            Side::Receive => receive,
        }
    }

    /// Priority of its packets, 0 to 7; 0 for cells, which have none.
    pub fn priority(&self) -> u8 {
        self.config().common().priority
    }

    /// Time to live of its packets; `None` for cells.
    pub fn ttl(&self) -> Option<u8> {
        self.config().common().ttl
    }

    /// When it starts and when it stops, as far as the table says.
    pub fn window(&self) -> (Option<Duration>, Option<Duration>) {
        self.config().common().window
    }

    /// What it sends.
    pub fn sends(&self) -> Sends<'_> {
        self.config().sends()
    }

    /// What a generator of cells asks of its link; `None` for what sends datagrams from a host.
    pub fn cells(&self) -> Option<CellDemand> {
        match self.sends() {
            Sends::Cells(demand) => Some(demand),
            _ => None,
        }
    }

    /// What it sends where those are UDP datagrams: their payload in bytes and the rate at which it is offered, means where they
    /// are drawn; as fast as the host can where there is no rate.
    pub fn datagrams(&self) -> Option<(u64, Option<Rate>)> {
        match self.sends() {
            Sends::Datagrams { bytes, rate } => Some((bytes, rate)),
            _ => None,
        }
    }

    /// When its datagrams come, drawn or in bursts, from the stream of random numbers for this name; `None` where they are even, or none.
    pub fn arrivals(&self, seed: u64, name: &str) -> Option<Arrivals> {
        self.config().arrivals(Stream::new(seed, Label::Arrivals(name)))
    }

    /// Its sources of packets: connections or conversations of kinds that have several, else one.
    pub fn streams(&self) -> u32 {
        self.config().streams()
    }

    /// How real hosts make it; `None` for cells, which no host makes.
    pub fn live(&self) -> Option<&Live> {
        self.config().common().live
    }

    /// What this traffic sets of TCP beyond its hosts; `None` where there is no TCP.
    pub fn tcp(&self) -> Option<&TcpConfig> {
        self.config().tcp()
    }

    /// Receive buffer of its UDP sockets, where it differs from that of the host.
    pub fn receive_buffer(&self) -> Option<Size> {
        self.config().common().receive_buffer
    }

    /// Why the engines of the model do not carry it; `None` for what they do.
    pub fn unmodelled(&self) -> Option<&'static str> {
        match self.sends() {
            Sends::OnRealHosts(cause) => Some(cause),
            _ => None,
        }
    }

    /// What is wrong with the values, the rates of cells apart: those need a link.
    pub fn check(&self, complaints: &mut RangeErrors) {
        self.config().check(complaints);
        let (start, stop) = self.window();
        complaints.at_most(&["start"], start, LONGEST);
        complaints.at_most(&["stop"], stop, LONGEST);
        let start = start.unwrap_or(Duration(0));
        if stop.is_some_and(|stop| stop <= start) {
            let cause = format!("it starts at {start}, and nothing is ever sent");
            complaints.add(&["stop"], cause, "let `stop` be later than `start`");
        }
    }
}

/// The time to live that RFC 1700 recommends.
fn default_ttl() -> u8 {
    64
}

/// What is wrong with the TCP of a traffic.
fn check_tcp(tcp: &TcpConfig, complaints: &mut RangeErrors) {
    let mut own = RangeErrors::default();
    tcp.check(&mut own);
    complaints.under(&["tcp"], own);
}

/// What is wrong with the buffer of a UDP socket.
fn check_receive_buffer(size: Option<Size>, complaints: &mut RangeErrors) {
    if let Some(size) = size {
        let cause = "no socket has that";
        complaints.between(&["receive_buffer"], size.bytes(), (1, 1 << 30), "B", cause);
    }
}

/// What is wrong with the priority and the time to live of packets.
fn check_packets(priority: u8, ttl: u8, complaints: &mut RangeErrors) {
    if priority > 7 {
        complaints.add(&["priority"], "a priority code point has 3 bits", "give `0` to `7`, 7 goes first");
    }
    if ttl == 0 {
        complaints.add(&["ttl"], "such a packet may not be sent", "give `1` to `255`");
    }
}

/// Cells that a generator sends, and the circuit that it has where its table names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellDemand {
    /// Rate, of an `on-off` source while it is on.
    pub rate: FramedRate,
    /// What a rate without its own word counts.
    pub counts: Option<Basis>,
    /// Category of its own circuit.
    pub category: Category,
    /// Whether a rate of zero switches it off.
    pub can_be_off: bool,
}
