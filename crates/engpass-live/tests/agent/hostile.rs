//! Tests garbage on the control channel and on data ports: it is dropped and counted, and the run goes on.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Duration;

use engpass_live::Ended;
use serde_json::{Value, json};

use crate::pair::{Agent, MS, Plan, RUN, number};

#[test]
fn garbage_on_the_control_channel_is_answered_with_errors() {
    let mut agent = Agent::new();
    for line in ["", "{", "\u{0}\u{1}", "[[[[", "null", "{\"id\":-1}", "{\"id\":1,\"do\":[]}", "\u{fffd}"] {
        agent.write(format!("{line}\n").as_bytes());
        let answer = agent.line();
        assert!(answer["error"]["code"].is_string(), "{line}: {answer}");
    }
    agent.write(&[0xff, 0xfe, b'\n']);
    assert_eq!(agent.line()["error"]["code"], "bad-line");
    agent.write(&[b'x'; 2 << 20]);
    agent.write(b"\n");
    assert_eq!(agent.line()["error"]["code"], "bad-line");
    agent.ok("ping", json!({}));
    // A last line without line end is not a request.
    agent.write(b"{\"id\":1,\"do\":\"ping\"}");
    assert_eq!(agent.close(), Ended::Input);
}

/// Prepares a flow, lets `strangers` use its port, then runs it. Returns the result of the listening end.
fn beside(kind: &str, peers: &Value, strangers: impl Fn(u16)) -> Option<Value> {
    let (mut listen, mut connect) = (Agent::new(), Agent::new());
    let plan = Plan::of(kind, json!({ "message_bytes": 100 }));
    let listening = crate::pair::with(&plan.listening(), &json!({ "peers": peers }));
    let plan = plan.connect(json!({ "duration_ns": 500 * MS }));
    let prepared = listen.ok("prepare", listening);
    strangers(number(&prepared["port"]) as u16);
    let connected = connect.ask("prepare", plan.connecting(&prepared["port"]));
    connected.get("ok")?;
    listen.ok("start", json!({ "run": RUN }));
    connect.ok("start", json!({ "run": RUN }));
    connect.event("done");
    std::thread::sleep(Duration::from_millis(30));
    let mut result = listen.ok("collect", json!({ "run": RUN }));
    let sent = connect.ok("collect", json!({ "run": RUN }));
    let flow = result["flows"][0].take();
    assert!(number(&flow["total_bytes"]) > 0, "{flow} {sent}");
    Some(flow)
}

#[test]
fn strangers_at_a_tcp_port_do_not_block_the_peer() {
    let flow = beside("tcp-stream", &json!(["127.0.0.1"]), |port| {
        // One stranger sends nothing and stays, one sends garbage, one is cut off, one sends more than a handshake message.
        let silent = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
        std::mem::forget(silent);
        for garbage in [&[0x55; 64][..], b"GET / HTTP/1.0\r\n\r\n", &[0; 5000]] {
            let mut stranger = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
            stranger.write_all(garbage).expect("the send buffer has room");
            // The agent may have closed the connection already.
            let _ = stranger.shutdown(std::net::Shutdown::Write);
            // The connection ends without an answer.
            let mut answer = Vec::new();
            let _ = stranger.read_to_end(&mut answer);
            assert!(answer.is_empty());
        }
    });
    let flow = flow.expect("the agent still serves the run");
    assert!(number(&flow["unfit"]["malformed"]) >= 3, "{flow}");
    assert_eq!(number(&flow["unfit"]["wrong_peer"]), 0);
}

#[test]
fn strangers_at_a_udp_port_get_no_answer() {
    let flow = beside("udp-stream", &json!(["127.0.0.1"]), |port| {
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("loopback is available");
        for garbage in [&[0x55; 64][..], b"", &[0; 100], b"engpass1"] {
            stranger.send_to(garbage, ("127.0.0.1", port)).expect("the send buffer has room");
        }
        stranger.set_read_timeout(Some(Duration::from_millis(200))).expect("the time-out is valid");
        assert!(stranger.recv(&mut [0; 2000]).is_err(), "a stranger gets no answer");
    });
    let flow = flow.expect("the agent still serves the run");
    assert_eq!(number(&flow["unfit"]["malformed"]), 4, "{flow}");
}

#[test]
fn peer_that_is_not_listed_is_rejected() {
    assert!(beside("tcp-stream", &json!(["10.1.2.3"]), |_| {}).is_none());
    assert!(beside("udp-stream", &json!(["10.1.2.3"]), |_| {}).is_none());
}
