//! Sources of traffic.

pub mod cbr;
pub mod on_off;
pub mod tcp_stream;
pub mod udp_stream;

pub use cbr::Cbr;
pub use on_off::OnOff;
pub use tcp_stream::TcpStream;
pub use udp_stream::UdpStream;

use crate::family::family;

family! {
    /// A source of traffic, by its kind.
    Traffic, "kind of traffic" {
        "udp-stream" => UdpStream(UdpStream),
        "tcp-stream" => TcpStream(TcpStream),
        "cbr" => Cbr(Cbr),
        "on-off" => OnOff(OnOff),
    }
}

impl Traffic {
    /// Names of the sending and of the receiving host.
    pub fn ends(&self) -> (&str, &str) {
        match self {
            Self::UdpStream(config) => (&config.from, &config.to),
            Self::TcpStream(config) => (&config.from, &config.to),
            Self::Cbr(config) => (&config.from, &config.to),
            Self::OnOff(config) => (&config.from, &config.to),
        }
    }

    /// The circuit that the table names.
    pub fn circuit(&self) -> Option<&str> {
        match self {
            Self::UdpStream(config) => config.circuit.as_deref(),
            Self::TcpStream(config) => config.circuit.as_deref(),
            Self::Cbr(config) => config.circuit.as_deref(),
            Self::OnOff(config) => config.circuit.as_deref(),
        }
    }
}
