//! Data paths between an application's buffer and a device, and the operations per byte on each.
//!
//! Three data paths come from the study of memory as a barrier to communication (Warschko and others, Karlsruhe, about 1998): one copy
//! followed by DMA, the same in a pipeline, and no copy. The others extend the same table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path of data between an application's buffer and a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataPath {
    /// A copy by the CPU, followed by DMA of the copied data. The two do not overlap.
    OneCopy,
    /// `one-copy` as printed in the study of 1998, where DMA may be faster than the memory. Only to reproduce that study.
    OneCopyAsPrinted,
    /// A copy by the CPU while DMA moves data that was copied before: a socket's `send` and `recv`.
    OneCopyPipelined,
    /// DMA from or to the application's own buffer.
    ZeroCopy,
    /// A copy and a separate pass for the Internet checksum, in a pipeline with DMA.
    CopyAndChecksum,
    /// `read` followed by `send`, or `recv` followed by `write`: two copies, through a buffer of the application.
    ReadWrite,
    /// `sendfile` or `splice`: DMA from the page cache.
    Sendfile,
    /// `send` with `MSG_ZEROCOPY`, if the device supports it: DMA from pinned pages of the application.
    MsgZerocopy,
    /// `TCP_ZEROCOPY_RECEIVE`: pages with payload are mapped into the application.
    TcpZerocopyReceive,
    /// `recv` with `MSG_TRUNC`: received data are discarded without a copy.
    MsgTrunc,
    /// io_uring with registered buffers: `SEND_ZC`, or zero-copy receive.
    IoUringZeroCopy,
    /// TLS in the kernel: a copy, and encryption or decryption in place.
    Ktls,
    /// `sendfile` through TLS in the kernel: encryption from the page cache to other pages.
    KtlsSendfile,
    /// Remote DMA: the device moves data between registered buffers.
    Rdma,
    /// Copy between a GPU and memory that is not pinned: through a pinned staging buffer, in a pipeline.
    GpuPageable,
    /// Copy between a GPU and pinned memory.
    GpuPinned,
    /// DMA of a device directly to the memory of another device.
    PeerToPeer,
}

/// Sending or receiving end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Data go from memory to the device.
    Send,
    /// Data go from the device to memory.
    Receive,
}

/// Operations per byte on a data path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses {
    /// Number of copies by the CPU.
    pub copies: u64,
    /// Number of passes that only read, for the Internet checksum.
    pub checksums: u64,
    /// Number of passes that encrypt or decrypt. Each reads and writes.
    pub encryptions: u64,
    /// Number of DMA transfers over the memory bus.
    pub dma: u64,
    /// Number of transfers over the I/O bus.
    pub bus: u64,
    /// Whether the CPU's work and DMA take turns instead of overlapping in a pipeline.
    pub serial: bool,
}

/// DMA between memory and one device, without work for the CPU.
const DMA: Uses = Uses { copies: 0, checksums: 0, encryptions: 0, dma: 1, bus: 1, serial: false };

impl DataPath {
    /// All data paths, in the order of the reference.
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

    /// The operations per byte of this data path.
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

    /// Whether the data path exists at this end of a flow.
    pub const fn serves(self, side: Side) -> bool {
        match self {
            Self::Sendfile | Self::MsgZerocopy | Self::KtlsSendfile => matches!(side, Side::Send),
            Self::TcpZerocopyReceive | Self::MsgTrunc => matches!(side, Side::Receive),
            _ => true,
        }
    }

    /// Name of the data path in the testbed file.
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
    fn data_path_words_match_the_file_and_the_list_is_complete() {
        for (index, path) in DataPath::ALL.into_iter().enumerate() {
            assert_eq!(path as usize, index);
            assert_eq!(serde_json::to_value(path).unwrap(), path.word());
        }
        let schema = schemars::schema_for!(DataPath).to_value();
        assert_eq!(schema["oneOf"].as_array().unwrap().len(), DataPath::ALL.len());
    }

    /// The table in the documentation has the same rows as the code.
    #[test]
    fn copies_page_has_a_row_for_every_data_path() {
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
