//! Ethernet for hosts with a TAP device: takes IP packets out of and into frames, and answers ARP and neighbour discovery for all hosts of the testbed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use engpass_model::wire::packet::checksum_v6;

use super::packet::offload::Offload;

/// Length of an Ethernet header in bytes.
pub(super) const LENGTH: usize = 14;

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const ARP: [u8; 2] = [0x08, 0x06];

/// Returns the hardware address that stands for a host on other segments: locally administered (IEEE 802 section 8.4), with the host's index.
pub(super) fn hardware(host: usize) -> [u8; 6] {
    let [.., a, b, c] = (host as u32).to_be_bytes();
    [0x02, b'e', b'p', a, b, c]
}

/// A host with a TAP device.
pub(super) struct Station {
    /// Hardware address of the device.
    pub(super) device: [u8; 6],
}

/// Reaction to a received frame.
pub(super) enum Taken<'a> {
    /// Carry this packet.
    Packet(&'a [u8]),
    /// Send this frame back.
    Answer(Vec<u8>),
    /// Ignore the frame.
    Nothing,
}

impl Station {
    /// Classifies a frame that this host has sent. `find` returns the index of the host that has an address.
    pub(super) fn take<'a>(
        &self,
        frame: &'a [u8],
        offload: &mut Offload,
        find: impl Fn(IpAddr) -> Option<usize>,
    ) -> Taken<'a> {
        let Some((header, rest)) = frame.split_first_chunk::<LENGTH>() else { return Taken::Nothing };
        let answer = match [header[12], header[13]] {
            IPV4 => None,
            IPV6 if is_solicitation(rest) => Some(advertise(header, rest, find)),
            IPV6 => None,
            ARP => Some(answer_arp(rest, find)),
            _ => return Taken::Nothing,
        };
        match answer {
            Some(Some(frame)) => Taken::Answer(frame),
            Some(None) => Taken::Nothing,
            None => {
                // The checksum offset now counts from the first byte of the IP header. If it lay before that, the packet is refused later.
                if let Some((start, _)) = &mut offload.checksum {
                    *start = start.saturating_sub(LENGTH as u16);
                }
                Taken::Packet(rest)
            }
        }
    }

    /// Returns the Ethernet header for a packet from host `from` to this host.
    pub(super) fn head(&self, from: usize, packet: &[u8]) -> [u8; LENGTH] {
        let (kind, group) = match packet[0] >> 4 {
            4 => (IPV4, group_v4([packet[16], packet[17], packet[18], packet[19]])),
            _ => (IPV6, group_v6(packet)),
        };
        header(group.unwrap_or(self.device), hardware(from), kind)
    }
}

/// Returns the hardware address of an IPv4 multicast group (RFC 1112 section 6.4) or of the broadcast address; `None` for unicast.
fn group_v4(to: [u8; 4]) -> Option<[u8; 6]> {
    let [_, b, c, d] = to;
    let to = Ipv4Addr::from(to);
    if to.is_broadcast() {
        return Some([0xff; 6]);
    }
    to.is_multicast().then_some([1, 0, 0x5e, b & 0x7f, c, d])
}

/// Returns the hardware address of an IPv6 multicast group (RFC 2464 section 7); `None` for unicast.
fn group_v6(packet: &[u8]) -> Option<[u8; 6]> {
    let &[first, .., a, b, c, d] = &packet[24..40] else { return None };
    (first == 0xff).then_some([0x33, 0x33, a, b, c, d])
}

fn header(to: [u8; 6], from: [u8; 6], kind: [u8; 2]) -> [u8; LENGTH] {
    let mut header = [0; LENGTH];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(&kind);
    header
}

/// Returns the reply to an ARP request (RFC 826), if `find` knows the target.
fn answer_arp(arp: &[u8], find: impl Fn(IpAddr) -> Option<usize>) -> Option<Vec<u8>> {
    let arp: &[u8; 28] = arp.first_chunk()?;
    // Hardware type Ethernet, protocol IPv4, address lengths 6 and 4, operation request.
    if arp[..8] != [0, 1, 8, 0, 6, 4, 0, 1] {
        return None;
    }
    let target: [u8; 4] = arp[24..28].try_into().expect("four bytes");
    let own = hardware(find(Ipv4Addr::from(target).into())?);
    let asking: [u8; 6] = arp[8..14].try_into().expect("six bytes");
    let mut frame = header(asking, own, ARP).to_vec();
    frame.extend([0, 1, 8, 0, 6, 4, 0, 2]);
    frame.extend(own);
    frame.extend(target);
    frame.extend(&arp[8..18]);
    Some(frame)
}

const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

fn is_solicitation(packet: &[u8]) -> bool {
    packet.len() >= 64 && packet[6] == ICMPV6 && packet[40] == SOLICITATION
}

/// Returns the advertisement for a neighbour solicitation (RFC 4861 section 4.4), if `find` knows the target. Duplicate address detection gets no answer.
fn advertise(
    asking: &[u8; LENGTH],
    packet: &[u8],
    find: impl Fn(IpAddr) -> Option<usize>,
) -> Option<Vec<u8>> {
    let address = |at: usize| <[u8; 16]>::try_from(&packet[at..at + 16]).expect("sixteen bytes");
    let (source, target) = (address(8), address(48));
    if Ipv6Addr::from(source).is_unspecified() {
        return None;
    }
    let own = hardware(find(Ipv6Addr::from(target).into())?);
    let mut message = vec![ADVERTISEMENT, 0, 0, 0];
    // Flags: solicited and override.
    message.extend([0x60, 0, 0, 0]);
    message.extend(target);
    // Option: target link-layer address.
    message.extend([2, 1]);
    message.extend(own);
    let length = message.len() as u16;
    let checksum = checksum_v6(&target, &source, ICMPV6, &message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let to: [u8; 6] = asking[6..12].try_into().expect("six bytes");
    let mut frame = header(to, own, IPV6).to_vec();
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(length.to_be_bytes());
    frame.extend([ICMPV6, 255]);
    frame.extend(target);
    frame.extend(source);
    frame.extend(message);
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn find(address: IpAddr) -> Option<usize> {
        let known = ["10.0.0.2", "fd00::2"].map(|text| text.parse::<IpAddr>().expect("the address is valid"));
        known.contains(&address).then_some(300)
    }

    fn take(frame: &[u8]) -> Option<Vec<u8>> {
        match (Station { device: DEVICE }).take(frame, &mut Offload::default(), find) {
            Taken::Answer(frame) => Some(frame),
            _ => None,
        }
    }

    fn request(target: [u8; 4]) -> Vec<u8> {
        let mut frame = header([0xff; 6], DEVICE, ARP).to_vec();
        frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
        frame.extend(DEVICE);
        frame.extend([10, 0, 0, 1]);
        frame.extend([0; 6]);
        frame.extend(target);
        frame
    }

    #[test]
    fn arp_requests_for_known_hosts_are_answered() {
        let frame = take(&request([10, 0, 0, 2])).expect("the request is answered");
        assert_eq!(frame[..6], DEVICE);
        assert_eq!(frame[6..12], [2, b'e', b'p', 0, 1, 44]);
        assert_eq!(frame[20..28], [0, 2, 2, b'e', b'p', 0, 1, 44]);
        assert_eq!(frame[28..32], [10, 0, 0, 2]);
        assert_eq!(frame[32..38], DEVICE);
        assert_eq!(frame[38..42], [10, 0, 0, 1]);
        assert_eq!(take(&request([10, 0, 0, 3])), None);
        let whole = request([10, 0, 0, 2]);
        (0..whole.len()).for_each(|length| assert_eq!(take(&whole[..length]), None));
    }

    #[test]
    fn neighbor_solicitations_are_answered_with_a_valid_checksum() {
        let (asking, target) = (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), "fd00::2".parse::<Ipv6Addr>());
        let target = target.expect("the address is valid");
        let solicit = |source: Ipv6Addr, target: Ipv6Addr| {
            let mut frame = header([0x33, 0x33, 0xff, 0, 0, 2], DEVICE, IPV6).to_vec();
            frame.extend([0x60, 0, 0, 0, 0, 24, ICMPV6, 255]);
            frame.extend(source.octets());
            frame.extend(target.octets());
            frame.extend([SOLICITATION, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend(target.octets());
            frame
        };
        let frame = take(&solicit(asking, target)).expect("the request is answered");
        assert_eq!((&frame[..6], frame[54]), (&DEVICE[..], ADVERTISEMENT));
        assert_eq!(frame[38..54], asking.octets());
        // A sum over all covered bytes, checksum included, is all ones.
        let sum: u32 = frame[22..54].chunks(2).chain(frame[54..].chunks(2)).map(word).sum::<u32>()
            + u32::from(ICMPV6)
            + (frame.len() - 54) as u32;
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(take(&solicit(asking, asking)), None);
        assert_eq!(
            take(&solicit(Ipv6Addr::UNSPECIFIED, target)),
            None,
            "duplicate address detection is not answered"
        );
    }

    fn word(bytes: &[u8]) -> u32 {
        u32::from(bytes[0]) << 8 | u32::from(bytes[1])
    }

    #[test]
    fn station_strips_and_writes_ethernet_headers() {
        let mut frame = header(hardware(1), DEVICE, IPV4).to_vec();
        frame.extend([0x45, 0, 0, 20]);
        let mut offload = Offload { checksum: Some((34, 6)), ..Offload::default() };
        let taken = Station { device: DEVICE }.take(&frame, &mut offload, find);
        assert!(matches!(taken, Taken::Packet(packet) if packet == &frame[LENGTH..]));
        assert_eq!(offload.checksum, Some((20, 6)));
        let mut packet = [0x60; 40];
        assert_eq!(Station { device: DEVICE }.head(1, &packet), header(DEVICE, hardware(1), IPV6));
        packet[24] = 0xff;
        let group = [0x33, 0x33, 0x60, 0x60, 0x60, 0x60];
        assert_eq!(Station { device: DEVICE }.head(1, &packet), header(group, hardware(1), IPV6));
    }

    #[test]
    fn multicast_addresses_map_to_multicast_macs() {
        assert_eq!(group_v4([239, 255, 0, 1]), Some([1, 0, 0x5e, 0x7f, 0, 1]));
        assert_eq!((group_v4([255; 4]), group_v4([10, 0, 0, 1])), (Some([0xff; 6]), None));
    }
}
