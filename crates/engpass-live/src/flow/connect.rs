//! The connecting side of the handshake, which proves the run's token. It sends only handshake messages until the peer has proved that it knows the token.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use socket2::Socket;

use super::socket::{self, any};
use super::spec::Spec;
use crate::handshake::{HEAD, HandshakeMessage, Kind};
use crate::protocol_error::{Code, ErrorContext, ProtocolError, Result};
use crate::sys::thread;

/// Time-out for a TCP connection.
const CONNECTING: Duration = Duration::from_secs(4);
/// Time-out for the next handshake message from a TCP peer.
const ANSWERING: Duration = Duration::from_secs(2);
/// Wait after each copy of a handshake message over UDP, because paths lose packets. An address that never answers receives only these copies of one hello.
const TRIES: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1500),
];

/// Connects one stream and runs the handshake. Fails if the peer does not answer or does not know the token.
pub(crate) fn connect(spec: &Spec, stream: u16, to: SocketAddr) -> Result<Socket> {
    let ip = spec.asked.address.unwrap_or_else(|| any(to.ip(), 0).ip());
    let own = socket::open(spec, ip)?;
    own.bind(&SocketAddr::new(ip, 0).into()).doing("bind to `address`")?;
    let connected =
        if spec.udp { own.connect(&to.into()) } else { own.connect_timeout(&to.into(), CONNECTING) };
    connected.map_err(|error| {
        if error.kind() == ErrorKind::TimedOut {
            let cause = format!("connect to {to}: nothing came back within {} s", CONNECTING.as_secs());
            let help = "check addresses, routes and firewalls between the two hosts";
            return unanswered(Code::Unreachable, cause, help, stream);
        }
        ProtocolError::system(&format!("connect to {to}"), &error)
    })?;
    let talk = Handshake { spec, stream, to, own: &own };
    let nonce = thread::random();
    let answer = talk.ask(Kind::Hello, nonce, [0; 16], Kind::Answer)?;
    talk.ask(Kind::Confirm, nonce, answer.nonce, Kind::Ready)?;
    socket::set_timeouts(&own)?;
    Ok(own)
}

/// Returns the error of a stream whose handshake fails. The peer has answered the first stream before the others connect, so that it is there.
fn unanswered(code: Code, cause: String, help: &str, stream: u16) -> ProtocolError {
    if stream == 0 {
        return ProtocolError::new(code, cause, help);
    }
    let cause = format!("{cause} on stream {stream}, but the peer answered on stream 0");
    ProtocolError::new(
        code,
        cause,
        "the path probably loses too many packets: lower its loss, or use fewer `streams`",
    )
}

/// Opens a socket that sends to a multicast group. Each receiver has already proved the token over a connection of its own.
pub(crate) fn to_group(spec: &Spec, group: SocketAddr) -> Result<Socket> {
    let ip = spec.asked.address.unwrap_or_else(|| any(group.ip(), 0).ip());
    let own = socket::open(spec, ip)?;
    own.bind(&SocketAddr::new(ip, 0).into()).doing("bind to `address`")?;
    own.connect(&group.into()).doing("connect to the group")?;
    socket::set_timeouts(&own)?;
    Ok(own)
}

struct Handshake<'a> {
    spec: &'a Spec,
    stream: u16,
    to: SocketAddr,
    own: &'a Socket,
}

impl Handshake<'_> {
    /// Sends a handshake message and waits for the matching reply.
    fn ask(&self, kind: Kind, nonce: [u8; 16], echo: [u8; 16], expected: Kind) -> Result<HandshakeMessage> {
        let (token, flow) = (&self.spec.token, self.spec.asked.flow.as_str());
        let head = HandshakeMessage::new(token, flow, kind, self.stream, nonce, echo).to_bytes();
        // GSO does not affect handshake messages: each is shorter than a segment, or goes out alone.
        let tries: &[Duration] = if self.spec.udp { &TRIES } else { &[ANSWERING] };
        let mut stranger = false;
        for patience in tries {
            let mut own = self.own;
            own.write_all(&head).map_err(|error| self.failed(&error))?;
            own.set_read_timeout(Some(*patience)).doing("set the receive time-out")?;
            // Replies that do not match are ignored, at most eight per try, so that a flooding peer cannot hold this thread.
            for _ in 0..8 {
                let mut bytes = [0; HEAD];
                let length = if self.spec.udp {
                    own.read(&mut bytes)
                } else {
                    own.read_exact(&mut bytes).map(|()| HEAD)
                };
                match length {
                    Ok(length) => {
                        let answer = HandshakeMessage::parse(&bytes[..length]).filter(|answer| {
                            answer.kind == expected
                                && answer.stream == self.stream
                                && answer.echo == nonce
                                && answer.is_proven(token, flow)
                        });
                        if let Some(answer) = answer {
                            return Ok(answer);
                        }
                        stranger = true;
                    }
                    Err(error) if socket::is_timeout(&error) => break,
                    Err(error) => return Err(self.failed(&error)),
                }
            }
        }
        let to = self.to;
        Err(if stranger {
            ProtocolError::new(
                Code::WrongPeer,
                format!("the program that answers at {to} is not an agent of this run"),
                "check whether another program or a proxy answers there; if not, set `address` of that host to the address of its agent",
            )
        } else {
            unanswered(
                Code::NoAnswer,
                format!("no agent answers at {to}"),
                "check whether a firewall between the two hosts drops packets to ports other than ssh's, and whether that address belongs to the peer: `address` of its host sets another one",
                self.stream,
            )
        })
    }

    fn failed(&self, error: &std::io::Error) -> ProtocolError {
        let to = self.to;
        match error.kind() {
            ErrorKind::ConnectionRefused => ProtocolError::new(
                Code::Refused,
                format!("{to} refuses datagrams"),
                "check whether the agent there still runs, and whether a firewall rejects its ports",
            ),
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                // The listening side also closes connections whose handshake takes too long.
                let why =
                    if self.stream == 0 { ": it does not expect connections from this host" } else { "" };
                unanswered(
                    Code::WrongPeer,
                    format!("{to} closed the connection{why}"),
                    "the peer sees packets of this host from an unknown address: set `address` of this host to the one that the peer sees",
                    self.stream,
                )
            }
            _ => ProtocolError::system(&format!("talk to {to}"), error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use serde_json::json;

    use super::super::spec::tests::spec;
    use super::*;

    #[test]
    fn silence_after_the_first_stream_is_told_as_loss() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is available");
        let to = listener.local_addr().expect("the socket is bound");
        let spec = spec(json!({ "to": [to] })).expect("the specification is valid");
        for (stream, lost) in [(0, false), (7, true)] {
            // The kernel accepts the connection, and no agent answers.
            let problem = connect(&spec, stream, to).expect_err("nobody answers");
            assert_eq!(problem.code, Code::NoAnswer);
            assert_eq!(problem.help.contains("loses too many packets"), lost, "{problem:?}");
            assert_eq!(problem.cause.contains("on stream 7"), lost, "{problem:?}");
        }
    }
}
