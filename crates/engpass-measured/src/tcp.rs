//! TCP's counters at one end of a flow: `TCP_INFO` at the edges of the window, for all connections together.

use engpass_ledger::Account;
use engpass_model::wire::ip::TCP_HEADER_BYTES;
use engpass_outcome::Tcp;

use crate::answer::{End, Subflow, TcpInfo};
use crate::crossing::Crossing;
use crate::idle_reasons::{Shares, Waits};
use crate::line::{Line, Packets};

/// Bytes of the time stamps in each segment (RFC 7323 section 3).
const TIMESTAMPS_BYTES: u64 = 12;
/// `TCPI_OPT_TIMESTAMPS` of `linux/tcp.h`.
const OPTION_TIMESTAMPS: u64 = 1;

/// A counter of `TCP_INFO`.
type Counter = fn(&TcpInfo) -> Option<u64>;

/// `TCP_INFO` of some connections, summed. Counters that the kernel lacks count as 0.
pub(crate) struct Connections(Vec<Edges>);

/// Readings of one connection: when the window opened, when it closed, and after the last data.
struct Edges {
    open: TcpInfo,
    close: TcpInfo,
    end: TcpInfo,
}

impl Connections {
    /// Returns those of all streams of an end for which the kernel reported both edges of the window.
    pub(crate) fn of(end: &End) -> Self {
        let known = end.streams.iter().filter_map(|stream| stream.tcp.as_ref());
        let edges = known.filter_map(|tcp| {
            let close = tcp.close.clone()?;
            Some(Edges {
                open: tcp.open.clone()?,
                end: tcp.end.clone().unwrap_or_else(|| close.clone()),
                close,
            })
        });
        Self(edges.collect())
    }

    /// Returns those of some subflows. A subflow that began in the window counts from 0; one that ended in it counts with its last reading.
    pub(crate) fn over(subflows: &[&Subflow]) -> Self {
        let edges = subflows.iter().filter_map(|subflow| {
            let tcp = &subflow.tcp;
            let close = tcp.close.clone().or_else(|| tcp.open.clone())?;
            let open = tcp.open.clone().unwrap_or_default();
            Some(Edges { open, end: tcp.end.clone().unwrap_or_else(|| close.clone()), close })
        });
        Self(edges.collect())
    }

    /// Returns true if the kernel reported on any connection.
    fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the growth of a counter in the window.
    fn grew(&self, counter: Counter) -> u64 {
        let each = self
            .0
            .iter()
            .map(|edges| (counter(&edges.open).unwrap_or(0), counter(&edges.close).unwrap_or(0)));
        let grown: i64 = each.map(|(open, close)| close as i64 - open as i64).sum();
        u64::try_from(grown).unwrap_or(0)
    }

    /// Returns a counter at the end of the connections.
    fn whole(&self, counter: Counter) -> u64 {
        self.0.iter().map(|edges| counter(&edges.end).unwrap_or(0)).sum()
    }

    /// Returns the bytes of the header of every segment.
    fn header_bytes(&self) -> u64 {
        let options = self.0.first().and_then(|edges| edges.close.options).unwrap_or(0);
        TCP_HEADER_BYTES + if options & OPTION_TIMESTAMPS == 0 { 0 } else { TIMESTAMPS_BYTES }
    }

    /// Returns the payload bytes that were retransmitted in the window.
    fn again(&self) -> u64 {
        self.grew(|info| info.bytes_retrans)
    }

    /// Returns the payload bytes that the peer reported as duplicates (D-SACK, RFC 2883), in full segments.
    fn twice(&self) -> u64 {
        let first = self.0.first().map(|edges| &edges.close);
        let size = |counter: Counter| first.and_then(counter).filter(|bytes| *bytes > 0);
        let segment = size(|info| info.snd_mss).or_else(|| size(|info| info.rcv_mss)).unwrap_or(1);
        self.grew(|info| info.dsack_dups) * segment
    }

    /// Returns why a sender that always has data was idle for parts of its window, by the times that the kernel counts.
    pub(crate) fn idle_shares(&self, seconds: f64, behind: bool) -> Shares {
        if !self.is_known() {
            return vec![(Account::UNKNOWN, 1.0)];
        }
        let whole = seconds * 1e6 * self.0.len() as f64;
        let share = |counter: Counter| self.grew(counter) as f64 / whole;
        let mut shares = vec![
            (Account::RECEIVE_WINDOW, share(|info| info.rwnd_limited_us)),
            (Account::SEND_BUFFER, share(|info| info.sndbuf_limited_us)),
            (Account::RETRANSMISSION_TIMER, self.grew(|info| info.total_rto_time_ms) as f64 * 1000.0 / whole),
        ];
        let told = shares.iter().map(|(_, share)| share).sum::<f64>().min(1.0);
        let rest = (share(|info| info.busy_us).min(1.0) - told).max(0.0);
        // No counter explains the time in which nothing was in flight although the sender had data.
        let mut unknown = (1.0 - told - rest).max(0.0);
        if behind {
            shares.push((Account::UPSTREAM, rest));
        } else if self.again() > 0 {
            // The sender retransmitted, and no window or buffer held it back: the congestion window did.
            shares.push((Account::CONGESTION_WINDOW, rest));
        } else {
            unknown += rest;
        }
        shares.push((Account::UNKNOWN, unknown));
        shares.retain(|(_, share)| *share > 0.0);
        shares
    }
}

/// Returns TCP's counts, summed over all streams in the window; times are the first stream's at its end.
pub(crate) fn counts(sender: &End) -> Option<Tcp> {
    let edges: Vec<(TcpInfo, TcpInfo)> = sender
        .streams
        .iter()
        .filter_map(|stream| stream.tcp.as_ref())
        .map(|tcp| (tcp.open.clone().unwrap_or_default(), tcp.close.clone().unwrap_or_default()))
        .collect();
    let grew = |counter: Counter| {
        let known = edges
            .iter()
            .filter_map(|(open, close)| Some(counter(close)? as i64 - counter(open).unwrap_or(0) as i64));
        known.reduce(|sum, one| sum + one).map(|grown| grown.max(0) as u64)
    };
    let busy = grew(|info| info.busy_us).filter(|busy| *busy > 0);
    let share = |time_us: Option<u64>| Some(time_us? as f64 / busy? as f64);
    let last = edges.first().map(|(_, close)| close);
    let time = |counter: Counter| last.and_then(counter).map(|time| time as f64 / 1e6);
    let found = Tcp {
        retransmitted_segments: grew(|info| info.total_retrans),
        timeouts: grew(|info| info.total_rto),
        smoothed_rtt_s: time(|info| info.rtt_us),
        min_rtt_s: time(|info| info.min_rtt_us),
        timeout_share: share(grew(|info| info.total_rto_time_ms).map(|time| time * 1000)),
        receive_window_limited_share: share(grew(|info| info.rwnd_limited_us)),
        send_buffer_limited_share: share(grew(|info| info.sndbuf_limited_us)),
        ..Tcp::default()
    };
    (found != Tcp::default()).then_some(found)
}

/// Posts the segments of a flow, as the end at this line counted them. `both` is true if both ends send data.
pub(crate) fn post(at: &Crossing<'_>, there: &mut Line, back: &mut Line, both: bool) {
    post_segments(
        &at.packets,
        [Connections::of(at.sent), Connections::of(at.got)],
        at.first,
        [there, back],
        both,
    );
}

/// Posts the segments between a sender and a receiver over a line and the one in the opposite direction. `first` is true if the sender is at this line.
pub(crate) fn post_segments(
    packets: &Packets,
    [sender, receiver]: [Connections; 2],
    first: bool,
    [there, back]: [&mut Line; 2],
    both: bool,
) {
    let near = if first { &sender } else { &receiver };
    if !near.is_known() {
        there.senders.push(Waits { shares: vec![(Account::UNKNOWN, 1.0)], elastic: true });
        return;
    }
    post_data(there, packets, &sender, &receiver, first);
    if both {
        post_data(back, packets, &receiver, &sender, !first);
    }
    let header = packets.carry(near.header_bytes(), 0);
    let acks_in = near.grew(|info| info.segs_in).saturating_sub(near.grew(|info| info.data_segs_in));
    let acks_out = near.grew(|info| info.segs_out).saturating_sub(near.grew(|info| info.data_segs_out));
    let (towards, away) = if first { (back, there) } else { (there, back) };
    towards.post_whole(Account::CONTROL, &header, acks_in);
    away.post_whole(Account::CONTROL, &header, acks_out);
    let counted = header.counted_bytes();
    towards.own_bytes += near.whole(|info| info.bytes_received) + near.whole(|info| info.segs_in) * counted;
    away.own_bytes += near.whole(|info| info.bytes_sent) + near.whole(|info| info.segs_out) * counted;
}

/// Posts the data segments from `source` to `sink`. `near_source` is true if the source is the end at this line.
fn post_data(
    line: &mut Line,
    packets: &Packets,
    source: &Connections,
    sink: &Connections,
    near_source: bool,
) {
    let (segments, new, given, dead, twice);
    if near_source {
        segments = source.grew(|info| info.data_segs_out);
        twice = source.again().min(source.twice());
        dead = source.again() - twice;
        new = source.grew(|info| info.bytes_sent).saturating_sub(source.again());
        given = if sink.is_known() { new.min(sink.grew(|info| info.bytes_received)) } else { new };
    } else {
        segments = sink.grew(|info| info.data_segs_in);
        new = sink.grew(|info| info.bytes_received);
        (given, dead) = (new, 0);
        twice = source.again().min(source.twice());
    }
    if segments == 0 {
        return;
    }
    let mean = ((new + dead + twice) / segments).max(1);
    let lost = segments.min(dead / mean);
    let near = if near_source { source } else { sink };
    let one = packets.carry(near.header_bytes(), mean);
    line.deliver_headers(&one, segments - lost);
    line.post_headers(Account::LOST, &one, lost);
    line.post_bytes(Account::LOST, dead);
    line.post_bytes(Account::DELIVERED, given);
    line.post_bytes(Account::IN_FLIGHT, new - given);
    line.post_bytes(Account::DUPLICATE, twice);
}
