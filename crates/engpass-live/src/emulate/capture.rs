//! Captures of real packets at link points of the network: `docs/capture.md`.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;

use engpass_capture::{File, Files, Form, Limit, Packets, Point, passing};
use engpass_simulate::injection::{DeliveryReport, InjectedNetwork};
use engpass_simulate::{CaptureRecord, CaptureSink, Content, Packet};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::EmulateError;
use super::routers::Routers;
use crate::CaptureFile;

/// Settings of the captures.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CaptureConfig {
    /// Link points and the files to write, one pair per capture.
    pub(super) files: Vec<(String, PathBuf)>,
    /// Form of the records (packets, frames or cells); default: that of the link.
    pub(super) form: Option<String>,
    /// Limit of each file's length.
    pub(super) limit: Option<String>,
}

/// Interval at which captured packets are taken from the network and written, in picoseconds of virtual time.
const OFTEN: u64 = 10_000_000_000;

/// Time for which a lost packet is kept, in picoseconds, because its remaining cells or fragments may pass further capture points.
const LINGER: u64 = 1_000_000_000_000;

/// Running captures.
pub(super) struct Capturing {
    files: Files<CaptureFile>,
    paths: Vec<PathBuf>,
    kept: Rc<RefCell<Kept>>,
    next: u64,
    /// Whether every file has reached its limit or has failed.
    over: bool,
}

/// Packets in the network, and finished packets that captures may still need.
#[derive(Default)]
struct Kept {
    packets: BTreeMap<u64, Bytes>,
    /// Finished packets, each as the instant (picoseconds) from which it is not needed any more, and its token.
    ended: BTreeSet<(u64, u64)>,
}

/// Bytes of a packet, the number of its delivery reports still to come, and the instant (picoseconds) of the latest end that was reported.
struct Bytes {
    bytes: Vec<u8>,
    fates: u32,
    until: u64,
}

/// Supplies the bytes of packets to captures, and those of the routers' ICMP messages about them.
struct StoredPackets(Rc<RefCell<Kept>>, Routers);

impl Packets for StoredPackets {
    fn write(&mut self, packet: &Packet, out: &mut Vec<u8>) {
        let Content::Outside { token, said } = packet.content else {
            unreachable!("all packets of an emulated network are injected");
        };
        let kept = self.0.borrow();
        let bytes = kept.packets.get(&token).and_then(|kept| match said {
            Some(said) => self.1.message(&said, &kept.bytes, token).map(Cow::Owned),
            None => Some(Cow::Borrowed(&kept.bytes[..])),
        });
        match bytes {
            Some(bytes) => passing(&bytes, &packet.head, out),
            // Zeros stand in if the packet was forgotten or the router has no address.
            None => out.resize(out.len() + packet.head.bytes as usize, 0),
        }
    }
}

/// Lets the run go on when one of several files fails. The file reports its error when it is closed.
struct IndependentFiles<'a>(&'a mut Files<CaptureFile>);

impl CaptureSink for IndependentFiles<'_> {
    fn passed(&mut self, passing: &CaptureRecord) -> ControlFlow<()> {
        let _ = self.0.passed(passing);
        ControlFlow::Continue(())
    }

    fn wants_more(&self) -> bool {
        self.0.wants_more()
    }
}

impl Capturing {
    /// Starts the captures, before any packet is injected. Returns `None` if none is configured.
    ///
    /// # Errors
    /// Fails on an unknown point, form or limit, and when a file cannot be written.
    pub(super) fn begin(
        config: &CaptureConfig,
        network: &mut InjectedNetwork,
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
            let real = Box::new(StoredPackets(Rc::clone(&kept), routers.clone()));
            let file = CaptureFile::create(path)
                .and_then(|out| File::begin(network.topology(), point, limit, real, about, out))
                .map_err(|error| EmulateError::file("writing", path, &error))?;
            files.0.push(file);
        }
        // Writing the headers now lets readers open the files, and shows at once if the disk is full.
        files.flush();
        network.capture(&files.ports());
        let paths = config.files.iter().map(|(_, path)| path.clone()).collect();
        Ok(Some(Self { files, paths, kept, next: OFTEN, over: false }))
    }

    /// Returns whether the captures still need packets.
    pub(super) fn goes_on(&self) -> bool {
        !self.over
    }

    /// Keeps the bytes of a packet that is about to be injected. `fates` is the number of delivery reports to expect.
    pub(super) fn keep(&mut self, token: u64, bytes: Vec<u8>, fates: u32) {
        self.kept.borrow_mut().packets.insert(token, Bytes { bytes, fates, until: 0 });
    }

    /// Takes note of a delivery report: after the last one for a packet, its bytes are no longer needed.
    pub(super) fn ended(&mut self, output: &DeliveryReport) {
        if self.over {
            return;
        }
        let (until, ends) = match output {
            DeliveryReport::Delivered { at, .. } | DeliveryReport::Message { at, .. } => (*at, 1),
            // Cells or fragments of a lost packet, or an ICMP message about it, may still be in the network.
            DeliveryReport::Lost { at, message, .. } => (at + LINGER, u32::from(!message)),
            DeliveryReport::MessageLost { at, .. } => (at + LINGER, 1),
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

    /// Writes the packets that have passed the capture points up to `at`, at most once per `OFTEN`.
    pub(super) fn reached(&mut self, at: u64, network: &mut InjectedNetwork) {
        if at < self.next || self.over {
            return;
        }
        self.next = at + OFTEN;
        let told = network
            .deliver_records(&mut IndependentFiles(&mut self.files))
            .expect("the capture never interrupts the network");
        self.forget(told.unwrap_or(0));
        self.over = !self.files.wants_more();
        // The network learns at its next call that a file has failed.
        self.files.flush();
        if self.over {
            *self.kept.borrow_mut() = Kept::default();
        }
    }

    /// Forgets the finished packets whose records have all been written.
    fn forget(&mut self, until: u64) {
        let mut kept = self.kept.borrow_mut();
        while let Some(&first) = kept.ended.first().filter(|(at, _)| *at < until) {
            kept.ended.remove(&first);
            kept.packets.remove(&first.1);
        }
    }

    /// Ends the captures. Returns the counts of each file, or its error.
    pub(super) fn end(mut self, network: &mut InjectedNetwork) -> Value {
        if !self.over {
            network
                .end_capture(&mut IndependentFiles(&mut self.files))
                .expect("the capture never interrupts the network");
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
