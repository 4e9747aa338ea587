//! The whole probe of this host, quick: what it finds, and that nothing of it stays.

use std::fs;
use std::path::Path;

use engpass_live::probe::Probe;
use engpass_testbed::{Source, load};

#[test]
fn a_host_is_probed_and_its_table_loads() {
    let folder = std::env::temp_dir().join(format!("engpass-probe-test-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let before = [count("/proc/self/fd"), count("/proc/self/task")];
    let mut probe = Probe::new(true, &folder);
    for step in 0..probe.steps().len() {
        probe.run(step);
    }
    let report = probe.report();
    assert_eq!(
        [count("/proc/self/fd"), count("/proc/self/task")],
        before,
        "descriptors and threads end with their step"
    );
    fs::remove_dir(&folder).expect("the probe leaves no file");

    let bandwidths = report.bandwidths.expect("memory was measured");
    assert!(bandwidths.memory_all >= bandwidths.copy && bandwidths.copy > 0.0, "{bandwidths:?}");
    let streams = report.sockets.measured().expect("there is a loopback interface");
    assert!(report.packets.measured().is_some() && report.kernel.measured().is_some());
    assert_eq!(report.verdicts.len(), streams.len() + 2);
    assert!(!report.again.is_empty() && report.timer.is_some());
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

fn count(folder: &str) -> usize {
    fs::read_dir(Path::new(folder)).unwrap().count()
}
