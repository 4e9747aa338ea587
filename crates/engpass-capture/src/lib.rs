//! Captures: writes the packets or cells that pass a link point to a pcapng file.
//!
//! [`simulate::captured`](engpass_simulate::captured) reports what passes. This crate makes bytes of it ([`Packets`]) in the form that suits the
//! link, and writes them as blocks to a file that the caller has opened. `docs/capture.md` describes such files for their readers.

mod link;
mod packet_bytes;
mod pcapng;
mod point;

use std::io::{self, Write};
use std::ops::ControlFlow;

use engpass_testbed::{Testbed, Topology};

use link::{LinkBytes, Written};
pub use packet_bytes::{Packets, SyntheticPackets, passing};
use pcapng::{Interface, Writer};
pub use point::{Form, Limit, Point};

use engpass_simulate::{CaptureRecord, CaptureSink};

/// Result of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Packets, PDUs or cells in the file.
    pub packets: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// PDUs that are not in the file because they lack cells at this point.
    pub bad_pdus: u64,
    /// The capture reached its limit before the run ended.
    pub limited: bool,
}

/// A capture file that is written during a run.
pub struct File<W> {
    point: Point,
    link: LinkBytes,
    limit: Limit,
    writer: Writer<W>,
    /// Numbers of the interfaces written so far, by output port and link type.
    interfaces: Vec<(usize, pcapng::LinkType, u32)>,
    names: Vec<(usize, String, String, u64)>,
    packet: Vec<u8>,
    packets: u64,
    limited: bool,
    error: Option<io::Error>,
    /// Instant of the last record, in picoseconds.
    last: u64,
}

impl<W: Write> File<W> {
    /// Begins a capture at `point`. The bytes of packets come from `packets`; `about` becomes the comment of the file.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn begin(
        topology: &Topology,
        point: Point,
        limit: Limit,
        packets: Box<dyn Packets>,
        about: &str,
        out: W,
    ) -> io::Result<Self> {
        let link = &topology.links[point.link];
        let names = point.ports.iter().map(|port| {
            let [from, to] = [port % 2, 1 - port % 2].map(|end| &topology.nodes[link.ends[end]]);
            (*port, format!("{}.{from}", link.name), format!("{from} -> {to}"), link.lines[port % 2].rate)
        });
        let mut file = Self {
            names: names.collect(),
            link: LinkBytes::new(topology, point.form, packets),
            point,
            limit,
            writer: Writer::begin(out, about)?,
            interfaces: Vec::new(),
            packet: Vec::new(),
            packets: 0,
            limited: false,
            error: None,
            last: 0,
        };
        // The file describes them even if nothing passes.
        for port in file.point.ports.clone() {
            file.interface(port, file.link.link_type())?;
        }
        Ok(file)
    }

    /// Returns the output ports that it captures.
    pub fn ports(&self) -> &[usize] {
        &self.point.ports
    }

    /// Completes the file and returns its counts.
    ///
    /// # Errors
    /// If writing fails, or has failed before.
    pub fn end(mut self) -> io::Result<Captured> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Err(error) = self.writer.flush() {
            self.end_with_error(&error);
            return Err(self.error.expect("a write error has ended the capture"));
        }
        let Self { packets, limited, .. } = self;
        Ok(Captured { packets, limited, bytes: self.writer.bytes, bad_pdus: self.link.bad_pdus })
    }

    fn interface(&mut self, port: usize, link_type: pcapng::LinkType) -> io::Result<u32> {
        let known = self.interfaces.iter().find(|(other, kind, _)| (*other, *kind) == (port, link_type));
        if let Some((.., number)) = known {
            return Ok(*number);
        }
        let (_, name, description, bit_per_s) =
            self.names.iter().find(|(other, ..)| *other == port).expect("a captured transmitter has a name");
        let interface = Interface { link_type, name, description, bit_per_s: *bit_per_s };
        let number = self.writer.interface(&interface)?;
        self.interfaces.push((port, link_type, number));
        Ok(number)
    }

    /// Ends the file early, with its present content.
    fn end_with_error(&mut self, error: &io::Error) {
        let (s, ms) = (self.last / 1_000_000_000_000, self.last / 1_000_000_000 % 1000);
        let told = format!("{error} at virtual time {s}.{ms:03} s");
        self.error.get_or_insert(io::Error::new(error.kind(), told));
    }

    fn write(&mut self, passing: &CaptureRecord) -> io::Result<()> {
        self.last = passing.at;
        if passing.at > self.limit.until {
            self.limited = true;
            return Ok(());
        }
        self.packet.clear();
        let Written::Packet(link_type) = self.link.write(passing, &mut self.packet) else { return Ok(()) };
        let bytes = self.writer.bytes + Writer::<W>::packet_block(self.packet.len());
        if self.packets >= self.limit.packets || bytes > self.limit.bytes {
            self.limited = true;
            return Ok(());
        }
        let interface = self.interface(passing.port, link_type)?;
        self.writer.packet(interface, passing.at, &self.packet)?;
        self.packets += 1;
        Ok(())
    }

    fn is_open(&self) -> bool {
        !self.limited && self.error.is_none()
    }
}

/// The capture files of one run.
pub struct Files<W>(pub Vec<File<W>>);

impl<W: Write> Files<W> {
    /// Returns the output ports that any of the files captures.
    pub fn ports(&self) -> Vec<usize> {
        let mut ports: Vec<usize> = self.0.iter().flat_map(|file| file.ports().iter().copied()).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Flushes all files. A file whose flush fails ends; the others go on.
    pub fn flush(&mut self) {
        for file in self.0.iter_mut().filter(|file| file.error.is_none()) {
            if let Err(error) = file.writer.flush() {
                file.end_with_error(&error);
            }
        }
    }
}

impl<W: Write> CaptureSink for Files<W> {
    fn passed(&mut self, passing: &CaptureRecord) -> ControlFlow<()> {
        let mut whole = true;
        for file in
            self.0.iter_mut().filter(|file| file.is_open() && file.point.ports.contains(&passing.port))
        {
            if let Err(error) = file.write(passing) {
                file.end_with_error(&error);
                whole = false;
            }
        }
        if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn wants_more(&self) -> bool {
        self.0.iter().any(File::is_open)
    }
}

/// Returns the comment of a file: it names the run, and the parts of the packets that are synthetic.
pub fn about(testbed: &Testbed, variant: &str, seed: u64) -> String {
    format!(
        "{}, variant `{variant}`, seed {seed}, simulated by Engpass; addresses, ports and payload are made up",
        testbed.name
    )
}
