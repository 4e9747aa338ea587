//! The probe without Python: `probe [quick] [DIRECTORY]` prints its report as JSON.

use std::path::Path;

use engpass_live::probe::Probe;

fn main() {
    let mut given: Vec<String> = std::env::args().skip(1).collect();
    let quick = given.first().is_some_and(|word| word == "quick");
    if quick {
        given.remove(0);
    }
    let mut probe = Probe::new(quick, Path::new(given.first().map_or(".", String::as_str)));
    for (step, name) in probe.steps().iter().enumerate() {
        eprintln!("{name}");
        probe.run(step);
    }
    let report = serde_json::to_string_pretty(&probe.report()).expect("a report is plain data");
    println!("{report}");
}
