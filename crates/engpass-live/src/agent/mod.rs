//! The agent: requests arrive as lines, traffic runs in threads, answers and events leave as lines.

mod hello;
mod request;
mod session;

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

pub use hello::PROTOCOL;
use request::Request;
pub use request::parse;
use session::Session;

use crate::limits::Limits;
use crate::lines::Lines;

/// Reason why the agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The input ended: the controller has disconnected.
    Input,
    /// Writing the output failed.
    Output,
    /// No line arrived for too long.
    Silence,
}

impl Ended {
    /// Returns the exit code of the process (`docs/agent.md`).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Input => 0,
            Self::Output => 3,
            Self::Silence => 4,
        }
    }
}

/// The output, to which any thread can write lines.
#[derive(Clone)]
pub(crate) struct Output {
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    broken: Arc<AtomicBool>,
}

impl Output {
    pub(crate) fn line(&self, value: &Value) {
        let mut text = value.to_string();
        text.push('\n');
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.write_all(text.as_bytes()).and_then(|()| writer.flush()).is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }

    fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

/// Time between two checks of the output while no request arrives.
const LOOK: Duration = Duration::from_millis(200);

/// Serves one controller until its channel ends. `input` and `output` carry the lines; `limits` are those of the host's owner. The agent also ends when no line
/// arrives for `silence`.
pub fn run(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    limits: Limits,
    silence: Duration,
) -> Ended {
    let output = Output { writer: Arc::new(Mutex::new(Box::new(output))), broken: Arc::default() };
    let gone = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = sync_channel(16);
    let ended = Arc::clone(&gone);
    // A separate thread reads, so that the agent notices the end of the input at any time.
    let pongs = output.clone();
    thread::spawn(move || {
        let mut lines = Lines::new(input);
        while let Some(line) = lines.next() {
            let (id, request) = request::of(line);
            // A ping is answered at once, even while another request is in progress. Therefore a missing answer means that the agent has stopped.
            let asked = if let Ok(Request::Ping) = request {
                pongs.line(&session::pong(&id));
                None
            } else {
                Some((id, request))
            };
            if sender.send(asked).is_err() {
                break;
            }
        }
        ended.store(true, Ordering::Relaxed);
    });
    let mut session = Session::new(output.clone(), limits, gone, silence);
    session.greet();
    let mut quiet = Duration::ZERO;
    let ended = loop {
        if output.is_broken() {
            break Ended::Output;
        }
        match receiver.recv_timeout(LOOK) {
            Ok(asked) => {
                if let Some((id, request)) = asked {
                    session.answer(&id, request);
                }
                quiet = Duration::ZERO;
            }
            Err(RecvTimeoutError::Timeout) => {
                quiet += LOOK;
                if quiet >= silence {
                    break Ended::Silence;
                }
            }
            Err(RecvTimeoutError::Disconnected) => break Ended::Input,
        }
    };
    session.end();
    ended
}
