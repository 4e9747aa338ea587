//! Parses tables of `/proc/net`. Pure; malformed parts of a table are left out.

use serde_json::{Map, Value, json};

/// Parses pairs of lines, the first with names and the second with values, as in `snmp` and `netstat`.
pub(super) fn headed(text: &str) -> Map<String, Value> {
    let lines: Vec<&str> = text.lines().collect();
    let pair = |pair: &[&str]| {
        let (group, names) = pair[0].split_once(':')?;
        let (same, values) = pair[1].split_once(':')?;
        let counters = names.split_whitespace().zip(values.split_whitespace());
        let counters =
            counters.filter_map(|(name, value)| Some((name.to_owned(), json!(value.parse::<i64>().ok()?))));
        (group == same).then(|| (group.to_owned(), Value::Object(counters.collect())))
    };
    lines.chunks_exact(2).filter_map(pair).collect()
}

/// Parses lines of name and value, as in `snmp6`. Keeps names that start with `prefix` and removes it.
pub(super) fn prefixed(text: &str, prefix: &str) -> Value {
    let counter = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        Some((name.strip_prefix(prefix)?.to_owned(), json!(value.trim().parse::<i64>().ok()?)))
    };
    Value::Object(text.lines().filter_map(counter).collect())
}

/// Parses `softnet_stat`: a line of hexadecimal numbers per online core.
pub(super) fn softnet(text: &str) -> Value {
    let line = |(row, line): (usize, &str)| {
        let numbers: Option<Vec<u64>> =
            line.split_whitespace().map(|word| u64::from_str_radix(word, 16).ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.len() >= 3)?;
        // Since Linux 5.10 the 13th number is the core; before, the lines are in the order of the cores.
        let core = numbers.get(12).copied().unwrap_or(row as u64);
        Some(json!({
            "core": core,
            "processed": numbers[0],
            "dropped": numbers[1],
            "squeezed": numbers[2],
            "steered": numbers.get(9),
            "flow_limited": numbers.get(10),
        }))
    };
    Value::Array(text.lines().enumerate().filter_map(line).collect())
}

/// Parses `/proc/net/dev`: two header lines, then a line per interface.
pub(super) fn interfaces(text: &str) -> Map<String, Value> {
    const NAMES: [&str; 16] = [
        "rx_bytes",
        "rx_packets",
        "rx_errors",
        "rx_dropped",
        "rx_fifo_errors",
        "rx_frame_errors",
        "rx_compressed",
        "rx_multicast",
        "tx_bytes",
        "tx_packets",
        "tx_errors",
        "tx_dropped",
        "tx_fifo_errors",
        "tx_collisions",
        "tx_carrier_errors",
        "tx_compressed",
    ];
    let line = |line: &str| {
        let (name, values) = line.split_once(':')?;
        let values: Option<Vec<u64>> = values.split_whitespace().map(|word| word.parse().ok()).collect();
        let values = values.filter(|values| values.len() == NAMES.len())?;
        let counters = NAMES.iter().zip(values).map(|(name, value)| ((*name).to_owned(), json!(value)));
        Some((name.trim().to_owned(), Value::Object(counters.collect())))
    };
    text.lines().skip(2).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_tables_are_parsed() {
        let snmp = "Tcp: RtoMin MaxConn\nTcp: 200 -1\nUdp: NoPorts RcvbufErrors\nUdp: 3 7\n";
        let groups = headed(snmp);
        assert_eq!((&groups["Tcp"]["MaxConn"], &groups["Udp"]["RcvbufErrors"]), (&json!(-1), &json!(7)));
        assert_eq!(prefixed("Ip6InReceives \t 4\nUdp6NoPorts    5\n", "Udp6"), json!({"NoPorts": 5}));
        let line = "0000000a 00000002 00000003 0 0 0 0 0 0 00000004 00000005 0 00000001 0 0";
        let softnet = softnet(line);
        let core = &softnet[0];
        assert_eq!((&core["core"], &core["processed"], &core["dropped"]), (&json!(1), &json!(10), &json!(2)));
        assert_eq!((&core["squeezed"], &core["steered"]), (&json!(3), &json!(4)));
        let dev = "Inter-| Receive\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        let all = interfaces(dev);
        assert_eq!((&all["eth0"]["rx_dropped"], &all["eth0"]["tx_dropped"]), (&json!(4), &json!(12)));
    }

    #[test]
    fn malformed_kernel_tables_are_ignored() {
        for text in ["", "\n\n", "a", "Tcp: A\nUdp: 1", "a: b\na: c", ":\n:", "x: 1 2\nx:"] {
            assert!(
                headed(text).values().all(|group| group.as_object().is_some_and(Map::is_empty)),
                "{text}"
            );
            assert!(interfaces(text).is_empty(), "{text}");
            assert!(softnet(text).as_array().is_some_and(Vec::is_empty), "{text}");
        }
    }

    #[test]
    fn kernel_tables_of_this_host_have_the_needed_fields() {
        let text = |path: &str| std::fs::read_to_string(path).expect("Linux has this file");
        let snmp = headed(&text("/proc/net/snmp"));
        assert!(snmp["Udp"]["RcvbufErrors"].is_i64() && snmp["Tcp"]["RetransSegs"].is_i64());
        assert!(interfaces(&text("/proc/net/dev"))["lo"]["rx_bytes"].is_u64());
        assert!(softnet(&text("/proc/net/softnet_stat"))[0]["processed"].is_u64());
    }
}
