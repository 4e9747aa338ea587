//! The pcapng file format (draft-ietf-opsawg-pcapng), as far as captures need it: three kinds of blocks. Published crates that write it also bring a parser
//! or derive macros, and write a block in pieces. Here a block is written completely or not at all.

use std::io::{self, Write};

/// Link types (draft-ietf-opsawg-pcaplinktype).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LinkType {
    /// Ethernet frames without FCS.
    Ethernet = 1,
    /// IP packets.
    Raw = 101,
    /// AAL5 SDUs behind a header with the type of traffic, VPI and VCI.
    SunAtm = 123,
    /// Records of the Extensible Record Format: here ATM cells and AAL5 PDUs.
    Erf = 197,
    /// Private use: here cells of 53 bytes.
    User0 = 147,
}

/// Decimal exponent of the time unit, nanoseconds (section 4.2, `if_tsresol`). The format also has picoseconds, but tshark 4.0 multiplies the fraction of a
/// second by 10^9 in 64 bits, which overflows for them.
const RESOLUTION: u8 = 9;
/// Picoseconds per time unit.
const UNIT: u64 = 1000;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Magic number that shows the byte order of the section (section 4.1).
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

const COMMENT: u16 = 1;
const SECTION_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;

/// Writes blocks, each with one call of `write_all`. Therefore a failed write leaves only complete blocks behind.
#[derive(Debug)]
pub(super) struct Writer<W> {
    out: W,
    interfaces: u32,
    /// Bytes written.
    pub(super) bytes: u64,
    block: Vec<u8>,
}

/// Description of an interface.
pub(super) struct Interface<'a> {
    pub(super) link_type: LinkType,
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) bit_per_s: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a file with a section header block (section 4.1).
    pub(super) fn begin(out: W, comment: &str) -> io::Result<Self> {
        let mut writer = Self { out, interfaces: 0, bytes: 0, block: Vec::new() };
        writer.open(SECTION_HEADER);
        writer.block.extend(BYTE_ORDER.to_le_bytes());
        // Version 1.0, and a section of unknown length.
        writer.block.extend([1, 0, 0, 0]);
        writer.block.extend(u64::MAX.to_le_bytes());
        writer.option(COMMENT, comment.as_bytes());
        writer.option(SECTION_USERAPPL, concat!("engpass ", env!("CARGO_PKG_VERSION")).as_bytes());
        writer.end_options();
        writer.close()?;
        Ok(writer)
    }

    /// Writes an interface description block (section 4.2) and returns the number of the interface.
    pub(super) fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        self.open(INTERFACE);
        self.block.extend((interface.link_type as u16).to_le_bytes());
        // Reserved bytes, and no limit of the packet length.
        self.block.extend([0; 6]);
        self.option(IF_NAME, interface.name.as_bytes());
        self.option(IF_DESCRIPTION, interface.description.as_bytes());
        self.option(IF_SPEED, &interface.bit_per_s.to_le_bytes());
        self.option(IF_TSRESOL, &[RESOLUTION]);
        self.end_options();
        self.close()?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes a packet that passed an interface at `at` picoseconds (enhanced packet block, section 4.3). The file has the time rounded down.
    pub(super) fn packet(&mut self, interface: u32, at: u64, packet: &[u8]) -> io::Result<()> {
        let at = at / UNIT;
        self.open(ENHANCED_PACKET);
        let length = (packet.len() as u32).to_le_bytes();
        self.block.extend(interface.to_le_bytes());
        self.block.extend(((at >> 32) as u32).to_le_bytes());
        self.block.extend((at as u32).to_le_bytes());
        self.block.extend(length);
        self.block.extend(length);
        self.block.extend_from_slice(packet);
        self.pad();
        self.close()
    }

    /// Returns the size of the block for a packet of `packet` bytes.
    pub(super) fn packet_block(packet: usize) -> u64 {
        32 + packet.next_multiple_of(4) as u64
    }

    /// Flushes the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn open(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        // The length is set when the block is complete.
        self.block.extend([0; 4]);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn end_options(&mut self) {
        self.block.extend([0; 4]);
    }

    /// Pads to 32 bits, as blocks and their fields require (section 3.1).
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn close(&mut self) -> io::Result<()> {
        let length = self.block.len() as u32 + 4;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.block.extend(length.to_le_bytes());
        self.out.write_all(&self.block)?;
        self.bytes += u64::from(length);
        Ok(())
    }
}
