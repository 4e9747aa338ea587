//! An agent behind a socket pair, and runs with two of them.

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use engpass_live::{Ended, Limits, run};
use serde_json::{Value, json};

/// The token of a run. All tests may use it, because each has its own agents.
pub(crate) const RUN: &str = "00112233445566778899aabbccddeeff";
/// A millisecond in ns.
pub(crate) const MS: u64 = 1_000_000;

/// An agent and the channel to it.
pub(crate) struct Agent {
    to: UnixStream,
    from: BufReader<UnixStream>,
    thread: JoinHandle<Ended>,
    next: u64,
    /// Its `hello`.
    pub(crate) hello: Value,
    /// Events received since.
    pub(crate) events: Vec<Value>,
}

impl Agent {
    /// Starts an agent with the limits of its host's owner.
    pub(crate) fn with(limits: Limits, silence: Duration) -> Self {
        let (to, input) = UnixStream::pair().expect("a socket pair opens");
        let output = input.try_clone().expect("the descriptor is duplicated");
        let thread = std::thread::spawn(move || run(input, output, limits, silence));
        let from = to.try_clone().expect("the descriptor is duplicated");
        from.set_read_timeout(Some(Duration::from_secs(60))).expect("the time-out is valid");
        let from = BufReader::new(from);
        let mut agent = Self { to, from, thread, next: 0, hello: Value::Null, events: Vec::new() };
        agent.hello = agent.line();
        agent
    }

    /// Starts an agent without limits.
    pub(crate) fn new() -> Self {
        Self::with(Limits::default(), Duration::from_secs(60))
    }

    /// Reads the next line of the agent.
    pub(crate) fn line(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the agent sends a line within a minute");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Writes raw bytes to the agent.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).expect("the agent reads its input");
    }

    /// Sends a request and returns the whole answer.
    pub(crate) fn ask(&mut self, what: &str, fields: Value) -> Value {
        self.next += 1;
        let mut request = json!({ "id": self.next, "do": what });
        let Value::Object(fields) = fields else { panic!("the fields are a JSON object") };
        request.as_object_mut().expect("the request is a JSON object").extend(fields);
        self.write(format!("{request}\n").as_bytes());
        let answer = self.answer();
        assert_eq!(answer["id"], self.next, "answers come in order");
        answer
    }

    /// Returns the next answer and keeps the events before it.
    pub(crate) fn answer(&mut self) -> Value {
        loop {
            let line = self.line();
            if line.get("event").is_none() {
                return line;
            }
            self.events.push(line);
        }
    }

    /// Sends a request that must succeed. Returns the content of `ok`.
    pub(crate) fn ok(&mut self, what: &str, fields: Value) -> Value {
        let mut answer = self.ask(what, fields);
        assert!(answer.get("ok").is_some(), "{what}: {answer}");
        answer["ok"].take()
    }

    /// Sends a request that must fail. Returns the error code.
    pub(crate) fn refused(&mut self, what: &str, fields: Value) -> String {
        let answer = self.ask(what, fields);
        let error = &answer["error"];
        assert!(!error["cause"].as_str().unwrap_or_default().is_empty(), "{what}: {answer}");
        assert!(!error["help"].as_str().unwrap_or_default().is_empty(), "{what}: {answer}");
        error["code"].as_str().expect("the error has a code").to_owned()
    }

    /// Waits for an event of this kind.
    pub(crate) fn event(&mut self, kind: &str) -> Value {
        loop {
            if let Some(at) = self.events.iter().position(|event| event["event"] == kind) {
                return self.events.remove(at);
            }
            let line = self.line();
            self.events.push(line);
        }
    }

    /// Closes the agent's input. Returns how the agent ended.
    pub(crate) fn close(self) -> Ended {
        self.to.shutdown(Shutdown::Write).expect("the socket is open");
        self.thread.join().expect("the agent does not panic")
    }

    /// Waits until the agent ends by itself.
    pub(crate) fn wait(self) -> Ended {
        self.thread.join().expect("the agent does not panic")
    }

    /// Closes the agent's output too, which it notices when it writes.
    pub(crate) fn deafen(self) -> Ended {
        self.to.shutdown(Shutdown::Both).expect("the socket is open");
        self.thread.join().expect("the agent does not panic")
    }
}

/// Returns `base` with `fields` added or replaced.
pub(crate) fn with(base: &Value, fields: &Value) -> Value {
    let mut all = base.clone();
    let more = fields.as_object().expect("the fields are a JSON object").clone();
    all.as_object_mut().expect("the fields are a JSON object").extend(more);
    all
}

/// Fields of the `prepare` requests: for both ends, and for each end alone.
pub(crate) struct Plan {
    pub(crate) both: Value,
    pub(crate) listen: Value,
    pub(crate) connect: Value,
}

impl Plan {
    pub(crate) fn of(kind: &str, both: Value) -> Self {
        let base = json!({ "run": RUN, "flow": "f", "kind": kind });
        Self { both: with(&base, &both), listen: json!({}), connect: json!({}) }
    }

    pub(crate) fn listen(mut self, fields: Value) -> Self {
        self.listen = fields;
        self
    }

    pub(crate) fn connect(mut self, fields: Value) -> Self {
        self.connect = fields;
        self
    }

    /// Returns the request that prepares the listening end.
    pub(crate) fn listening(&self) -> Value {
        let ends = json!({ "side": "listen", "address": "127.0.0.1", "peers": ["127.0.0.1"] });
        with(&with(&self.both, &ends), &self.listen)
    }

    /// Returns the request that prepares the connecting end.
    pub(crate) fn connecting(&self, port: &Value) -> Value {
        let ends = json!({ "side": "connect", "to": [format!("127.0.0.1:{port}")] });
        with(&with(&self.both, &ends), &self.connect)
    }
}

/// Results of both ends of a run.
pub(crate) struct Results {
    /// The listening end's flow.
    pub(crate) listen: Value,
    /// The connecting end's flow.
    pub(crate) connect: Value,
}

/// Starts one flow between two agents.
pub(crate) fn start_pair(listen: &mut Agent, connect: &mut Agent, plan: &Plan) {
    let prepared = listen.ok("prepare", plan.listening());
    connect.ok("prepare", plan.connecting(&prepared["port"]));
    listen.ok("start", json!({ "run": RUN }));
    connect.ok("start", json!({ "run": RUN }));
}

/// Runs one flow between two agents.
pub(crate) fn run_pair(listen: &mut Agent, connect: &mut Agent, plan: &Plan) -> Results {
    start_pair(listen, connect, plan);
    let run = json!({ "run": RUN });
    let asker = plan.both["kind"] == "request-response";
    let turned = plan.connect["role"] == "receive";
    if turned && !asker {
        listen.event("done");
    } else {
        connect.event("done");
    }
    std::thread::sleep(Duration::from_millis(30));
    let mut results = [connect, listen].map(|agent| agent.ok("collect", run.clone()));
    let [connect, listen] = results.each_mut().map(|result| result["flows"][0].take());
    Results { listen, connect }
}

/// Runs one flow between two new agents.
pub(crate) fn measure(plan: &Plan) -> Results {
    let (mut listen, mut connect) = (Agent::new(), Agent::new());
    let results = run_pair(&mut listen, &mut connect, plan);
    assert_eq!((listen.close(), connect.close()), (Ended::Input, Ended::Input));
    results
}

/// Runs one flow with a schedule between two new agents. Repeats while the sender is late by `late` ns or more, at most five times; then prints a note and
/// returns `None`. A sender that is late by 100 ms leaves messages out, and a busy machine can stall for longer.
pub(crate) fn measure_in_time(plan: &Plan, late: u64) -> Option<Results> {
    for _ in 0..5 {
        let results = measure(plan);
        if number(&results.connect["late"]["max_ns"]) < late {
            return Some(results);
        }
    }
    println!("skipped: this machine stood still for {} ms in each of five runs", late / MS);
    None
}

/// Returns a count in a result.
pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}
