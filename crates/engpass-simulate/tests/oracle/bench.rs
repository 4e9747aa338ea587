//! Short functions to build testbeds.

use engpass_model::circuit::{Category, Circuit};
use engpass_model::host::Host;
use engpass_model::link::Link;
use engpass_model::schedule::Schedule;
use engpass_model::source::{Cbr, Live, Traffic, UdpStream};
use engpass_model::switch::{AtmSwitch, Switch};
use engpass_model::unit::{CellCount, Duration, FramedRate, Quantity, Size};
use engpass_model::wire::{Encapsulation, Medium};
use engpass_testbed::{Run, Testbed};
use indexmap::IndexMap;

/// Parses a quantity as written in a file.
pub(crate) fn q<Q: Quantity>(text: &str) -> Q {
    Q::parse(text).expect("the test's quantity is valid")
}

/// Returns an empty testbed with this duration.
pub(crate) fn bench(duration: &str) -> Testbed {
    Testbed {
        name: "bench".into(),
        description: None,
        hosts: IndexMap::new(),
        switches: IndexMap::new(),
        routers: IndexMap::new(),
        links: IndexMap::new(),
        circuits: IndexMap::new(),
        tunnels: IndexMap::new(),
        bonds: IndexMap::new(),
        traffic: IndexMap::new(),
        events: IndexMap::new(),
        run: Run { duration: q(duration), ..Run::default() },
    }
}

/// Adds hosts without CPU costs.
pub(crate) fn hosts(testbed: &mut Testbed, names: &[&str]) {
    for name in names {
        testbed.hosts.insert((*name).into(), Host::default());
    }
}

/// Adds a switch with tail drop.
pub(crate) fn switch(testbed: &mut Testbed, name: &str, buffer: u64, schedule: Schedule) {
    let discard = engpass_model::discard::Discard::Tail(Default::default());
    let config = AtmSwitch {
        output_buffer: CellCount(buffer),
        discard,
        clp_threshold: None,
        efci_threshold: None,
        schedule,
    };
    testbed.switches.insert(name.into(), Switch::Atm(config));
}

/// Adds a link with a delay of 1 us, called `A-B`.
pub(crate) fn link(testbed: &mut Testbed, ends: [&str; 2], medium: Medium) {
    let link = Link {
        ends: ends.map(String::from),
        medium,
        rate: None,
        delay: Duration(1_000_000),
        mtu: None,
        overhead: None,
        vlan: false,
        jitter: None,
        loss: None,
        reorder: None,
        queue: None,
    };
    testbed.links.insert(format!("{}-{}", ends[0], ends[1]), link);
}

/// Adds a `ubr` circuit without headers, called `A-B`, and returns it for changes.
pub(crate) fn circuit<'a>(testbed: &'a mut Testbed, from: &str, to: &str) -> &'a mut Circuit {
    let circuit = Circuit {
        from: from.into(),
        to: to.into(),
        encapsulation: Encapsulation::VcMux,
        mtu: None,
        category: Category::Ubr,
        clp: 0,
        shaping: None,
        adaptive: None,
        counts: None,
        policing: None,
    };
    let name = format!("{from}-{to}");
    testbed.circuits.insert(name.clone(), circuit);
    testbed.circuits.get_mut(&name).expect("the item was just inserted")
}

/// Adds a stream on the circuit `A-B`, called `A>B`, and returns it for changes.
pub(crate) fn udp<'a>(testbed: &'a mut Testbed, from: &str, to: &str, message: u64) -> &'a mut UdpStream {
    let stream = UdpStream {
        from: from.into(),
        to: to.into(),
        message: Size(message),
        rate: None,
        count: None,
        sentinels: false,
        circuit: Some(format!("{from}-{to}")),
        send_path: None,
        receive_path: None,
        receive_buffer: None,
        live: Live::default(),
        priority: 0,
        ttl: 64,
        start: None,
        stop: None,
    };
    let name = format!("{from}>{to}");
    testbed.traffic.insert(name.clone(), Traffic::UdpStream(stream));
    match &mut testbed.traffic[&name] {
        Traffic::UdpStream(stream) => stream,
        _ => unreachable!("the item was just inserted"),
    }
}

/// Adds a `cbr` source with an implicit circuit, called `A*B`.
pub(crate) fn cbr(testbed: &mut Testbed, from: &str, to: &str, rate: FramedRate) {
    let (counts, circuit, start, stop) = (None, None, None, None);
    let cbr = Cbr { from: from.into(), to: to.into(), rate, counts, circuit, start, stop };
    testbed.traffic.insert(format!("{from}*{to}"), Traffic::Cbr(cbr));
}
