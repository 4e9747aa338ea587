//! The ways that data take between an application's buffer and a device, and what a byte needs on each.
//!
//! Three are those of the study of memory as a barrier to communication (Warschko and others, Karlsruhe, about 1998):
//! one copy and then DMA, the same in a pipeline, and no copy. The others are rows of the same table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way of data between an application's buffer and a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataPath {
    /// A copy by the CPU, then DMA of what was copied, one after the other.
    OneCopy,
    /// The same as the study of 1998 prints it: DMA may be faster than the memory. Only to reproduce that study.
    OneCopyAsPrinted,
    /// A copy by the CPU while DMA moves what was copied before: a socket's `send` and `recv`.
    OneCopyPipelined,
    /// DMA from and to the application's own buffer.
    ZeroCopy,
    /// A copy and a pass of its own for the Internet checksum, in a pipeline with DMA.
    CopyAndChecksum,
    /// `read` and then `send`, or `recv` and then `write`: two copies, by way of a buffer of the application.
    ReadWrite,
    /// `sendfile` or `splice`: DMA from the page cache.
    Sendfile,
    /// `send` with `MSG_ZEROCOPY`, where the device can: DMA from pinned pages of the application.
    MsgZerocopy,
    /// `TCP_ZEROCOPY_RECEIVE`: pages with payload are mapped into the application.
    TcpZerocopyReceive,
    /// `recv` with `MSG_TRUNC`: what arrives is thrown away and not copied.
    MsgTrunc,
    /// io_uring with registered buffers: `SEND_ZC`, or zero-copy receive.
    IoUringZeroCopy,
    /// TLS in the kernel: a copy, and encryption or decryption in place.
    Ktls,
    /// `sendfile` through TLS in the kernel: encryption from the page cache to other pages.
    KtlsSendfile,
    /// Remote DMA: the device moves data between registered buffers.
    Rdma,
    /// A GPU's copy from or to memory that is not pinned: through a pinned staging buffer, in a pipeline.
    GpuPageable,
    /// A GPU's copy from or to pinned memory.
    GpuPinned,
    /// A device's DMA straight to the memory of another one.
    PeerToPeer,
}

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Data go from memory to the device.
    Send,
    /// Data go from the device to memory.
    Receive,
}

/// What a byte needs on a data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses {
    /// Copies by the CPU.
    pub copies: u64,
    /// Passes that only read, for the Internet checksum.
    pub checksums: u64,
    /// Passes that encrypt or decrypt: each reads and writes.
    pub encryptions: u64,
    /// Transfers over the memory bus by DMA.
    pub dma: u64,
    /// Transfers over the I/O bus.
    pub bus: u64,
    /// Whether DMA waits for the CPU's work on the same data, which waits for DMA before: no pipeline.
    pub serial: bool,
}

/// DMA between memory and one device, in a pipeline with what the CPU does, which is nothing.
const DMA: Uses = Uses { copies: 0, checksums: 0, encryptions: 0, dma: 1, bus: 1, serial: false };

impl DataPath {
    /// All of them, in the order of the reference.
    pub const ALL: [Self; 17] = [
        Self::OneCopy,
        Self::OneCopyAsPrinted,
        Self::OneCopyPipelined,
        Self::ZeroCopy,
        Self::CopyAndChecksum,
        Self::ReadWrite,
        Self::Sendfile,
        Self::MsgZerocopy,
        Self::TcpZerocopyReceive,
        Self::MsgTrunc,
        Self::IoUringZeroCopy,
        Self::Ktls,
        Self::KtlsSendfile,
        Self::Rdma,
        Self::GpuPageable,
        Self::GpuPinned,
        Self::PeerToPeer,
    ];

    /// Its row of the table.
    pub const fn uses(self) -> Uses {
        match self {
            Self::OneCopy => Uses { copies: 1, serial: true, ..DMA },
            Self::OneCopyAsPrinted => Uses { copies: 1, serial: true, dma: 0, ..DMA },
            Self::OneCopyPipelined | Self::GpuPageable => Uses { copies: 1, ..DMA },
            Self::CopyAndChecksum => Uses { copies: 1, checksums: 1, ..DMA },
            Self::ReadWrite => Uses { copies: 2, ..DMA },
            Self::Ktls => Uses { copies: 1, encryptions: 1, ..DMA },
            Self::KtlsSendfile => Uses { encryptions: 1, ..DMA },
            Self::PeerToPeer => Uses { dma: 0, ..DMA },
            Self::ZeroCopy
            | Self::Sendfile
            | Self::MsgZerocopy
            | Self::TcpZerocopyReceive
            | Self::MsgTrunc
            | Self::IoUringZeroCopy
            | Self::Rdma
            | Self::GpuPinned => DMA,
        }
    }

    /// Whether it is a way at this end of a flow.
    pub const fn serves(self, side: Side) -> bool {
        match self {
            Self::Sendfile | Self::MsgZerocopy | Self::KtlsSendfile => matches!(side, Side::Send),
            Self::TcpZerocopyReceive | Self::MsgTrunc => matches!(side, Side::Receive),
            _ => true,
        }
    }

    /// Its word in a file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::OneCopy => "one-copy",
            Self::OneCopyAsPrinted => "one-copy-as-printed",
            Self::OneCopyPipelined => "one-copy-pipelined",
            Self::ZeroCopy => "zero-copy",
            Self::CopyAndChecksum => "copy-and-checksum",
            Self::ReadWrite => "read-write",
            Self::Sendfile => "sendfile",
            Self::MsgZerocopy => "msg-zerocopy",
            Self::TcpZerocopyReceive => "tcp-zerocopy-receive",
            Self::MsgTrunc => "msg-trunc",
            Self::IoUringZeroCopy => "io-uring-zero-copy",
            Self::Ktls => "ktls",
            Self::KtlsSendfile => "ktls-sendfile",
            Self::Rdma => "rdma",
            Self::GpuPageable => "gpu-pageable",
            Self::GpuPinned => "gpu-pinned",
            Self::PeerToPeer => "peer-to-peer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_file_and_the_list_is_whole() {
        for (index, path) in DataPath::ALL.into_iter().enumerate() {
            assert_eq!(path as usize, index);
            assert_eq!(serde_json::to_value(path).unwrap(), path.word());
        }
        let schema = schemars::schema_for!(DataPath).to_value();
        assert_eq!(schema["oneOf"].as_array().unwrap().len(), DataPath::ALL.len());
    }

    /// The table of the documentation has every row as it is here.
    #[test]
    fn the_reference_has_these_rows() {
        let page = include_str!("../../../../docs/copies.md");
        for path in DataPath::ALL {
            let uses = path.uses();
            let way = if uses.serial { "one after the other" } else { "pipeline" };
            let ends = match (path.serves(Side::Send), path.serves(Side::Receive)) {
                (true, true) => "both",
                (true, false) => "send",
                _ => "receive",
            };
            let numbers =
                format!("{} | {} | {} | {}", uses.copies, uses.checksums, uses.encryptions, uses.dma);
            let row = format!("| `{}` | {ends} | {numbers} | {} | {way} |", path.word(), uses.bus);
            assert!(page.contains(&row), "docs/copies.md lacks {row}");
        }
    }
}
