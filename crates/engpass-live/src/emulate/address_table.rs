//! Finds the path of a packet by its destination address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::network::Way;

/// Hosts by address, and paths by pair of hosts. Hosts are numbered as in the testbed.
pub(super) struct AddressTable {
    hosts: BTreeMap<IpAddr, usize>,
    ways: Vec<Option<u32>>,
    /// Paths to multicast groups, by sender and group address. The key without an address stands for all hosts on the segment: for broadcast and other groups.
    groups: BTreeMap<(usize, Option<IpAddr>), u32>,
    count: usize,
}

/// Result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Way(u32),
    /// Broadcast, or a multicast group without known members, such as those of neighbour discovery and name services.
    Group,
    /// No host has the address.
    Unknown,
    /// No path leads from the sender to this host.
    NotJoined,
}

impl AddressTable {
    pub(super) fn new(hosts: BTreeMap<IpAddr, usize>, ways: &[Way], count: usize) -> Self {
        let mut table = vec![None; count * count];
        let mut groups = BTreeMap::new();
        for (number, way) in ways.iter().enumerate() {
            let number = number as u32;
            match way.group {
                Some(group) => drop(groups.insert((way.from, group.address), number)),
                None => table[way.from * count + way.to] = Some(number),
            }
        }
        Self { hosts, ways: table, groups, count }
    }

    #[inline]
    pub(super) fn find(&self, from: usize, to: IpAddr) -> Found {
        let group = match to {
            IpAddr::V4(to) => to.is_multicast() || to.is_broadcast(),
            IpAddr::V6(to) => to.is_multicast(),
        };
        if group {
            let known = self.groups.get(&(from, Some(to))).or_else(|| self.groups.get(&(from, None)));
            return known.map_or(Found::Group, |way| Found::Way(*way));
        }
        let Some(&host) = self.hosts.get(&to) else { return Found::Unknown };
        self.ways[from * self.count + host].map_or(Found::NotJoined, Found::Way)
    }

    /// Returns the host that has an address.
    pub(super) fn host(&self, address: IpAddr) -> Option<usize> {
        self.hosts.get(&address).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::network::Group;
    use super::*;

    #[test]
    fn address_table_finds_a_path_or_a_discard_reason() {
        let address = |text: &str| text.parse::<IpAddr>().expect("the address is valid");
        let hosts = [("10.0.0.1", 0), ("10.0.0.2", 1), ("fd00::2", 1), ("10.0.0.3", 2)];
        let hosts = hosts.map(|(text, host)| (address(text), host)).into_iter().collect();
        let way =
            |from, to| Way { from, to, name: String::new(), mtu: 1500, longest: 1500, hops: 0, group: None };
        let directory = AddressTable::new(hosts, &[way(0, 1), way(1, 0)], 3);
        let find = |from, to| directory.find(from, address(to));
        assert_eq!((find(0, "10.0.0.2"), find(0, "fd00::2")), (Found::Way(0), Found::Way(0)));
        assert_eq!(find(1, "10.0.0.1"), Found::Way(1));
        assert_eq!((find(0, "10.0.0.3"), find(0, "10.0.0.1")), (Found::NotJoined, Found::NotJoined));
        assert_eq!((find(0, "10.0.0.9"), find(0, "fd00::9")), (Found::Unknown, Found::Unknown));
        assert_eq!((find(0, "224.0.0.1"), find(0, "255.255.255.255")), (Found::Group, Found::Group));
        assert_eq!(find(0, "ff02::2"), Found::Group);
    }

    #[test]
    fn address_table_finds_group_paths_or_the_segment() {
        let address = |text: &str| text.parse::<IpAddr>().expect("the address is valid");
        let group = |from, address| Way {
            from,
            to: from,
            name: String::new(),
            mtu: 1500,
            longest: 1500,
            hops: 0,
            group: Some(Group { address, members: 2 }),
        };
        let ways = [group(0, Some(address("239.1.1.1"))), group(0, None), group(1, Some(address("ff05::1")))];
        let directory = AddressTable::new(BTreeMap::new(), &ways, 2);
        let find = |from, to| directory.find(from, address(to));
        assert_eq!((find(0, "239.1.1.1"), find(0, "239.1.1.2")), (Found::Way(0), Found::Way(1)));
        assert_eq!((find(0, "255.255.255.255"), find(0, "ff02::fb")), (Found::Way(1), Found::Way(1)));
        assert_eq!((find(1, "ff05::1"), find(1, "239.1.1.1")), (Found::Way(2), Found::Group));
    }
}
