//! The listening side of the handshake: an ephemeral data port that opens a stream only to a peer that has proved the token.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use socket2::Socket;

use super::socket;
use super::spec::Spec;
use super::stream_result::RejectedInput;
use crate::handshake::{HEAD, HandshakeServer, Reply};
use crate::protocol_error::{ErrorContext, Result};
use crate::sys::{clock, send, thread};
use crate::time::{MILLISECOND, SECOND};

/// Time after which a connection that has not completed the handshake is dropped, in ns.
const SILENCE: u64 = 2 * SECOND;
/// Largest number of connections without a completed handshake, in addition to one for each stream of the flow, because the flow's peers all connect at once.
const PENDING: usize = 64;
/// Time between two checks of the close flag, in ms.
const LOOK: i32 = 50;

/// Called for each stream whose peer has proved the token, with the stream's index and its socket.
type OnAccepted = Box<dyn Fn(u16, Socket) + Send>;

/// An open data port with the thread that serves it.
#[derive(Debug)]
pub(crate) struct DataListener {
    /// The ephemeral port number.
    pub(crate) port: u16,
    closed: Arc<AtomicBool>,
    listener: Arc<Socket>,
    keeper: JoinHandle<RejectedInput>,
}

impl DataListener {
    /// Opens a data port for a listening flow and starts its thread.
    pub(crate) fn open(
        spec: &Arc<Spec>,
        welcome: impl FnOnce(&HandshakeServer) -> OnAccepted,
    ) -> Result<Self> {
        let ip = spec.asked.address.unwrap_or_else(|| socket::any(spec.asked.peers[0], 0).ip());
        let listener = socket::open(spec, ip)?;
        listener.bind(&SocketAddr::new(ip, 0).into()).doing("bind a data port")?;
        if !spec.udp {
            listener.listen(128).doing("listen")?;
        }
        listener.set_nonblocking(true).doing("listen without blocking")?;
        let address = listener.local_addr().doing("ask for the data port")?;
        let address = address.as_socket().expect("an IP socket has an IP address");
        let greeting =
            HandshakeServer::new(spec.token, &spec.asked.flow, spec.asked.streams, thread::random());
        let closed = Arc::new(AtomicBool::new(false));
        let listener = Arc::new(listener);
        let keeper = ListenerThread {
            spec: Arc::clone(spec),
            listener: Arc::clone(&listener),
            port: address.port(),
            welcome: welcome(&greeting),
            greeting,
            taken: vec![None; spec.asked.streams.into()],
            unfit: RejectedInput::default(),
        };
        let shut = Arc::clone(&closed);
        let run = move || if keeper.spec.udp { keeper.datagrams(&shut) } else { keeper.connections(&shut) };
        let keeper = std::thread::Builder::new().name("engpass-door".into()).spawn(run);
        let keeper = keeper.doing("start a thread")?;
        Ok(Self { port: address.port(), closed, listener, keeper })
    }

    /// Closes the port. Returns the counts of what was dropped there.
    pub(crate) fn close(self) -> RejectedInput {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the thread from its poll at once.
        let _ = self.listener.shutdown(std::net::Shutdown::Read);
        self.keeper.join().expect("the listener thread does not panic")
    }
}

/// State of the thread that serves the data port.
struct ListenerThread {
    spec: Arc<Spec>,
    listener: Arc<Socket>,
    port: u16,
    greeting: HandshakeServer,
    welcome: OnAccepted,
    taken: Vec<Option<SocketAddr>>,
    unfit: RejectedInput,
}

/// A connection whose peer has not proved the token yet.
struct Pending {
    socket: Socket,
    peer: SocketAddr,
    head: [u8; HEAD],
    filled: usize,
    until: u64,
}

/// Reaction to the data of a pending connection.
enum Next {
    Wait,
    Drop,
    Take(u16),
}

/// Returns the peer's address as bytes, which go into the nonce.
fn name(peer: SocketAddr) -> Vec<u8> {
    peer.to_string().into_bytes()
}

impl ListenerThread {
    fn is_peer(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.spec.asked.peers.iter().any(|peer| peer.to_canonical() == address)
    }

    fn count(&mut self, reply: Reply) {
        match reply {
            Reply::Malformed => self.unfit.malformed += 1,
            Reply::NoToken => self.unfit.no_token += 1,
            Reply::Replayed => self.unfit.replayed += 1,
            Reply::Answer(_) | Reply::Ready(..) => {}
        }
    }

    fn connections(mut self, closed: &AtomicBool) -> RejectedInput {
        let mut pending: Vec<Pending> = Vec::new();
        while !closed.load(Ordering::Relaxed) {
            let mut sockets: Vec<RawFd> = vec![self.listener.as_raw_fd()];
            sockets.extend(pending.iter().map(|one| one.socket.as_raw_fd()));
            let readable = send::poll_all(&sockets, LOOK);
            let now = clock::now();
            let mut ready = readable[1..].iter();
            let mut waiting = Vec::new();
            for mut one in pending.drain(..) {
                let next = if *ready.next().expect("every pending connection was polled") {
                    self.hear(&mut one)
                } else {
                    Next::Wait
                };
                match next {
                    Next::Take(stream) => self.admit(stream, one),
                    Next::Wait if now < one.until => waiting.push(one),
                    Next::Wait => self.unfit.malformed += 1,
                    Next::Drop => {}
                }
            }
            pending = waiting;
            if readable[0] {
                self.accept(&mut pending, now);
            }
        }
        self.unfit
    }

    fn accept(&mut self, pending: &mut Vec<Pending>, now: u64) {
        while let Ok((socket, peer)) = self.listener.accept() {
            let Some(peer) = peer.as_socket().filter(|peer| self.is_peer(peer.ip())) else {
                self.unfit.wrong_peer += 1;
                continue;
            };
            if socket.set_nonblocking(true).is_err() {
                continue;
            }
            if pending.len() == PENDING + self.taken.len() {
                // If the oldest is dropped, a flood of strangers cannot lock the peer out for long.
                pending.remove(0);
                self.unfit.malformed += 1;
            }
            pending.push(Pending { socket, peer, head: [0; HEAD], filled: 0, until: now + SILENCE });
        }
    }

    fn hear(&mut self, one: &mut Pending) -> Next {
        match send::receive(&one.socket, &mut one.head[one.filled..], 0) {
            Ok(0) => {
                self.unfit.malformed += 1;
                return Next::Drop;
            }
            Ok(count) => one.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Next::Wait,
            Err(_) => {
                self.unfit.malformed += 1;
                return Next::Drop;
            }
        }
        if one.filled < HEAD {
            return Next::Wait;
        }
        one.filled = 0;
        let reply = self.greeting.take(&name(one.peer), &one.head);
        match reply {
            Reply::Answer(head) => {
                // 64 bytes fit into an empty send buffer. If they do not, the peer's handshake times out.
                let _ = send::send(&one.socket, &head, 0);
                Next::Wait
            }
            Reply::Ready(stream, head) => {
                if self.taken[usize::from(stream)].is_some() {
                    self.unfit.replayed += 1;
                    return Next::Drop;
                }
                let _ = send::send(&one.socket, &head, 0);
                Next::Take(stream)
            }
            other => {
                self.count(other);
                Next::Drop
            }
        }
    }

    fn admit(&mut self, stream: u16, one: Pending) {
        if socket::set_timeouts(&one.socket).is_ok() {
            self.taken[usize::from(stream)] = Some(one.peer);
            (self.welcome)(stream, one.socket);
        }
    }

    fn datagrams(mut self, closed: &AtomicBool) -> RejectedInput {
        while !closed.load(Ordering::Relaxed) {
            if send::poll([self.listener.as_raw_fd()], LOOK)[0] {
                self.datagrams_there();
            }
        }
        // Datagrams that arrived after the last poll still count.
        self.datagrams_there();
        self.unfit
    }

    fn datagrams_there(&mut self) {
        let until = clock::now() + 100 * MILLISECOND;
        let mut buffer = send::buffer::<{ HEAD + 1 }>();
        while let Ok((length, peer)) = self.listener.recv_from(&mut buffer) {
            if clock::now() > until {
                break;
            }
            let Some(peer) = peer.as_socket().filter(|peer| self.is_peer(peer.ip())) else {
                self.unfit.wrong_peer += 1;
                continue;
            };
            let bytes: Vec<u8> = send::filled(&buffer, length);
            match self.greeting.take(&name(peer), &bytes) {
                Reply::Answer(head) => {
                    let _ = self.listener.send_to(&head, &peer.into());
                }
                Reply::Ready(stream, head) => self.datagrams_ready(stream, peer, &head),
                other => self.count(other),
            }
        }
    }

    fn datagrams_ready(&mut self, stream: u16, peer: SocketAddr, head: &[u8]) {
        let taken = self.taken[usize::from(stream)];
        if taken.is_some_and(|before| before != peer) {
            self.unfit.replayed += 1;
            return;
        }
        if taken.is_none() {
            // A multicast receiver's data arrives at another socket, and this port continues to answer handshakes.
            let own = if self.spec.asked.group.is_some() {
                self.listener.try_clone().doing("share the door")
            } else {
                self.connected(peer)
            };
            let Ok(own) = own else { return };
            self.taken[usize::from(stream)] = Some(peer);
            (self.welcome)(stream, own);
        }
        let _ = self.listener.send_to(head, &peer.into());
    }

    /// Opens a connected socket for this peer, at the same port. The kernel prefers it to the listening socket, which gets no more datagrams of the peer.
    fn connected(&self, peer: SocketAddr) -> Result<Socket> {
        let local = self.listener.local_addr().doing("ask for the data port")?;
        let ip = local.as_socket().map_or_else(|| socket::any(peer.ip(), 0).ip(), |local| local.ip());
        let own = socket::open(&self.spec, ip)?;
        own.bind(&SocketAddr::new(ip, self.port).into()).doing("bind the stream's socket")?;
        own.connect(&peer.into()).doing("connect the stream's socket")?;
        socket::set_timeouts(&own)?;
        Ok(own)
    }
}
