//! Sizes of queues.

use std::fmt;

use super::{Quantity, Size, quantity_serde, scaled};

/// A number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellCount(pub u64);

impl Quantity for CellCount {
    const WHAT: &'static str = "a number of cells";
    const UNITS: &'static [&'static str] = &["cells"];
    const EXAMPLE: &'static str = "384 cells";

    fn parse(text: &str) -> Result<Self, String> {
        scaled::<Self>(text, |unit| matches!(unit, "cells" | "cell").then_some(1)).map(Self)
    }
}

quantity_serde!(CellCount);

impl fmt::Display for CellCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells", self.0)
    }
}

/// The size of a queue, in packets or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferSize {
    /// So many packets, whatever their length.
    Packets(u64),
    /// So many bytes.
    Bytes(u64),
}

impl Quantity for BufferSize {
    const WHAT: &'static str = "a buffer size";
    const UNITS: &'static [&'static str] = &["packets", "B", "kB", "MB", "KiB", "MiB"];
    const EXAMPLE: &'static str = "200 packets";

    fn parse(text: &str) -> Result<Self, String> {
        if text.trim_end().ends_with("packets") || text.trim_end().ends_with("packet") {
            return scaled::<Self>(text, |unit| matches!(unit, "packets" | "packet").then_some(1))
                .map(Self::Packets);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_packets() {
        assert_eq!(CellCount::parse("384 cells"), Ok(CellCount(384)));
        assert_eq!(BufferSize::parse("200 packets"), Ok(BufferSize::Packets(200)));
        assert_eq!(BufferSize::parse("512 KiB"), Ok(BufferSize::Bytes(524_288)));
        assert!(BufferSize::parse("9180").is_err());
    }
}
