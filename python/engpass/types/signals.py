"""Signals, the numbers of an outcome: generated from `crates/engpass-outcome` by `make gen`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """A number of a flow, of a direction of a link, or of an engine of a node."""

    name: str
    """Name of the column in files."""
    title: str
    """Title of columns and axes. In lower case, claims name the signal so."""
    family: tuple[str, str] | None = None
    """For signals with a common title, such as the quantiles of a delay: that title, and the part that differs."""
    unit: str = ""
    """Base unit: `bit/s`, `s`, `B`, or the plural of what is counted; empty for a share."""
    path: str
    """Path of the field in the outcome; for a ratio, of the field above both counts."""
    ratio: tuple[str, str] | None = None
    """For a ratio: the paths of part and whole."""
    whole: bool = False
    """Whether it is a whole number."""
    fold: Literal["mean", "sum", "min", "max"] = "mean"
    """How repeats become one number. A ratio is that of the sums."""
    better: Literal["higher", "lower"] | None = None
    """The better direction."""
    always: bool = False
    """Whether every file has the column."""
    summary: bool = False
    """Whether summaries show it."""
    help: str = ""
    """What it is, in a sentence."""

FLOW: tuple[Signal, ...] = (
    Signal(
        name="goodput_bit_per_s", title="Goodput", unit="bit/s", path="goodput_bit_per_s", better="higher", always=True, summary=True,
        help="Payload received, in bit/s. With `limit`: the max-min fair share.",
    ),
    Signal(
        name="offered_bit_per_s", title="Offered", unit="bit/s", path="offered_bit_per_s", always=True, summary=True,
        help="Payload sent, in bit/s. With `limit`: equal to the goodput.",
    ),
    Signal(
        name="loss", title="Loss", path="datagrams", ratio=("datagrams.lost", "datagrams.sent"), better="lower", always=True, summary=True,
        help="`datagrams.lost` as a share of `datagrams.sent`.",
    ),
    Signal(
        name="sent_datagrams", title="Sent", unit="datagrams", path="datagrams.sent", whole=True, fold="sum", always=True,
        help="Number sent.",
    ),
    Signal(
        name="received_datagrams", title="Received", unit="datagrams", path="datagrams.received", whole=True, fold="sum", always=True,
        help="Number received complete.",
    ),
    Signal(
        name="lost_datagrams", title="Lost", unit="datagrams", path="datagrams.lost", whole=True, fold="sum", always=True,
        help="Number lost, completely or in part.",
    ),
    Signal(
        name="in_flight_datagrams", title="In flight", unit="datagrams", path="datagrams.in_flight", whole=True, fold="sum", always=True,
        help="Number sent, but neither received nor lost at the end of the run.",
    ),
    Signal(
        name="duplicate_datagrams", title="Duplicates", unit="datagrams", path="datagrams.duplicate", whole=True, fold="sum",
        help="Number received more than once.",
    ),
    Signal(
        name="reordered_datagrams", title="Reordered", unit="datagrams", path="datagrams.reordered", whole=True, fold="sum",
        help="Number received after one that was sent later.",
    ),
    Signal(
        name="efci_pdus", title="EFCI PDUs", unit="PDUs", path="efci_pdus", whole=True, fold="sum",
        help="PDUs (for a generator: cells) that arrived complete, with the EFCI mark in the last cell.",
    ),
    Signal(
        name="delay_min_s", title="Delay min", family=("Delay", "min"), unit="s", path="delay_s.network.min", fold="min", better="lower", always=True,
        help="Minimum. One-way delay from the sending to the receiving application, of datagrams or TCP segments that arrive. Every transmission of a segment counts separately.",
    ),
    Signal(
        name="delay_mean_s", title="Delay mean", family=("Delay", "mean"), unit="s", path="delay_s.network.mean", better="lower", always=True,
        help="Mean. Absent in results of earlier versions. One-way delay from the sending to the receiving application, of datagrams or TCP segments that arrive. Every transmission of a segment counts separately.",
    ),
    Signal(
        name="delay_p50_s", title="Delay p50", family=("Delay", "p50"), unit="s", path="delay_s.network.p50", better="lower", always=True, summary=True,
        help="Median. One-way delay from the sending to the receiving application, of datagrams or TCP segments that arrive. Every transmission of a segment counts separately.",
    ),
    Signal(
        name="delay_p90_s", title="Delay p90", family=("Delay", "p90"), unit="s", path="delay_s.network.p90", better="lower", always=True,
        help="90th percentile. One-way delay from the sending to the receiving application, of datagrams or TCP segments that arrive. Every transmission of a segment counts separately.",
    ),
    Signal(
        name="delay_p99_s", title="Delay p99", family=("Delay", "p99"), unit="s", path="delay_s.network.p99", better="lower", always=True, summary=True,
        help="99th percentile. One-way delay from the sending to the receiving application, of datagrams or TCP segments that arrive. Every transmission of a segment counts separately.",
    ),
    Signal(
        name="delay_p999_s", title="Delay p99.9", family=("Delay", "p99.9"), unit="s", path="delay_s.network.p99_9", better="lower", always=True,
        help="99.9th percentile. One-way delay from the sending to the receiving application, of datagrams or TCP segments that arrive. Every transmission of a segment counts separately.",
    ),
    Signal(
        name="delay_max_s", title="Delay max", family=("Delay", "max"), unit="s", path="delay_s.network.max", fold="max", better="lower", always=True,
        help="Maximum. One-way delay from the sending to the receiving application, of datagrams or TCP segments that arrive. Every transmission of a segment counts separately.",
    ),
    Signal(
        name="queueing_delay_min_s", title="Queueing delay min", family=("Queueing delay", "min"), unit="s", path="delay_s.queueing.min", fold="min", better="lower",
        help="Minimum. Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines. Absent if packets of one datagram took different paths. Minimum, mean and maximum are exact. The percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram.",
    ),
    Signal(
        name="queueing_delay_mean_s", title="Queueing delay mean", family=("Queueing delay", "mean"), unit="s", path="delay_s.queueing.mean", better="lower",
        help="Mean. Absent in results of earlier versions. Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines. Absent if packets of one datagram took different paths. Minimum, mean and maximum are exact. The percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram.",
    ),
    Signal(
        name="queueing_delay_p50_s", title="Queueing delay p50", family=("Queueing delay", "p50"), unit="s", path="delay_s.queueing.p50", better="lower",
        help="Median. Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines. Absent if packets of one datagram took different paths. Minimum, mean and maximum are exact. The percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram.",
    ),
    Signal(
        name="queueing_delay_p90_s", title="Queueing delay p90", family=("Queueing delay", "p90"), unit="s", path="delay_s.queueing.p90", better="lower",
        help="90th percentile. Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines. Absent if packets of one datagram took different paths. Minimum, mean and maximum are exact. The percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram.",
    ),
    Signal(
        name="queueing_delay_p99_s", title="Queueing delay p99", family=("Queueing delay", "p99"), unit="s", path="delay_s.queueing.p99", better="lower",
        help="99th percentile. Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines. Absent if packets of one datagram took different paths. Minimum, mean and maximum are exact. The percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram.",
    ),
    Signal(
        name="queueing_delay_p999_s", title="Queueing delay p99.9", family=("Queueing delay", "p99.9"), unit="s", path="delay_s.queueing.p99_9", better="lower",
        help="99.9th percentile. Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines. Absent if packets of one datagram took different paths. Minimum, mean and maximum are exact. The percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram.",
    ),
    Signal(
        name="queueing_delay_max_s", title="Queueing delay max", family=("Queueing delay", "max"), unit="s", path="delay_s.queueing.max", fold="max", better="lower",
        help="Maximum. Part of the delay that an idle network would not cause: waits for CPUs, NICs, queues and lines. Absent if packets of one datagram took different paths. Minimum, mean and maximum are exact. The percentiles are within 1.6 % plus 0.1 % of the idle delay of the first counted datagram.",
    ),
    Signal(
        name="message_delay_min_s", title="Message delay min", family=("Message delay", "min"), unit="s", path="delay_s.message.min", fold="min", better="lower",
        help="Minimum. Time from the first transmission of a datagram or TCP segment until its receiving application can read all of it. It includes the waits for retransmissions and, with TCP, for earlier data. Every segment counts once.",
    ),
    Signal(
        name="message_delay_mean_s", title="Message delay mean", family=("Message delay", "mean"), unit="s", path="delay_s.message.mean", better="lower",
        help="Mean. Absent in results of earlier versions. Time from the first transmission of a datagram or TCP segment until its receiving application can read all of it. It includes the waits for retransmissions and, with TCP, for earlier data. Every segment counts once.",
    ),
    Signal(
        name="message_delay_p50_s", title="Message delay p50", family=("Message delay", "p50"), unit="s", path="delay_s.message.p50", better="lower",
        help="Median. Time from the first transmission of a datagram or TCP segment until its receiving application can read all of it. It includes the waits for retransmissions and, with TCP, for earlier data. Every segment counts once.",
    ),
    Signal(
        name="message_delay_p90_s", title="Message delay p90", family=("Message delay", "p90"), unit="s", path="delay_s.message.p90", better="lower",
        help="90th percentile. Time from the first transmission of a datagram or TCP segment until its receiving application can read all of it. It includes the waits for retransmissions and, with TCP, for earlier data. Every segment counts once.",
    ),
    Signal(
        name="message_delay_p99_s", title="Message delay p99", family=("Message delay", "p99"), unit="s", path="delay_s.message.p99", better="lower",
        help="99th percentile. Time from the first transmission of a datagram or TCP segment until its receiving application can read all of it. It includes the waits for retransmissions and, with TCP, for earlier data. Every segment counts once.",
    ),
    Signal(
        name="message_delay_p999_s", title="Message delay p99.9", family=("Message delay", "p99.9"), unit="s", path="delay_s.message.p99_9", better="lower",
        help="99.9th percentile. Time from the first transmission of a datagram or TCP segment until its receiving application can read all of it. It includes the waits for retransmissions and, with TCP, for earlier data. Every segment counts once.",
    ),
    Signal(
        name="message_delay_max_s", title="Message delay max", family=("Message delay", "max"), unit="s", path="delay_s.message.max", fold="max", better="lower",
        help="Maximum. Time from the first transmission of a datagram or TCP segment until its receiving application can read all of it. It includes the waits for retransmissions and, with TCP, for earlier data. Every segment counts once.",
    ),
    Signal(
        name="retransmitted_segments", title="Retransmissions", unit="segments", path="tcp.retransmitted_segments", whole=True, fold="sum", better="lower",
        help="Retransmitted segments.",
    ),
    Signal(
        name="timeouts", title="Timeouts", unit="timeouts", path="tcp.timeouts", whole=True, fold="sum", better="lower",
        help="Number of expiries of the retransmission timer.",
    ),
    Signal(
        name="fast_retransmits", title="Fast recoveries", unit="recoveries", path="tcp.fast_retransmits", whole=True, fold="sum",
        help="Number of entries into fast recovery.",
    ),
    Signal(
        name="smoothed_rtt_s", title="Smoothed round trip", unit="s", path="tcp.smoothed_rtt_s", better="lower",
        help="Smoothed round-trip time of the first connection at the end, in seconds.",
    ),
    Signal(
        name="minimum_rtt_s", title="Minimum round trip", unit="s", path="tcp.min_rtt_s", better="lower",
        help="Minimum round-trip time of the first connection, as its kernel measured it, in seconds.",
    ),
    Signal(
        name="round_trip_min_s", title="Round trip min", family=("Round trip", "min"), unit="s", path="tcp.rtt_s.min", fold="min", better="lower",
        help="Minimum. Round-trip times as the senders measured them, in seconds.",
    ),
    Signal(
        name="round_trip_mean_s", title="Round trip mean", family=("Round trip", "mean"), unit="s", path="tcp.rtt_s.mean", better="lower",
        help="Mean. Absent in results of earlier versions. Round-trip times as the senders measured them, in seconds.",
    ),
    Signal(
        name="round_trip_p50_s", title="Round trip p50", family=("Round trip", "p50"), unit="s", path="tcp.rtt_s.p50", better="lower",
        help="Median. Round-trip times as the senders measured them, in seconds.",
    ),
    Signal(
        name="round_trip_p90_s", title="Round trip p90", family=("Round trip", "p90"), unit="s", path="tcp.rtt_s.p90", better="lower",
        help="90th percentile. Round-trip times as the senders measured them, in seconds.",
    ),
    Signal(
        name="round_trip_p99_s", title="Round trip p99", family=("Round trip", "p99"), unit="s", path="tcp.rtt_s.p99", better="lower",
        help="99th percentile. Round-trip times as the senders measured them, in seconds.",
    ),
    Signal(
        name="round_trip_p999_s", title="Round trip p99.9", family=("Round trip", "p99.9"), unit="s", path="tcp.rtt_s.p99_9", better="lower",
        help="99.9th percentile. Round-trip times as the senders measured them, in seconds.",
    ),
    Signal(
        name="round_trip_max_s", title="Round trip max", family=("Round trip", "max"), unit="s", path="tcp.rtt_s.max", fold="max", better="lower",
        help="Maximum. Round-trip times as the senders measured them, in seconds.",
    ),
    Signal(
        name="timeout_share", title="Waits for timeouts", path="tcp.timeout_share", better="lower",
        help="Fraction of the busy time in which the sender waited for its retransmission timer.",
    ),
    Signal(
        name="receive_window_limited_share", title="Limited by receive window", path="tcp.receive_window_limited_share",
        help="Fraction of the busy time in which the receive window limited the sender.",
    ),
    Signal(
        name="send_buffer_limited_share", title="Limited by send buffer", path="tcp.send_buffer_limited_share",
        help="Fraction of the busy time in which the send buffer limited the sender.",
    ),
    Signal(
        name="transferred_bytes", title="Transferred", unit="B", path="transfer.received_bytes", whole=True,
        help="Payload of messages received.",
    ),
    Signal(
        name="transfer_s", title="Transfer time", unit="s", path="transfer.duration_s", better="lower",
        help="Time from the first to the last byte of payload; with sentinels, from the first of them that arrives to the next one. Absent if the transfer did not end in the run, or took no time.",
    ),
    Signal(
        name="transfer_bit_per_s", title="Transfer goodput", unit="bit/s", path="transfer.goodput_bit_per_s", better="higher",
        help="Payload received, per second of this time.",
    ),
    Signal(
        name="outage_longest_s", title="Longest gap", unit="s", path="outage.longest_s", fold="max", better="lower", summary=True,
        help="Longest time without a received datagram, in seconds, between the first one and the end of the run, of the flow's traffic, or of a transfer that has arrived whole.",
    ),
    Signal(
        name="outage_lost_datagrams", title="Lost to line down", unit="datagrams", path="outage.lost", whole=True, fold="sum", better="lower",
        help="Datagrams lost on links that were down, or in queues in front of them.",
    ),
    Signal(
        name="bound_bit_per_s", title="Bound", unit="bit/s", path="limit.bound.bit_per_s", always=True,
        help="Goodput that neither `limit` nor `simulate` exceeds in the measurement window, except for the backlog at the end of the warm-up.",
    ),
    Signal(
        name="idle_delay_s", title="Idle delay", unit="s", path="limit.idle_delay_s", better="lower", always=True,
        help="One-way delay of a message, or of a full TCP segment, in an idle network, in seconds; the minimum over all paths. Absent for generators.",
    ),
    Signal(
        name="sender_cpu_s_per_gb", title="Sender CPU", unit="s/GB", path="real.sender_cpu_s_per_gb", better="lower",
        help="CPU seconds of the sending threads per GB of payload.",
    ),
    Signal(
        name="receiver_cpu_s_per_gb", title="Receiver CPU", unit="s/GB", path="real.receiver_cpu_s_per_gb", better="lower",
        help="CPU seconds of the receiving threads per GB of payload.",
    ),
    Signal(
        name="schedule_kept", title="Schedule kept", path="real.schedule_kept", better="higher",
        help="Fraction of its schedule that the sender kept, 0 to 1.",
    ),
    Signal(
        name="gap_mean_s", title="Gap mean", family=("Gap", "mean"), unit="s", path="real.gap_s.mean",
        help="Mean. Gaps between datagrams at the receiver.",
    ),
    Signal(
        name="gap_sd_s", title="Gap sd", family=("Gap", "sd"), unit="s", path="real.gap_s.sd",
        help="Standard deviation. Gaps between datagrams at the receiver.",
    ),
    Signal(
        name="gap_mad_s", title="Gap mad", family=("Gap", "mad"), unit="s", path="real.gap_s.mad",
        help="Median absolute deviation. Gaps between datagrams at the receiver.",
    ),
    Signal(
        name="gap_p99_s", title="Gap p99", family=("Gap", "p99"), unit="s", path="real.gap_s.p99",
        help="99th percentile. Gaps between datagrams at the receiver.",
    ),
    Signal(
        name="gap_p999_s", title="Gap p99.9", family=("Gap", "p99.9"), unit="s", path="real.gap_s.p99_9",
        help="99.9th percentile. Gaps between datagrams at the receiver.",
    ),
    Signal(
        name="max_datagrams_per_ms", title="Burst", unit="datagrams/ms", path="real.max_datagrams_per_ms", whole=True, fold="max", better="lower",
        help="Maximum number of datagrams received within a millisecond.",
    ),
    Signal(
        name="transactions_per_s", title="Transactions", unit="1/s", path="real.requests.per_s", better="higher",
        help="Answered requests per second.",
    ),
    Signal(
        name="unanswered", title="Unanswered", unit="requests", path="real.requests.unanswered", whole=True, fold="sum", better="lower",
        help="Number of requests without a response.",
    ),
    Signal(
        name="latency_min_s", title="Latency min", family=("Latency", "min"), unit="s", path="real.requests.latency_s.min", fold="min", better="lower",
        help="Minimum. Time from a request to its response.",
    ),
    Signal(
        name="latency_mean_s", title="Latency mean", family=("Latency", "mean"), unit="s", path="real.requests.latency_s.mean", better="lower",
        help="Mean. Time from a request to its response.",
    ),
    Signal(
        name="latency_p50_s", title="Latency p50", family=("Latency", "p50"), unit="s", path="real.requests.latency_s.p50", better="lower",
        help="Median. Time from a request to its response.",
    ),
    Signal(
        name="latency_p90_s", title="Latency p90", family=("Latency", "p90"), unit="s", path="real.requests.latency_s.p90", better="lower",
        help="90th percentile. Time from a request to its response.",
    ),
    Signal(
        name="latency_p99_s", title="Latency p99", family=("Latency", "p99"), unit="s", path="real.requests.latency_s.p99", better="lower",
        help="99th percentile. Time from a request to its response.",
    ),
    Signal(
        name="latency_p999_s", title="Latency p99.9", family=("Latency", "p99.9"), unit="s", path="real.requests.latency_s.p99_9", better="lower",
        help="99.9th percentile. Time from a request to its response.",
    ),
    Signal(
        name="latency_max_s", title="Latency max", family=("Latency", "max"), unit="s", path="real.requests.latency_s.max", fold="max", better="lower",
        help="Maximum. Time from a request to its response.",
    ),
    Signal(
        name="precision_share", title="Precision", path="real.precision.share", better="lower",
        help="Half width as a fraction of the mean; absent if the mean is zero.",
    ),
)
"""Signals of a flow."""

LINE: tuple[Signal, ...] = (
    Signal(
        name="utilisation", title="Utilisation", path="utilisation", summary=True,
        help="Fraction of time in which the line was busy. With `limit`: the share of the line used if every flow sends at its limit.",
    ),
    Signal(
        name="capacity_cells", title="Cell slots", unit="cells", path="cells.capacity", whole=True, fold="sum",
        help="Number of cells that the line could have carried.",
    ),
    Signal(
        name="sent_cells", title="Cells", unit="cells", path="cells.sent", whole=True, fold="sum",
        help="Number of cells sent.",
    ),
    Signal(
        name="clp1_cells", title="CLP 1 cells", unit="cells", path="cells.clp1", whole=True, fold="sum",
        help="Number of cells sent with CLP = 1.",
    ),
    Signal(
        name="efci_cells", title="EFCI cells", unit="cells", path="cells.efci", whole=True, fold="sum",
        help="Number of cells sent with the EFCI mark.",
    ),
    Signal(
        name="lost_cells", title="Lost cells", unit="cells", path="cells.lost", whole=True, fold="sum", better="lower", summary=True,
        help="Number of cells lost in the queue of the line or in the policer in front of it.",
    ),
    Signal(
        name="sent_frames", title="Frames", unit="frames", path="frames.sent", whole=True, fold="sum",
        help="Number of frames sent.",
    ),
    Signal(
        name="sent_bytes", title="Bytes", unit="B", path="frames.bytes", whole=True, fold="sum",
        help="Bytes of these frames on the line, preamble and gap included.",
    ),
    Signal(
        name="lost_frames", title="Lost frames", unit="frames", path="frames.lost", whole=True, fold="sum", better="lower", summary=True,
        help="Number of frames lost in the queue of the line or corrupted on the line.",
    ),
    Signal(
        name="longest_queue_bytes", title="Longest queue", unit="B", path="queue.longest_bytes", whole=True, fold="max", better="lower",
        help="Longest queue in bytes, as the limit of the queue counts them: of frames with their headers, without preamble and gap; of the SDUs of packets in front of a circuit; 53 for a cell.",
    ),
    Signal(
        name="longest_queue_packets", title="Longest queue in packets", unit="packets", path="queue.longest_packets", whole=True, fold="max", better="lower", summary=True,
        help="Longest queue in packets; not for cells.",
    ),
    Signal(
        name="longest_queue_cells", title="Longest queue in cells", unit="cells", path="queue.longest_cells", whole=True, fold="max", better="lower", summary=True,
        help="Longest queue in cells, the cell being sent included; only at ATM switches.",
    ),
    Signal(
        name="ecn_marked_packets", title="ECN marks", unit="packets", path="queue.ecn_marked", whole=True, fold="sum", summary=True,
        help="Number of packets that the queue discipline marked CE; not for cells. Packets that came with the mark do not count.",
    ),
    Signal(
        name="line_rate_bit_per_s", title="Line rate", unit="bit/s", path="line_rate_bit_per_s",
        help="Line rate in bit/s; only from `limit`.",
    ),
)
"""Signals of a direction of a link."""

ENGINE: tuple[Signal, ...] = (
    Signal(
        name="load", title="Load", path="load", summary=True,
        help="Share of the measurement window in which the engine was busy, 0 to 1. With `limit`: the share of its time that it works if every flow sends at its limit, without the time that a host's memory or I/O bus takes.",
    ),
)
"""Signals of an engine of a node."""
