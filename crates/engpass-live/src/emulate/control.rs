//! Requests to a running driver: lines of JSON over a Unix socket (`docs/driver.md`).

use std::fs::{File, Permissions, remove_file};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use serde::Deserialize;
use serde_json::{Value, json};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::lines::{Line, Lines};
use crate::protocol_error::{Code, ProtocolError, Result};
use crate::sys::send;
use crate::sys::signal::{self, Bell};

/// Maximum number of connections served at a time.
const MOST: usize = 32;
/// Time between two checks of the stop flag in the accepting thread, in ms.
const LOOK: i32 = 100;

/// Action that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RequestKind {
    /// Return the state of the run.
    Status,
    /// Begin the events of the testbed.
    Events,
    /// Begin a measurement window now.
    Window,
    /// End the measurement window and return its counts.
    EndWindow,
    /// End the run.
    Stop,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(rename = "do")]
    what: RequestKind,
}

/// A request, with the channel for its answer.
pub(super) struct PendingRequest {
    pub(super) what: RequestKind,
    reply: SyncSender<Result<Value>>,
}

impl PendingRequest {
    pub(super) fn answer(self, answer: Result<Value>) {
        // The requester may have disconnected.
        let _ = self.reply.send(answer);
    }
}

/// The control socket. Dropping it closes the socket and removes its file.
pub(super) struct ControlSocket {
    path: PathBuf,
    asks: Receiver<PendingRequest>,
    open: Arc<SharedSocketState>,
    accepting: Option<JoinHandle<()>>,
}

/// State shared with the threads that accept and serve connections.
struct SharedSocketState {
    over: AtomicBool,
    streams: Mutex<Vec<(u64, UnixStream)>>,
    bell: Arc<Bell>,
}

impl SharedSocketState {
    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<(u64, UnixStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlSocket {
    /// Listens at a path that only the owner of this process may open.
    pub(super) fn open(path: &Path, bell: Arc<Bell>) -> io::Result<Self> {
        let listener = listen(path)?;
        listener.set_nonblocking(true)?;
        let (sender, asks) = channel();
        let open = Arc::new(SharedSocketState {
            over: AtomicBool::new(false),
            streams: Mutex::new(Vec::new()),
            bell,
        });
        let accepting = {
            let open = Arc::clone(&open);
            thread::spawn(move || accept(&listener, &open, &sender))
        };
        Ok(Self { path: path.to_owned(), asks, open, accepting: Some(accepting) })
    }

    /// Returns the next request, if there is one.
    #[inline]
    pub(super) fn next(&self) -> Option<PendingRequest> {
        self.asks.try_recv().ok()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // The file is removed first, so that no new client connects.
        let _ = remove_file(&self.path);
        self.open.over.store(true, Ordering::Relaxed);
        if let Some(accepting) = self.accepting.take() {
            accepting.join().expect("the accepting thread does not panic");
        }
        for (_, stream) in self.open.streams().drain(..) {
            // Answers that were already sent can still be read.
            let _ = stream.shutdown(std::net::Shutdown::Read);
        }
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    // After a crash, a socket file without a listener is left, which may be removed. Any other file belongs to someone else.
    if let Ok(about) = path.symlink_metadata() {
        let left = about.file_type().is_socket()
            && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if left {
            remove_file(path)?;
        }
    }
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // The file inherits the socket's mode (unix(7)), so no other user can connect at any time.
    let file = File::from(OwnedFd::from(socket));
    file.set_permissions(Permissions::from_mode(0o600))?;
    let socket = Socket::from(OwnedFd::from(file));
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(16)?;
    Ok(UnixListener::from(OwnedFd::from(socket)))
}

fn accept(listener: &UnixListener, open: &Arc<SharedSocketState>, sender: &Sender<PendingRequest>) {
    signal::block_all();
    let mut number = 0;
    while !open.over.load(Ordering::Relaxed) {
        if !send::poll([listener.as_raw_fd()], LOOK)[0] {
            continue;
        }
        let Ok((stream, _)) = listener.accept() else { continue };
        let Ok(kept) = stream.try_clone() else { continue };
        let mut streams = open.streams();
        if streams.len() >= MOST || stream.set_nonblocking(false).is_err() {
            continue;
        }
        number += 1;
        streams.push((number, kept));
        let (open, sender) = (Arc::clone(open), sender.clone());
        thread::spawn(move || {
            signal::block_all();
            serve(&stream, &open.bell, &sender);
            open.streams().retain(|(other, _)| *other != number);
        });
    }
}

/// Answers the lines of one connection until it ends.
fn serve(mut stream: &UnixStream, bell: &Bell, sender: &Sender<PendingRequest>) {
    let mut lines = Lines::new(stream);
    while let Some(line) = lines.next() {
        let answer = match line {
            Line::Text(text) => ask(&text, bell, sender),
            Line::TooLong => {
                Err(ProtocolError::new(Code::BadLine, "the line is longer than 1 MiB", "send shorter lines"))
            }
        };
        let answer = match answer {
            Ok(ok) => json!({ "ok": ok }),
            Err(problem) => json!({ "error": problem }),
        };
        if stream.write_all(format!("{answer}\n").as_bytes()).is_err() {
            return;
        }
    }
}

fn ask(line: &[u8], bell: &Bell, sender: &Sender<PendingRequest>) -> Result<Value> {
    let request: Request = serde_json::from_slice(line).map_err(|error| {
        let help = "send `{\"do\": \"status\"}`, `events`, `window`, `end-window` or `stop`";
        ProtocolError::new(Code::BadRequest, format!("the request is wrong: {error}"), help)
    })?;
    let (reply, answer) = sync_channel(1);
    let over = || ProtocolError::new(Code::Refused, "the driver has ended", "bring the testbed up again");
    sender.send(PendingRequest { what: request.what, reply }).map_err(|_| over())?;
    bell.ring();
    answer.recv().map_err(|_| over())?
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("engpass-{name}-{}", std::process::id()))
    }

    #[test]
    fn control_socket_answers_requests_and_is_removed() {
        let path = path("desk");
        let bell = Arc::new(Bell::new().expect("the eventfd opens"));
        let desk = ControlSocket::open(&path, Arc::clone(&bell)).expect("the path is unused");
        assert_eq!(path.metadata().expect("the file exists").permissions().mode() & 0o777, 0o600);
        assert!(ControlSocket::open(&path, Arc::clone(&bell)).is_err(), "the path has a listening socket");
        let mut stream = UnixStream::connect(&path).expect("the socket listens");
        stream.write_all(b"{\"do\":\"status\"}\n{\"do\":\"dance\"}\n").expect("the request is written");
        let ask = loop {
            if let Some(ask) = desk.next() {
                break ask;
            }
            thread::yield_now();
        };
        assert_eq!(ask.what, RequestKind::Status);
        ask.answer(Ok(json!({ "at": 3 })));
        let mut lines = BufReader::new(&stream).lines().map(|line| line.expect("the answer is UTF-8"));
        assert_eq!(lines.next().expect("the socket answers"), "{\"ok\":{\"at\":3}}");
        let refused: Value =
            serde_json::from_str(&lines.next().expect("the socket answers")).expect("the answer is JSON");
        assert_eq!(refused["error"]["code"], "bad-request");
        drop(desk);
        assert!(!path.exists());
        assert!(lines.next().is_none(), "the connection ends");
    }

    #[test]
    fn control_socket_replaces_a_stale_socket_but_no_other_file() {
        let path = path("left");
        drop(UnixListener::bind(&path).expect("the path is unused"));
        let bell = Arc::new(Bell::new().expect("the eventfd opens"));
        drop(ControlSocket::open(&path, Arc::clone(&bell)).expect("a stale socket is replaced"));
        std::fs::write(&path, b"mine").expect("the file is written");
        assert!(ControlSocket::open(&path, bell).is_err());
        assert_eq!(std::fs::read(&path).expect("the file still exists"), b"mine");
        remove_file(&path).expect("the file exists");
    }
}
