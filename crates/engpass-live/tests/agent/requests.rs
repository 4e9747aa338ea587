//! Requests of the controller.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// Returns a request as the controller completes it.
fn line(part: &Value, own: Value) -> Vec<u8> {
    let mut line =
        json!({ "id": 1, "do": "prepare", "run": "0123456789abcdef0123456789abcdef", "flow": "f" });
    for fields in [part, &own] {
        let fields = fields.as_object().unwrap().iter().map(|(key, value)| (key.clone(), value.clone()));
        line.as_object_mut().unwrap().extend(fields);
    }
    line.to_string().into_bytes()
}

#[test]
fn agent_understands_the_requests_of_recorded_points() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engpass-measured/tests/recorded");
    let mut requests = 0;
    for file in fs::read_dir(directory).unwrap() {
        let recorded: Value = serde_json::from_slice(&fs::read(file.unwrap().path()).unwrap()).unwrap();
        for flow in recorded["requests"]["flows"].as_array().unwrap() {
            let send = line(&flow["send"], json!({ "side": "connect", "to": ["192.0.2.1:9"] }));
            let receive = line(&flow["receive"], json!({ "side": "listen", "peers": ["192.0.2.1"] }));
            assert!(engpass_live::parse(&send) && engpass_live::parse(&receive), "{flow}");
            requests += 2;
        }
    }
    assert!(requests > 20, "{requests}");
}
