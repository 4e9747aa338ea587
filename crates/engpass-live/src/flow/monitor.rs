//! The monitor thread of a flow: writes interval records, reads the cores' usage, enforces the rate limit and reports the end.

use std::sync::Arc;

use serde_json::{Value, json};
use socket2::Socket;

use super::control::{Control, EndReason, Meter, Reading};
use super::spec::{Role, Spec};
use super::tcp_info::TcpInfo;
use crate::kernel_counters::{Cores, shares};
use crate::sys::clock;
use crate::time::{MILLISECOND, SECOND};

/// Sends an event to the controller.
pub(crate) type Tell = Arc<dyn Fn(Value) + Send + Sync>;

/// Time between two checks for the first data and for the rate limit, in ns.
const LOOK: u64 = 10 * MILLISECOND;

/// State of the monitor thread.
pub(super) struct Monitor {
    pub(super) spec: Arc<Spec>,
    pub(super) control: Arc<Control>,
    pub(super) streams: Vec<(Arc<Socket>, Arc<Meter>)>,
    pub(super) tell: Tell,
}

/// Result of the monitor thread.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) series: Vec<Value>,
    pub(super) cores: Value,
}

impl Monitor {
    fn is_done(&self) -> bool {
        self.streams.iter().all(|(_, meter)| meter.is_done())
    }

    fn total(&self) -> Reading {
        self.streams.iter().map(|(_, meter)| meter.read()).fold(Reading::default(), |all, one| Reading {
            bytes: all.bytes + one.bytes,
            messages: all.messages + one.messages,
            lost: all.lost + one.lost,
        })
    }

    /// Returns the earliest instant at which one of the streams began.
    fn first(&self) -> Option<u64> {
        self.streams.iter().filter_map(|(_, meter)| meter.first()).min()
    }

    /// Watches the flow until all its threads have ended.
    pub(super) fn run(self) -> Watched {
        let mut watched = Watched::default();
        let mut first = None;
        while first.is_none() && !self.control.wait_until(clock::now() + LOOK, || self.is_done()) {
            first = self.first();
        }
        if let Some(first) = first.or_else(|| self.first()) {
            self.watch(first, &mut watched);
        }
        (self.tell)(json!({
            "event": "done",
            "run": self.spec.asked.run,
            "flow": self.spec.asked.flow,
            "role": self.spec.role.name(),
            "ended": self.control.reason(),
        }));
        watched
    }

    fn watch(&self, first: u64, watched: &mut Watched) {
        let asked = &self.spec.asked;
        let open = first.saturating_add(asked.warmup_ns);
        let close = asked.duration_ns.map_or(u64::MAX, |length| open.saturating_add(length));
        let interval = if asked.interval_ns == 0 { u64::MAX } else { asked.interval_ns };
        let mut tick = first.saturating_add(interval);
        let (mut from, mut before) = (first, Reading::default());
        let mut cores: [Option<Cores>; 2] = [None, None];
        loop {
            let edge = match cores {
                [None, _] => open,
                [_, None] => close,
                _ => u64::MAX,
            };
            let mut next = tick.min(edge);
            if self.spec.limits.rate_bit_per_s.is_some() {
                next = next.min(clock::now() + LOOK);
            }
            let done = self.control.wait_until(next, || self.is_done());
            let now = clock::now();
            if cores[0].is_none() && now >= open {
                cores[0] = Some(Cores::read());
            } else if cores[0].is_some() && cores[1].is_none() && (now >= close || done) {
                cores[1] = Some(Cores::read());
            }
            self.hold_to_rate(first, now);
            if now >= tick || (done && interval != u64::MAX) {
                let total = self.total();
                let record = self.record((from - first, now.max(from) - first), &before, &total);
                (self.tell)(self.event(&record));
                watched.series.push(record);
                (from, before) = (now, total);
                // Ticks stay on their grid, so that a late wake-up does not shift later intervals.
                tick = first + ((now - first) / interval + 1).saturating_mul(interval);
            }
            if done {
                break;
            }
        }
        if let [Some(open), Some(close)] = &cores {
            watched.cores = shares(open, close);
        }
    }

    fn record(&self, (from, to): (u64, u64), before: &Reading, total: &Reading) -> Value {
        let mut record = json!({
            "from_ns": from,
            "to_ns": to,
            "bytes": total.bytes - before.bytes,
            "messages": total.messages - before.messages,
        });
        if self.spec.udp && self.spec.role == Role::Receive {
            // Missing datagrams may still arrive. The value is negative if more arrived late than went missing.
            record["lost"] = json!(total.lost.cast_signed() - before.lost.cast_signed());
        }
        let infos: Vec<TcpInfo> =
            self.streams.iter().filter_map(|(socket, _)| TcpInfo::of(&**socket)).collect();
        if !self.spec.udp && !infos.is_empty() {
            let sum = |name| infos.iter().filter_map(|info| info.get(name)).sum::<u64>();
            let mean = |name| sum(name) / infos.len() as u64;
            let windows =
                infos.iter().map(|info| info.get("snd_cwnd").unwrap_or(0) * info.get("snd_mss").unwrap_or(0));
            record["tcp"] = json!({
                "rtt_ns": mean("rtt_us") * 1000,
                "cwnd_bytes": windows.sum::<u64>(),
                "retransmitted_total": sum("total_retrans"),
            });
        }
        record
    }

    fn event(&self, record: &Value) -> Value {
        let mut event = json!({
            "event": "interval",
            "run": self.spec.asked.run,
            "flow": self.spec.asked.flow,
            "role": self.spec.role.name(),
        });
        if let (Value::Object(event), Value::Object(record)) = (&mut event, record) {
            event.extend(record.clone());
        }
        event
    }

    /// Stops a flow that exceeds its rate limit by more than 5 %, with an allowance of a quarter of a second.
    fn hold_to_rate(&self, first: u64, now: u64) {
        let Some(rate) = self.spec.limits.rate_bit_per_s else { return };
        let time = u128::from(now - first) + u128::from(SECOND / 4);
        let allowed = u128::from(rate) * time * 105 / 100 / 8 / u128::from(SECOND);
        // Four messages are always allowed, because a short burst is not a rate.
        let allowed = allowed.max(u128::from(self.spec.asked.message_bytes) * 4);
        if u128::from(self.total().bytes) > allowed {
            self.control.stop(EndReason::LimitRate);
        }
    }
}
