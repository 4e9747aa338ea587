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
use crate::complaint::{Complaints, LONGEST};
use crate::family::family;
use crate::host::{DataPath, Side};
use crate::random::{Label, Stream};
use crate::tcp::TcpConfig;
use crate::unit::{Basis, Duration, FramedRate, Rate, Size};

family! {
    /// A source of traffic, by its kind.
    Traffic, "kind of traffic" {
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

impl Traffic {
    /// Names of the sending and of the receiving host, the first of a group's.
    pub fn ends(&self) -> (&str, &str) {
        match self {
            Self::UdpStream(config) => (&config.from, &config.to),
            Self::TcpStream(config) => (&config.from, &config.to),
            Self::Poisson(config) => (&config.from, &config.to),
            Self::UdpOnOff(config) => (&config.from, &config.to),
            Self::RequestResponse(config) => (&config.from, &config.to),
            Self::Multicast(config) => (&config.from, config.to.first().map_or("", String::as_str)),
            Self::Cbr(config) => (&config.from, &config.to),
            Self::OnOff(config) => (&config.from, &config.to),
        }
    }

    /// The circuit that the table names.
    pub fn circuit(&self) -> Option<&str> {
        match self {
            Self::UdpStream(config) => config.circuit.as_deref(),
            Self::TcpStream(config) => config.circuit.as_deref(),
            Self::Poisson(config) => config.circuit.as_deref(),
            Self::UdpOnOff(config) => config.circuit.as_deref(),
            Self::RequestResponse(config) => config.circuit.as_deref(),
            Self::Multicast(_) => None,
            Self::Cbr(config) => config.circuit.as_deref(),
            Self::OnOff(config) => config.circuit.as_deref(),
        }
    }

    /// Way of its data at one side, if the table says it; never for cells, whose generators are no hosts' programs.
    pub fn data_path(&self, side: Side) -> Option<DataPath> {
        let (send, receive) = match self {
            Self::UdpStream(config) => (config.send_path, config.receive_path),
            Self::TcpStream(config) => (config.send_path, config.receive_path),
            Self::Poisson(config) => (config.send_path, config.receive_path),
            Self::UdpOnOff(config) => (config.send_path, config.receive_path),
            Self::Cbr(_) | Self::OnOff(_) | Self::RequestResponse(_) | Self::Multicast(_) => (None, None),
        };
        match side {
            Side::Send => send,
            Side::Receive => receive,
        }
    }

    /// Priority of its packets, 0 to 7; 0 for cells, which have none.
    pub fn priority(&self) -> u8 {
        match self {
            Self::UdpStream(config) => config.priority,
            Self::TcpStream(config) => config.priority,
            Self::Poisson(config) => config.priority,
            Self::UdpOnOff(config) => config.priority,
            Self::RequestResponse(config) => config.priority,
            Self::Multicast(config) => config.priority,
            Self::Cbr(_) | Self::OnOff(_) => 0,
        }
    }

    /// Time to live of its packets; `None` for cells.
    pub fn ttl(&self) -> Option<u8> {
        match self {
            Self::UdpStream(config) => Some(config.ttl),
            Self::TcpStream(config) => Some(config.ttl),
            Self::Poisson(config) => Some(config.ttl),
            Self::UdpOnOff(config) => Some(config.ttl),
            Self::RequestResponse(config) => Some(config.ttl),
            Self::Multicast(config) => Some(config.ttl),
            Self::Cbr(_) | Self::OnOff(_) => None,
        }
    }

    /// When it starts and when it stops, as far as the table says.
    pub fn window(&self) -> (Option<Duration>, Option<Duration>) {
        match self {
            Self::UdpStream(config) => (config.start, config.stop),
            Self::TcpStream(config) => (config.start, config.stop),
            Self::Poisson(config) => (config.start, config.stop),
            Self::UdpOnOff(config) => (config.start, config.stop),
            Self::RequestResponse(config) => (config.start, config.stop),
            Self::Multicast(config) => (config.start, config.stop),
            Self::Cbr(config) => (config.start, config.stop),
            Self::OnOff(config) => (config.start, config.stop),
        }
    }

    /// What a generator of cells asks of its link; `None` for what sends datagrams from a host.
    pub fn cells(&self) -> Option<CellDemand> {
        match self {
            Self::UdpStream(_)
            | Self::TcpStream(_)
            | Self::Poisson(_)
            | Self::UdpOnOff(_)
            | Self::RequestResponse(_)
            | Self::Multicast(_) => None,
            Self::Cbr(config) => Some(CellDemand {
                rate: config.rate,
                counts: config.counts,
                category: Category::Cbr,
                can_be_off: true,
            }),
            Self::OnOff(config) => Some(CellDemand {
                rate: config.rate,
                counts: config.counts,
                category: Category::Ubr,
                can_be_off: false,
            }),
        }
    }

    /// What it sends where those are UDP datagrams: their payload in bytes and the rate at which it is offered, means where they
    /// are drawn; as fast as the host can where there is no rate.
    pub fn datagrams(&self) -> Option<(u64, Option<Rate>)> {
        match self {
            Self::UdpStream(config) => Some((config.message.bytes(), config.rate)),
            Self::Poisson(config) => Some((config.message.bytes(), Some(config.rate))),
            Self::UdpOnOff(config) => Some((config.message.bytes(), Some(config.mean()))),
            Self::TcpStream(_)
            | Self::RequestResponse(_)
            | Self::Multicast(_)
            | Self::Cbr(_)
            | Self::OnOff(_) => None,
        }
    }

    /// When its datagrams come, drawn or in bursts, from the stream of random numbers for this name; `None` where they are even, or none.
    pub fn arrivals(&self, seed: u64, name: &str) -> Option<Arrivals> {
        let random = || Stream::new(seed, Label::Arrivals(name));
        match self {
            Self::Poisson(config) => Some(Arrivals::Poisson(config.arrivals(random()))),
            Self::UdpOnOff(config) => Some(Arrivals::Bursts(Box::new(config.arrivals(random())))),
            _ => None,
        }
    }

    /// Its sources of packets: connections or conversations of kinds that have several, else one.
    pub fn streams(&self) -> u32 {
        match self {
            Self::TcpStream(config) => config.streams,
            Self::RequestResponse(config) => config.streams,
            _ => 1,
        }
    }

    /// How real hosts make it; `None` for cells, which no host makes.
    pub fn live(&self) -> Option<&Live> {
        match self {
            Self::UdpStream(config) => Some(&config.live),
            Self::TcpStream(config) => Some(&config.live),
            Self::Poisson(config) => Some(&config.live),
            Self::UdpOnOff(config) => Some(&config.live),
            Self::RequestResponse(config) => Some(&config.live),
            Self::Multicast(config) => Some(&config.live),
            Self::Cbr(_) | Self::OnOff(_) => None,
        }
    }

    /// What this traffic sets of TCP beyond its hosts; `None` where there is no TCP.
    pub fn tcp(&self) -> Option<&TcpConfig> {
        match self {
            Self::TcpStream(config) => Some(&config.tcp),
            Self::RequestResponse(config) if config.transport == Transport::Tcp => Some(&config.tcp),
            _ => None,
        }
    }

    /// Receive buffer of its UDP sockets, where it differs from that of the host.
    pub fn receive_buffer(&self) -> Option<Size> {
        match self {
            Self::UdpStream(config) => config.receive_buffer,
            Self::Poisson(config) => config.receive_buffer,
            Self::UdpOnOff(config) => config.receive_buffer,
            Self::Multicast(config) => config.receive_buffer,
            Self::TcpStream(_) | Self::RequestResponse(_) | Self::Cbr(_) | Self::OnOff(_) => None,
        }
    }

    /// Why the engines of the model do not carry it; `None` for what they do.
    pub fn unmodelled(&self) -> Option<&'static str> {
        match self {
            Self::RequestResponse(_) => Some("the model has no application that answers"),
            Self::Multicast(_) => Some("the model has no way that divides"),
            _ => None,
        }
    }

    /// What is wrong with the values, the rates of cells apart: those need a link.
    pub fn check(&self, complaints: &mut Complaints) {
        match self {
            Self::UdpStream(config) => config.check(complaints),
            Self::TcpStream(config) => config.check(complaints),
            Self::Poisson(config) => config.check(complaints),
            Self::UdpOnOff(config) => config.check(complaints),
            Self::RequestResponse(config) => config.check(complaints),
            Self::Multicast(config) => config.check(complaints),
            Self::Cbr(_) => {}
            Self::OnOff(config) => config.check(complaints),
        }
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

/// Datagrams that do not come evenly, without end.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// Of `poisson` traffic.
    Poisson(poisson::Arrivals),
    /// Of `udp-on-off` traffic.
    Bursts(Box<udp_on_off::Datagrams>),
}

impl Iterator for Arrivals {
    type Item = poisson::Arrival;

    #[inline]
    fn next(&mut self) -> Option<poisson::Arrival> {
        match self {
            Self::Poisson(arrivals) => arrivals.next(),
            Self::Bursts(bursts) => bursts.next(),
        }
    }
}

/// The time to live that RFC 1700 recommends.
fn default_ttl() -> u8 {
    64
}

/// What is wrong with the TCP of a traffic.
fn check_tcp(tcp: &TcpConfig, complaints: &mut Complaints) {
    let mut own = Complaints::default();
    tcp.check(&mut own);
    complaints.under(&["tcp"], own);
}

/// What is wrong with the buffer of a UDP socket.
fn check_receive_buffer(size: Option<Size>, complaints: &mut Complaints) {
    if let Some(size) = size {
        let cause = "no socket has that";
        complaints.between(&["receive_buffer"], size.bytes(), (1, 1 << 30), "B", cause);
    }
}

/// What is wrong with the priority and the time to live of packets.
fn check_packets(priority: u8, ttl: u8, complaints: &mut Complaints) {
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
