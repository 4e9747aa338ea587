//! Captures of real packets at link points of the network: `docs/capture.md`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;

use engpass_capture::{File, Files, Form, Limit, Packets, Point, passing};
use engpass_network::simulate::outside::{Output, Outside};
use engpass_network::simulate::{Capture, Content, Packet, Passing};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::EmulateError;
use super::routers::Routers;
use crate::CaptureFile;

/// What is to be captured.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CaptureConfig {
    /// Link points and files.
    pub(super) files: Vec<(String, PathBuf)>,
    /// The form, where it is not the link's own.
    pub(super) form: Option<String>,
    /// How much of each.
    pub(super) limit: Option<String>,
}

/// What passes is handed on and written this often, in picoseconds of the network's time.
const OFTEN: u64 = 10_000_000_000;

/// A lost packet is kept for so long, in picoseconds: what is left of it may pass further points.
const LINGER: u64 = 1_000_000_000_000;

/// Captures that go on.
pub(super) struct Capturing {
    files: Files<CaptureFile>,
    paths: Vec<PathBuf>,
    kept: Rc<RefCell<Kept>>,
    next: u64,
    /// Every file has what it wanted, or could not be written.
    over: bool,
}

/// Packets that are inside, or that captures may still ask for.
#[derive(Default)]
struct Kept {
    packets: BTreeMap<u64, Bytes>,
    /// When nobody asks for packets any more, and which.
    ended: BTreeSet<(u64, u64)>,
}

/// A packet, how many fates of it are still to be told, and until when it is asked for by those that were.
struct Bytes {
    bytes: Vec<u8>,
    fates: u32,
    until: u64,
}

/// Bytes of packets, and of messages of routers about them.
struct Real(Rc<RefCell<Kept>>, Routers);

impl Packets for Real {
    fn write(&mut self, packet: &Packet, out: &mut Vec<u8>) {
        let Content::Outside { token, said } = packet.content else {
            unreachable!("all packets of such a network come from outside");
        };
        let kept = self.0.borrow();
        let bytes = kept.packets.get(&token).and_then(|kept| match said {
            Some(said) => self.1.message(&said, &kept.bytes, token).map(Cow::Owned),
            None => Some(Cow::Borrowed(&kept.bytes[..])),
        });
        match bytes {
            Some(bytes) => passing(&bytes, &packet.head, out),
            // The packet was lost long ago, or the router has no address.
            None => out.resize(out.len() + packet.head.bytes as usize, 0),
        }
    }
}

/// Files of a network that goes on, whatever becomes of one of them: it says why it broke off when it is closed.
struct Apart<'a>(&'a mut Files<CaptureFile>);

impl Capture for Apart<'_> {
    fn passed(&mut self, passing: &Passing) -> ControlFlow<()> {
        let _ = self.0.passed(passing);
        ControlFlow::Continue(())
    }

    fn wants_more(&self) -> bool {
        self.0.wants_more()
    }
}

impl Capturing {
    /// Begin, before anything is put into the network; nothing where nobody asks for it.
    ///
    /// # Errors
    /// A point, a form or a limit that there is not; a file that cannot be written.
    pub(super) fn begin(
        config: &CaptureConfig,
        network: &mut Outside,
        about: &str,
        routers: &Routers,
    ) -> Result<Option<Self>, EmulateError> {
        if config.files.is_empty() {
            return Ok(None);
        }
        let wrong = |what: String| {
            let (cause, help) = what.split_once("\nhelp: ").unwrap_or((&what, "see `docs/capture.md`"));
            EmulateError::config(cause, help)
        };
        let form = config.form.as_deref().map(Form::parse).transpose().map_err(wrong)?;
        let limit = config.limit.as_deref().map(Limit::parse).transpose().map_err(wrong)?.unwrap_or_default();
        let kept = Rc::new(RefCell::new(Kept::default()));
        let mut files = Files(Vec::new());
        for (point, path) in &config.files {
            let point = Point::find(point, form, network.topology()).map_err(wrong)?;
            let real = Box::new(Real(Rc::clone(&kept), routers.clone()));
            let file = CaptureFile::create(path)
                .and_then(|out| File::begin(network.topology(), point, limit, real, about, out))
                .map_err(|error| EmulateError::file("writing", path, &error))?;
            files.0.push(file);
        }
        // Who looks now sees what is captured, and files that nothing fits into are known.
        files.flush();
        network.capture(&files.ports());
        let paths = config.files.iter().map(|(_, path)| path.clone()).collect();
        Ok(Some(Self { files, paths, kept, next: OFTEN, over: false }))
    }

    /// Whether bytes are wanted.
    pub(super) fn goes_on(&self) -> bool {
        !self.over
    }

    /// A packet is about to enter the network.
    pub(super) fn keep(&mut self, token: u64, bytes: Vec<u8>, fates: u32) {
        self.kept.borrow_mut().packets.insert(token, Bytes { bytes, fates, until: 0 });
    }

    /// A packet has come to its end.
    pub(super) fn ended(&mut self, output: &Output) {
        if self.over {
            return;
        }
        let (until, ends) = match output {
            Output::Delivered { at, .. } | Output::Message { at, .. } => (*at, 1),
            // Cells and fragments of it may still be on their way, or a message about it.
            Output::Lost { at, message, .. } => (at + LINGER, u32::from(!message)),
            Output::MessageLost { at, .. } => (at + LINGER, 1),
        };
        let mut kept = self.kept.borrow_mut();
        let Some(this) = kept.packets.get_mut(&output.token()) else { return };
        this.fates -= ends;
        this.until = this.until.max(until);
        if this.fates == 0 {
            let until = this.until;
            kept.ended.insert((until, output.token()));
        }
    }

    /// The network has come to `at`: write what has passed, now and then.
    pub(super) fn reached(&mut self, at: u64, network: &mut Outside) {
        if at < self.next || self.over {
            return;
        }
        self.next = at + OFTEN;
        let told =
            network.hand_on(&mut Apart(&mut self.files)).expect("nothing of it interrupts the network");
        self.forget(told.unwrap_or(0));
        self.over = !self.files.wants_more();
        // One that breaks off here is known to the network when it hands on again.
        self.files.flush();
        if self.over {
            *self.kept.borrow_mut() = Kept::default();
        }
    }

    /// Packets that have ended by then, and of which all was handed on, are asked for no more.
    fn forget(&mut self, until: u64) {
        let mut kept = self.kept.borrow_mut();
        while let Some(&first) = kept.ended.first().filter(|(at, _)| *at < until) {
            kept.ended.remove(&first);
            kept.packets.remove(&first.1);
        }
    }

    /// Nothing more passes: what each file has, or why it was not written.
    pub(super) fn end(mut self, network: &mut Outside) -> Value {
        if !self.over {
            network.end_capture(&mut Apart(&mut self.files)).expect("nothing of it interrupts the network");
        }
        let told = self.files.0.into_iter().zip(&self.paths).map(|(file, path)| match file.end() {
            Ok(done) => json!({
                "path": path,
                "packets": done.packets,
                "bytes": done.bytes,
                "bad_pdus": done.bad_pdus,
                "limited": done.limited,
            }),
            Err(error) => json!({ "path": path, "error": error.to_string() }),
        });
        told.collect()
    }
}
