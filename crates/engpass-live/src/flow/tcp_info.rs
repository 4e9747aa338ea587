//! The kernel's statistics of a TCP connection (`TCP_INFO`).

use std::os::fd::AsRawFd;

use serde_json::{Map, Value, json};

use crate::sys::option;

/// Name, offset and width in bytes of the fields of `struct tcp_info` in `linux/tcp.h`. The name of a time or rate ends with its unit.
const FIELDS: [(&str, usize, usize); 57] = [
    ("state", 0, 1),
    ("ca_state", 1, 1),
    ("retransmits", 2, 1),
    ("probes", 3, 1),
    ("backoff", 4, 1),
    ("options", 5, 1),
    ("wscale", 6, 1),
    ("flags", 7, 1),
    ("rto_us", 8, 4),
    ("ato_us", 12, 4),
    ("snd_mss", 16, 4),
    ("rcv_mss", 20, 4),
    ("unacked", 24, 4),
    ("sacked", 28, 4),
    ("lost", 32, 4),
    ("retrans", 36, 4),
    ("last_data_sent_ms", 44, 4),
    ("last_data_recv_ms", 52, 4),
    ("last_ack_recv_ms", 56, 4),
    ("pmtu", 60, 4),
    ("rcv_ssthresh", 64, 4),
    ("rtt_us", 68, 4),
    ("rttvar_us", 72, 4),
    ("snd_ssthresh", 76, 4),
    ("snd_cwnd", 80, 4),
    ("advmss", 84, 4),
    ("reordering", 88, 4),
    ("rcv_rtt_us", 92, 4),
    ("rcv_space", 96, 4),
    ("total_retrans", 100, 4),
    ("pacing_rate_bytes_per_s", 104, 8),
    ("max_pacing_rate_bytes_per_s", 112, 8),
    ("bytes_acked", 120, 8),
    ("bytes_received", 128, 8),
    ("segs_out", 136, 4),
    ("segs_in", 140, 4),
    ("notsent_bytes", 144, 4),
    ("min_rtt_us", 148, 4),
    ("data_segs_in", 152, 4),
    ("data_segs_out", 156, 4),
    ("delivery_rate_bytes_per_s", 160, 8),
    ("busy_us", 168, 8),
    ("rwnd_limited_us", 176, 8),
    ("sndbuf_limited_us", 184, 8),
    ("delivered", 192, 4),
    ("delivered_ce", 196, 4),
    ("bytes_sent", 200, 8),
    ("bytes_retrans", 208, 8),
    ("dsack_dups", 216, 4),
    ("reord_seen", 220, 4),
    ("rcv_ooopack", 224, 4),
    ("snd_wnd", 228, 4),
    ("rcv_wnd", 232, 4),
    ("rehash", 236, 4),
    ("total_rto", 240, 2),
    ("total_rto_recoveries", 242, 2),
    ("total_rto_time_ms", 244, 4),
];

/// One reading of `TCP_INFO`, with the length that this kernel filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    bytes: [u8; Self::ROOM],
    length: usize,
}

impl TcpInfo {
    /// Largest number of bytes of a reading that are kept.
    pub(crate) const ROOM: usize = 256;

    /// Takes a reading from bytes that another socket option has returned.
    pub(crate) fn told(told: &[u8]) -> Self {
        let length = told.len().min(Self::ROOM);
        let mut bytes = [0; Self::ROOM];
        bytes[..length].copy_from_slice(&told[..length]);
        Self { bytes, length }
    }

    /// Reads the socket's statistics; `None` if it is not TCP.
    pub(crate) fn of(socket: &impl AsRawFd) -> Option<Self> {
        let mut bytes = [0; Self::ROOM];
        let length = option::get_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes).ok()?;
        Some(Self { bytes, length })
    }

    fn at(&self, offset: usize, width: usize) -> Option<u64> {
        let bytes = self.bytes[..self.length].get(offset..offset + width)?;
        // The kernel uses its native byte order.
        Some(match width {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().expect("2 bytes"))),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().expect("4 bytes"))),
            _ => u64::from_ne_bytes(bytes.try_into().expect("8 bytes")),
        })
    }

    /// Returns a field by name; `None` if this kernel does not report it.
    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        let (_, offset, width) = FIELDS.iter().find(|field| field.0 == name)?;
        self.at(*offset, *width)
    }

    /// Returns whether the peer has acknowledged everything that was written, or the connection is closed (`TCP_CLOSE` of `net/tcp_states.h`).
    pub(crate) fn is_acknowledged(self) -> bool {
        const CLOSED: u64 = 7;
        let left = |name| self.get(name).unwrap_or(0);
        self.get("state") == Some(CLOSED) || (left("unacked") == 0 && left("notsent_bytes") == 0)
    }

    /// Returns all fields that this kernel reports.
    pub(crate) fn to_json(self) -> Value {
        let field = |(name, offset, width): &(&str, usize, usize)| {
            self.at(*offset, *width).map(|value| ((*name).to_owned(), json!(value)))
        };
        let mut all: Map<String, Value> = FIELDS.iter().filter_map(field).collect();
        if let Some(flags) = self.get("flags") {
            // The byte after the window scales is a bit-field; bit 0 is `tcpi_delivery_rate_app_limited`.
            all.insert("app_limited".to_owned(), json!(flags & 1 == 1));
        }
        Value::Object(all)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn tcp_info_fields_do_not_overlap() {
        for pair in FIELDS.windows(2) {
            assert!(pair[0].1 + pair[0].2 <= pair[1].1, "{pair:?}");
        }
    }

    #[test]
    fn tcp_info_counts_bytes_sent_and_received() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is available");
        let mut sender = TcpStream::connect(listener.local_addr().expect("the socket is bound"))
            .expect("the port is open");
        let mut receiver = listener.accept().expect("a peer has connected").0;
        sender.write_all(&[7; 5000]).expect("the send buffer has room");
        receiver.read_exact(&mut [0; 5000]).expect("the data arrive");
        let sent = TcpInfo::of(&sender).expect("the kernel reports TCP_INFO");
        assert_eq!(sent.get("bytes_sent"), Some(5000));
        assert_eq!(
            TcpInfo::of(&receiver).expect("the kernel reports TCP_INFO").get("bytes_received"),
            Some(5000)
        );
        // TCP_ESTABLISHED is 1; loopback has an RTT and takes more than 5000 bytes at once.
        assert_eq!(sent.get("state"), Some(1));
        assert!(sent.get("rtt_us").is_some_and(|rtt| rtt > 0 && rtt < 10_000_000));
        assert!(sent.get("snd_wnd").is_some_and(|window| window > 5000));
        assert!(sent.to_json()["app_limited"].is_boolean());
    }
}
