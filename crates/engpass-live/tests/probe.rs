//! Tests a quick probe of this host: what it finds, and that it leaves nothing behind.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use engpass_live::probe::Probe;
use engpass_testbed::{Source, load};

#[test]
fn probe_measures_this_host_and_its_table_loads() {
    let folder = std::env::temp_dir().join(format!("engpass-probe-test-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let before = held();
    let mut probe = Probe::new(true, &folder);
    for step in 0..probe.steps().len() {
        probe.run(step);
    }
    let report = probe.report();
    // The kernel may still be removing the last thread after it has ended.
    for _ in 0..200 {
        if held() == before {
            break;
        }
        sleep(Duration::from_millis(10));
    }
    assert_eq!(held(), before, "a probe step leaves no descriptor or thread");
    fs::remove_dir(&folder).expect("the probe leaves no file");

    let bandwidths = report.bandwidths.expect("memory was measured");
    assert!(bandwidths.memory_all >= bandwidths.copy && bandwidths.copy > 0.0, "{bandwidths:?}");
    let streams = report.sockets.measured().expect("the host has a loopback interface");
    assert!(report.packets.measured().is_some() && report.kernel.measured().is_some());
    assert!(report.verdicts.len() >= streams.len() + 2, "{:?}", report.verdicts);
    assert!(report.others.is_some_and(|share| (0.0..=1.0).contains(&share)), "{:?}", report.others);
    assert!(!report.over_buses.is_empty());
    assert!(report.basis.len() == 6 && report.timer.is_some());
    for name in ["probed", "a b"] {
        let text = format!(
            "{}\n[host.other]\n[link.l]\nends = [{name:?}, \"other\"]\nmedium = \"ethernet-10g\"\n\
             [traffic.t]\nkind = \"udp-stream\"\nfrom = {name:?}\nto = \"other\"\nmessage = \"8 kB\"\n",
            report.table(name)
        );
        let source = Source { name: "probed.toml".to_owned(), text };
        let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
        let point = campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false)));
        assert!(point.testbed.hosts[name].memory.is_some());
    }
    let json = serde_json::to_value(&report).unwrap();
    assert!(json["memory"]["measured"].is_array() && json["gpus"].is_object(), "{json}");
}

/// Returns the numbers of file descriptors and threads of this process.
fn held() -> [usize; 2] {
    [count("/proc/self/fd"), count("/proc/self/task")]
}

fn count(folder: &str) -> usize {
    fs::read_dir(Path::new(folder)).unwrap().count()
}
