//! The state behind the requests: one run at a time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engpass_model::source::agent_limits::MOST_FLOWS;
use serde_json::{Value, json};

use super::request::{Of, Request, Start};
use super::{Output, hello};
use crate::flow::{Flow, Prepare, Spec, Tell, Timer};
use crate::kernel_counters;
use crate::limits::Limits;
use crate::protocol_error::{Code, ProtocolError, Result};
use crate::sys::clock;
use crate::time::{MILLISECOND, SECOND};

/// Duration of the timer's calibration for `hello`, in ns.
const CALIBRATION: u64 = 40 * MILLISECOND;
/// Time in which threads must end after a stop, in ns.
const ENDING: u64 = 2 * SECOND;
/// Time in ns beyond a flow's end in which it may finish by itself; if its end is unknown, the longest time in which nothing arrives.
const BEYOND: u64 = 5 * SECOND;

/// A run and its flows.
struct Run {
    token: String,
    flows: Vec<Flow>,
    before: Option<Value>,
}

/// State of the agent.
pub(super) struct Session {
    output: Output,
    limits: Limits,
    gone: Arc<AtomicBool>,
    silence: Duration,
    timer: Arc<Timer>,
    run: Option<Run>,
    silent: Silent,
}

/// Peers that did not answer when a flow of this run was connected. Further flows to them fail at once.
#[derive(Default)]
struct Silent {
    token: String,
    peers: Vec<(IpAddr, ProtocolError)>,
}

impl Silent {
    /// Fails if a peer of the flow is known not to answer.
    fn check(&mut self, prepare: &Prepare) -> Result<()> {
        if self.token != prepare.run {
            *self = Self { token: prepare.run.clone(), peers: Vec::new() };
        }
        let asked = |peer: IpAddr| prepare.to.iter().any(|to| to.ip() == peer);
        let known = self.peers.iter().find(|(peer, _)| asked(*peer));
        known.map_or(Ok(()), |(_, problem)| Err(problem.clone()))
    }

    /// Remembers the peer of a flow that could not be connected, if the flow has only one peer and that did not answer.
    fn note(&mut self, to: &[SocketAddr], problem: &ProtocolError) {
        if let ([peer], Code::NoAnswer | Code::Unreachable) = (to, problem.code) {
            self.peers.push((peer.ip(), problem.clone()));
        }
    }
}

/// Returns the answer to `ping`.
pub(super) fn pong(id: &Value) -> Value {
    json!({ "id": id, "ok": { "now_ns": clock::now(), "realtime_ns": clock::realtime() } })
}

fn unknown_flow(flow: &str) -> ProtocolError {
    ProtocolError::new(
        Code::UnknownFlow,
        format!("the run has no flow `{flow}` at this host"),
        "prepare it first",
    )
}

impl Session {
    pub(super) fn new(output: Output, limits: Limits, gone: Arc<AtomicBool>, silence: Duration) -> Self {
        let timer = Arc::new(Timer::calibrate(CALIBRATION));
        Self { output, limits, gone, silence, timer, run: None, silent: Silent::default() }
    }

    /// Sends `hello`.
    pub(super) fn greet(&self) {
        self.output.line(&hello::event(&self.timer, &self.limits, self.silence));
    }

    /// Stops all traffic after the controller has disconnected.
    pub(super) fn end(self) {
        let flows = self.run.map(|run| run.flows).unwrap_or_default();
        flows.iter().for_each(Flow::stop);
        let due = clock::now() + SECOND / 2;
        for flow in &flows {
            // Threads that take longer end together with the process.
            let _ = flow.wait(due, &|| false);
        }
    }

    /// Serves one request and sends the answer.
    pub(super) fn answer(&mut self, id: &Value, request: Result<Request>) {
        let answer = match request.and_then(|request| self.serve(request)) {
            Ok(ok) => json!({ "id": id, "ok": ok }),
            Err(problem) => json!({ "id": id, "error": problem }),
        };
        self.output.line(&answer);
    }

    fn serve(&mut self, request: Request) -> Result<Value> {
        match request {
            Request::Prepare(prepare) => self.prepare(*prepare),
            Request::Start(start) => self.start(&start),
            Request::Stop(of) => self.stop(&of),
            Request::Collect(of) => self.collect(&of),
            Request::Drop(of) => self.drop_run(&of),
            Request::Join(of) => self.flow(&of)?.join(),
            Request::Leave(of) => self.flow(&of)?.leave(),
            Request::Ping => unreachable!("the reader answers `ping`"),
            Request::Calibrate(asked) => {
                self.timer = Arc::new(Timer::calibrate(asked.duration_ns.min(10 * SECOND)));
                Ok(self.timer.to_json())
            }
            Request::Readings => Ok(kernel_counters::read()),
        }
    }

    fn run_of(&mut self, token: &str) -> Result<&mut Run> {
        self.run.as_mut().filter(|run| run.token == token).ok_or_else(|| {
            ProtocolError::new(
                Code::UnknownRun,
                "this agent has no run with this token",
                "prepare its flows first",
            )
        })
    }

    fn flow(&mut self, of: &Of) -> Result<&mut Flow> {
        let name = of.flow.as_deref().unwrap_or_default();
        let run = self.run_of(&of.run)?;
        run.flows.iter_mut().find(|flow| flow.spec.asked.flow == name).ok_or_else(|| unknown_flow(name))
    }

    fn prepare(&mut self, prepare: Prepare) -> Result<Value> {
        if let Some(run) = &self.run {
            if run.token != prepare.run {
                let help = "`collect` or `drop` it first";
                return Err(ProtocolError::new(
                    Code::Busy,
                    "the agent has already prepared another run",
                    help,
                ));
            }
            if run.before.is_some() {
                let help = "prepare all flows before `start`";
                return Err(ProtocolError::new(Code::WrongOrder, "the run has already started", help));
            }
            let twice = run
                .flows
                .iter()
                .any(|flow| flow.spec.asked.flow == prepare.flow && flow.spec.asked.side == prepare.side);
            if twice {
                return Err(ProtocolError::field(
                    "flow",
                    "this side of the flow is already prepared",
                    "use another flow name",
                ));
            }
            if run.flows.len() == MOST_FLOWS {
                return Err(ProtocolError::new(
                    Code::Limit,
                    format!("a run has at most {MOST_FLOWS} flows at a host"),
                    "use several `streams` of one flow",
                ));
            }
        }
        let spec = Spec::new(prepare, &self.limits)?;
        self.silent.check(&spec.asked)?;
        let (token, to) = (spec.asked.run.clone(), spec.asked.to.clone());
        let flow = Flow::prepare(spec, &self.timer).inspect_err(|problem| self.silent.note(&to, problem))?;
        let answer = flow.prepared();
        let run = self.run.get_or_insert_with(|| Run { token, flows: Vec::new(), before: None });
        run.flows.push(flow);
        Ok(answer)
    }

    fn start(&mut self, start: &Start) -> Result<Value> {
        let output = self.output.clone();
        let run = self.run_of(&start.run)?;
        if run.before.is_some() {
            return Err(ProtocolError::new(Code::WrongOrder, "the run has already started", "`collect` it"));
        }
        for flow in &run.flows {
            flow.is_complete()?;
        }
        run.before = Some(kernel_counters::read());
        let tell: Tell = Arc::new(move |event| output.line(&event));
        let at = clock::now() + start.after_ns.min(3600 * SECOND);
        let flows = run.flows.iter_mut().map(|flow| flow.start(at, &tell)).collect::<Result<Vec<_>>>()?;
        Ok(json!({ "started_ns": at, "flows": flows }))
    }

    fn stop(&mut self, of: &Of) -> Result<Value> {
        let gone = Arc::clone(&self.gone);
        let run = self.run_of(&of.run)?;
        let chosen = |flow: &&Flow| of.flow.as_ref().is_none_or(|name| *name == flow.spec.asked.flow);
        if let Some(name) = &of.flow
            && !run.flows.iter().any(|flow| chosen(&flow))
        {
            return Err(unknown_flow(name));
        }
        run.flows.iter().filter(chosen).for_each(Flow::stop);
        let due = clock::now() + ENDING;
        let is_gone = move || gone.load(Ordering::Relaxed);
        for flow in run.flows.iter().filter(chosen) {
            if !flow.wait(due, &is_gone) {
                let cause = format!("the threads of flow `{}` did not end", flow.spec.asked.flow);
                return Err(ProtocolError::new(Code::System, cause, "try again, or close the channel"));
            }
        }
        Ok(json!({}))
    }

    fn collect(&mut self, of: &Of) -> Result<Value> {
        let gone = Arc::clone(&self.gone);
        let is_gone = move || gone.load(Ordering::Relaxed);
        let run = self.run_of(&of.run)?;
        if !run.flows.iter().all(Flow::is_started) {
            return Err(ProtocolError::new(
                Code::WrongOrder,
                "the run has not started",
                "`start` it, or `drop` it",
            ));
        }
        for flow in &run.flows {
            if flow.ends_alone() {
                flow.wait_end(BEYOND, &is_gone);
            }
            flow.stop();
        }
        let due = clock::now() + ENDING;
        for flow in &run.flows {
            flow.wait(due, &is_gone);
        }
        let after = kernel_counters::read();
        let run = self.run.take().expect("the run exists");
        let flows: Vec<Value> = run.flows.into_iter().map(Flow::finish).collect();
        Ok(json!({ "flows": flows, "before": run.before, "after": after }))
    }

    fn drop_run(&mut self, of: &Of) -> Result<Value> {
        self.run_of(&of.run)?;
        let run = self.run.take().expect("the run exists");
        run.flows.iter().for_each(Flow::stop);
        run.flows.into_iter().for_each(|flow| drop(flow.finish()));
        Ok(json!({}))
    }
}
