//! Transfers of a given number of messages, as their receivers measure them (docs/model.md, "Transfers").

use engpass_model::source::Traffic;

use crate::outcome::TransferSeen;

/// Payload of a sentinel in bytes.
const SENTINEL: u64 = 4;
/// Numbers of sentinels before the first message and after the last.
const BEFORE: u64 = 1;
const BEHIND: u64 = 5;

/// Returns the payload of datagram `number` of a transfer of `count` messages of `bytes` bytes, and the number of messages before it; `None` if the transfer
/// has no such datagram.
pub(crate) fn datagram(number: u64, count: u64, bytes: u64, sentinels: bool) -> Option<(u64, u64)> {
    match sentinels {
        false => (number < count).then_some((bytes, number)),
        true if number < BEFORE => Some((SENTINEL, 0)),
        true if number < BEFORE + count => Some((bytes, number - BEFORE)),
        // The last sentinels are due with the last message.
        true => (number < BEFORE + count + BEHIND).then_some((SENTINEL, count - 1)),
    }
}

/// Returns what the receiver of a traffic measures, if that is a transfer. `payloads` has the time and the bytes of each reception, in order.
pub(crate) fn measured(traffic: &Traffic, payloads: &[(u64, u64)]) -> Option<TransferSeen> {
    let sum = |payloads: &[(u64, u64)]| payloads.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let begin = payloads.first().map(|(at, _)| *at);
    let end = payloads.last().map(|(at, _)| *at);
    match traffic {
        Traffic::UdpStream(config) if config.sentinels => {
            config.count?;
            let is_sentinel = |(_, bytes): &(u64, u64)| *bytes <= SENTINEL;
            let mut sentinels = payloads.iter().enumerate().filter(|(_, payload)| is_sentinel(payload));
            let first = sentinels.next();
            let second = sentinels.next();
            let until = second.map_or(payloads.len(), |(place, _)| place);
            let messages: Vec<_> =
                payloads[..until].iter().copied().filter(|payload| !is_sentinel(payload)).collect();
            let times = first.zip(second).map(|((_, (begin, _)), (_, (end, _)))| [*begin, *end]);
            Some(TransferSeen { bytes: sum(&messages), times })
        }
        Traffic::UdpStream(config) => {
            config.count?;
            Some(TransferSeen { bytes: sum(payloads), times: begin.zip(end).map(<[u64; 2]>::from) })
        }
        Traffic::TcpStream(config) => {
            let all = config.count? * config.message.bytes() * u64::from(config.streams);
            let (bytes, times) = (sum(payloads), begin.zip(end).map(<[u64; 2]>::from));
            Some(TransferSeen { bytes, times: times.filter(|_| bytes == all) })
        }
        _ => None,
    }
}

/// Returns true if a traffic is a transfer that has arrived: all its payload, or the sentinels that end it.
pub(crate) fn has_arrived(traffic: &Traffic, payloads: &[(u64, u64)]) -> bool {
    let seen = measured(traffic, payloads).filter(|seen| seen.times.is_some());
    let all = match traffic {
        Traffic::UdpStream(config) if config.sentinels => return seen.is_some(),
        Traffic::UdpStream(config) => config.count.map(|count| count * config.message.bytes()),
        Traffic::TcpStream(config) => {
            config.count.map(|count| count * config.message.bytes() * u64::from(config.streams))
        }
        _ => None,
    };
    all.is_some() && seen.is_some_and(|seen| Some(seen.bytes) == all)
}
