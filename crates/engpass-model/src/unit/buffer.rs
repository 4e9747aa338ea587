//! Queue and buffer sizes.

use std::fmt;

use super::{Quantity, Share, Size, quantity_serde, scaled};

/// A number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellCount(pub u64);

impl Quantity for CellCount {
    const WHAT: &'static str = "a number of cells";
    const UNITS: &'static [&'static str] = &["cells"];
    const EXAMPLE: &'static str = "384 cells";

    fn parse(text: &str) -> Result<Self, String> {
        scaled::<Self>(text, "cells").map(Self)
    }
}

quantity_serde!(CellCount);

impl fmt::Display for CellCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells", self.0)
    }
}

/// Fill level of a cell queue: a number of cells, or a share of the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FillLevel {
    /// Number of cells.
    Cells(u64),
    /// Share of the capacity.
    Share(Share),
}

impl FillLevel {
    /// The fill level in cells for a queue of `capacity` cells, rounded down.
    pub fn of(self, capacity: u64) -> u64 {
        match self {
            Self::Cells(cells) => cells,
            Self::Share(Share(parts)) => {
                let cells = u128::from(capacity) * u128::from(parts) / u128::from(Share::WHOLE);
                u64::try_from(cells).unwrap_or(u64::MAX)
            }
        }
    }
}

impl Quantity for FillLevel {
    const WHAT: &'static str = "a number of cells, or a share of a buffer";
    const UNITS: &'static [&'static str] = &["cells", "%"];
    const EXAMPLE: &'static str = "90 %";

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim_end().ends_with('%') {
            return scaled::<Self>(text, "").map(|parts| Self::Share(Share(parts)));
        }
        scaled::<Self>(text, "cells").map(Self::Cells)
    }
}

quantity_serde!(FillLevel);

impl fmt::Display for FillLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cells(cells) => CellCount(*cells).fmt(f),
            Self::Share(share) => share.fmt(f),
        }
    }
}

/// A buffer size in packets or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferSize {
    /// Number of packets of any length.
    Packets(u64),
    /// Number of bytes.
    Bytes(u64),
}

impl Quantity for BufferSize {
    const WHAT: &'static str = "a buffer size";
    const UNITS: &'static [&'static str] = &["packets", "B", "kB", "MB", "KiB", "MiB"];
    const EXAMPLE: &'static str = "200 packets";

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim_end().ends_with("packets") || text.trim_end().ends_with("packet") {
            return scaled::<Self>(text, "packets").map(Self::Packets);
        }
        Size::parse(text).map(|size| Self::Bytes(size.bytes())).map_err(|_| super::not_a::<Self>(text))
    }
}

quantity_serde!(BufferSize);

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets} packets"),
            Self::Bytes(bytes) => Size(*bytes).fmt(f),
        }
    }
}

/// Queue limit in packets, bytes, or both. If both are given, neither may be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueLimit {
    /// Maximum number of packets; `u64::MAX` if only bytes are limited.
    pub packets: u64,
    /// Maximum number of bytes; `u64::MAX` if only packets are limited.
    pub bytes: u64,
}

impl QueueLimit {
    /// A limit of this number of packets of any length.
    pub const fn packets(packets: u64) -> Self {
        Self { packets, bytes: u64::MAX }
    }

    /// A limit of this number of bytes.
    pub const fn bytes(bytes: u64) -> Self {
        Self { packets: u64::MAX, bytes }
    }
}

impl Quantity for QueueLimit {
    const WHAT: &'static str = "the limit of a queue";
    const UNITS: &'static [&'static str] = BufferSize::UNITS;
    const EXAMPLE: &'static str = "1000 packets, 1 MiB";

    fn parse(text: &str) -> Result<Self, String> {
        // Each part is parsed as a buffer size. On failure, the error asks for a queue limit.
        let one = |text: &str| BufferSize::parse(text).map_err(|_| super::not_a::<Self>(text.trim()));
        match text.split_once(',') {
            None => Ok(match one(text)? {
                BufferSize::Packets(packets) => Self::packets(packets),
                BufferSize::Bytes(bytes) => Self::bytes(bytes),
            }),
            Some((first, second)) => match (one(first)?, one(second)?) {
                (BufferSize::Packets(packets), BufferSize::Bytes(bytes))
                | (BufferSize::Bytes(bytes), BufferSize::Packets(packets)) => Ok(Self { packets, bytes }),
                _ => Err(format!(
                    "`{text}` gives the same kind of limit twice: write it like `{}`",
                    Self::EXAMPLE
                )),
            },
        }
    }
}

quantity_serde!(QueueLimit);

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (packets, bytes) = (BufferSize::Packets(self.packets), BufferSize::Bytes(self.bytes));
        match (self.packets, self.bytes) {
            (_, u64::MAX) => packets.fmt(f),
            (u64::MAX, _) => bytes.fmt(f),
            _ => write!(f, "{packets}, {bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_limit_is_in_packets_bytes_or_both() {
        assert_eq!(QueueLimit::parse("1000 packets"), Ok(QueueLimit::packets(1000)));
        assert_eq!(QueueLimit::parse("256 KiB"), Ok(QueueLimit::bytes(262_144)));
        let both = QueueLimit { packets: 10, bytes: 2000 };
        assert_eq!(QueueLimit::parse("10 packets, 2 kB"), Ok(both));
        assert_eq!(QueueLimit::parse("2 kB,10 packets"), Ok(both));
        assert!(QueueLimit::parse("2 kB, 3 kB").unwrap_err().contains("twice"));
        assert!(QueueLimit::parse("many").unwrap_err().contains("the limit of a queue"));
        assert!(QueueLimit::parse("1000").is_err());
    }

    #[test]
    fn fill_level_is_in_cells_or_per_cent() {
        assert_eq!(FillLevel::parse("300 cells"), Ok(FillLevel::Cells(300)));
        assert_eq!(FillLevel::parse("1 cell").unwrap().of(5), 1);
        let level = FillLevel::parse("90 %").unwrap();
        assert_eq!((level.of(384), level.of(1), level.to_string()), (345, 0, "90 %".into()));
        assert!(FillLevel::parse("300 B").unwrap_err().contains("`cells`, `%`"));
        assert!(FillLevel::parse("0.9").unwrap_err().contains("no unit"));
    }

    #[test]
    fn cell_counts_and_buffer_sizes_are_parsed() {
        assert_eq!(CellCount::parse("384 cells"), Ok(CellCount(384)));
        assert_eq!(BufferSize::parse("200 packets"), Ok(BufferSize::Packets(200)));
        assert_eq!(BufferSize::parse("512 KiB"), Ok(BufferSize::Bytes(524_288)));
        assert!(BufferSize::parse("9180").is_err());
    }
}
