//! TCP connections at hosts: applications that write, CPUs that pay, NICs that hold back.

use engpass_ledger::{Load, SenderState, Trail};
use engpass_model::host::{ByteTime, CpuCost};
use engpass_model::tcp::{CompactConnection, Effects, LimitedBy, Stats};
use engpass_model::time::Time;
use engpass_model::unit::Share;
use engpass_model::wire::Encapsulation;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::Network;
use super::application::{NEVER, TcpApplication};
use super::datagrams::{Datagram, Destination, PacketStore};
use super::event::{Event, EventQueue};
use super::fabric::SharedState;
use super::host::CpuTask;
use super::sending::{BONDED, EgressPath, ONWARD, ReadyPacket};

/// One end of a connection. Endpoint `2k` of a flow writes, endpoint `2k + 1` reads.
///
/// They do not stay in the caches where they are many: one of these is a line of them.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Endpoint {
    pub(super) connection: CompactConnection,
    pub(super) flow: u32,
    pub(super) nic: u32,
    /// The way of its packets: a circuit with this encapsulation (from [`ONWARD`] on the one with which a route begins), or else a route.
    pub(super) over: u32,
    pub(super) encapsulation: Option<Encapsulation>,
    /// Earliest wake that is pending.
    pub(super) timer: u64,
    /// Up to here all that comes to it has been handled, ahead of the clock perhaps.
    pub(super) ahead: u64,
    /// The datagram with the segment that the CPU forms or that waits for the NIC, [`NOTHING`] if none does.
    pub(super) formed: u32,
    /// An output is under way: the next segment is not formed before it is handed over.
    pub(super) busy: bool,
    /// Nothing that its host does costs anything: its CPU is always idle.
    pub(super) at_rest: bool,
    /// What the host pays at this end: place in [`Network::costs`], or [`NOTHING`].
    pub(super) cost: u32,
    /// The application that writes; `None` at the reading end.
    pub(super) application: Option<Box<TcpApplication>>,
}

// Every connection has two.
const _: () = assert!(size_of::<Endpoint>() == 64);

/// CPU time of an endpoint's items, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentCost {
    per_write: u64,
    byte: ByteTime,
    per_segment: u64,
    per_ack: u64,
}

impl From<&CpuCost> for SegmentCost {
    fn from(cost: &CpuCost) -> Self {
        Self { per_write: cost.write(), byte: cost.byte(), per_segment: cost.segment(), per_ack: cost.ack() }
    }
}

impl SegmentCost {
    /// Whether its host pays nothing for what it sends and writes.
    pub(super) fn is_nothing(&self) -> bool {
        self.per_write | self.per_segment | self.per_ack == 0 && self.byte.is_nothing()
    }
}

/// What is told of a connection from the end of the warm-up on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) retransmissions: u64,
    pub(super) timeouts: u64,
    pub(super) fast_recoveries: u64,
}

impl From<Stats> for Counted {
    fn from(stats: Stats) -> Self {
        let Stats { retransmissions, timeouts, fast_recoveries, .. } = stats;
        Self { retransmissions, timeouts, fast_recoveries }
    }
}

/// No datagram, or no cost.
pub(super) const NOTHING: u32 = u32::MAX;

impl Endpoint {
    /// Whether its host pays nothing for it.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.cost == NOTHING
    }

    /// The route of its packets, where no circuit from host to host is all of their way.
    pub(super) fn route(&self) -> u32 {
        self.over & !(ONWARD | BONDED)
    }

    #[inline(always)]
    pub(super) fn way(&self) -> EgressPath {
        match self.encapsulation {
            Some(encapsulation) => EgressPath::Circuit { vc: self.over, encapsulation },
            None if self.over & BONDED != 0 => EgressPath::Bond { route: self.over & !BONDED },
            None => EgressPath::Frames { route: self.over },
        }
    }

    /// The segment that is ready.
    #[inline(always)]
    pub(super) fn sending(&self, datagrams: &PacketStore) -> ReadyPacket {
        debug_assert_ne!(self.formed, NOTHING, "a segment is formed before it is handed over");
        let formed = &datagrams[self.formed];
        ReadyPacket {
            flow: self.flow as usize,
            nic: self.nic as usize,
            way: self.way(),
            ip: IP_HEADER_BYTES + u64::from(formed.header) + u64::from(formed.bytes),
            datagram: self.formed,
            offset: 0,
        }
    }

    fn cost<'a>(&self, costs: &'a [SegmentCost]) -> Option<&'a SegmentCost> {
        costs.get(self.cost as usize)
    }

    /// CPU time of the piece of a write that is copied, in picoseconds: the first one pays for the call.
    pub(super) fn write_cost(&self, costs: &[SegmentCost]) -> u64 {
        let application = self.application.as_ref().expect("only the writing end writes");
        let Some(cost) = self.cost(costs) else { return 0 };
        let call = if application.left == application.message { cost.per_write } else { 0 };
        // A gigabyte at a minute a byte takes longer than there is time.
        cost.byte.bytes(application.copying.into()).saturating_add(call)
    }

    /// Whether it only reads, and has nothing to say.
    #[inline]
    pub(super) fn is_silent(&self) -> bool {
        self.application.is_none() && self.connection.is_silent()
    }

    /// Give back what it does not need while it is idle, and for good what it does not need if it only reads.
    pub(super) fn rest(&mut self, now: Time) {
        self.connection.rest(now, self.application.is_none());
    }

    /// Whether its application lets it send: it has begun, or only reads.
    #[inline]
    fn is_open(&self) -> bool {
        self.application.as_ref().is_none_or(|application| application.open)
    }

    /// The route of its packets, if they go as frames that nobody watches.
    #[inline(always)]
    fn plain_route(&self, fabric: &SharedState) -> Option<u32> {
        match self.way() {
            EgressPath::Frames { route } if self.is_open() && fabric.is_plain() && fabric.fates.is_none() => {
                Some(route)
            }
            _ => None,
        }
    }

    /// Until when surely nothing happens to it but what comes from the network; zero if that is not known.
    #[inline]
    pub(super) fn foreseen(&self) -> u64 {
        let waits = self.application.as_ref().is_some_and(|this| !this.open || this.waits());
        if self.busy || waits {
            return 0;
        }
        self.connection.next_wake().map_or(u64::MAX, |wake| wake.ps()).saturating_sub(1)
    }

    /// What the endpoint waits for, when its connection sends nothing for this reason.
    fn waits_for(&self, limited: LimitedBy) -> SenderState {
        let application = self.application.as_ref();
        let (copying, left) =
            application.map_or((0, 0), |application| (application.copying, application.left));
        match limited {
            LimitedBy::Application | LimitedBy::SendBuffer if copying > 0 => SenderState::Cpu,
            LimitedBy::Application | LimitedBy::SendBuffer if left > 0 => SenderState::SendBuffer,
            LimitedBy::SendBuffer => SenderState::Application,
            other => SenderState::of(other),
        }
    }

    /// It wakes when its connection has its next timer.
    #[inline(always)]
    fn see_to_wake(&mut self, endpoint: usize, now: u64, events: &mut EventQueue) {
        if let Some(wake) = self.connection.next_wake() {
            let wake = wake.ps().max(now);
            if wake < self.timer {
                self.timer = wake;
                events.push(wake, self.flow as usize, Event::Wake(endpoint as u32));
            }
        }
    }

    /// Its connection hears of a segment. Returns what that carries, if nothing of it is refused.
    #[inline(always)]
    fn on_segment(
        &mut self,
        now: u64,
        endpoint: usize,
        datagram: u32,
        fabric: &mut SharedState,
    ) -> Option<Load> {
        let (this, segment) = fabric.datagrams.with_segment(datagram);
        let counts = fabric.window.holds(now);
        let mut refused = 0;
        if !self.connection.take_next(Time(now), segment) {
            let mut out = Effects::default();
            self.connection.on_segment(Time(now), segment, &mut out);
            refused = out.refused;
            this.refused = refused as u32;
            // Nobody asks what an end that only reads measures, and waits for.
            if let Some(application) = &mut self.application {
                if let Some(round_trip) = out.round_trip
                    && counts
                {
                    fabric.flows[this.flow as usize].round_trips.add(round_trip.ps());
                }
                application.connected |= out.established;
                fabric.ledger.writer_stirs(endpoint, now);
            }
        }
        if this.counted {
            let tally = &mut fabric.flows[this.flow as usize];
            tally.in_flight -= 1;
            tally.receive(this.index, now);
            if counts {
                tally.received += 1;
                tally.delays.add(now - this.begun);
                // What came for the first time, whether or not bytes before it are missing: more than the lines carried
                // cannot arrive.
                tally.received_bytes += u64::from(this.bytes).saturating_sub(refused);
            }
        }
        (refused == 0).then(|| this.load())
    }

    /// CPU time of a segment with so much payload.
    #[inline]
    fn segment_cost(&self, costs: &[SegmentCost], len: u64, incoming: bool) -> u64 {
        let Some(cost) = self.cost(costs) else { return 0 };
        let reads = self.application.is_none();
        match len {
            0 => cost.per_ack,
            // The writer's bytes are paid for by the write.
            len if incoming && reads => cost.per_segment + cost.byte.bytes(len),
            _ => cost.per_segment,
        }
    }
}

impl Network {
    /// A wake of an endpoint: its application starts or goes on, or a timer of its connection expires.
    #[inline(never)]
    pub(super) fn endpoint_wake(&mut self, endpoint: u32) {
        let index = endpoint as usize;
        let now = self.now;
        let this = &mut self.endpoints[index];
        if this.timer <= now {
            this.timer = u64::MAX;
        }
        if now < this.ahead {
            // It was foreseen that nothing happens now.
            self.see_to_wake(index);
            return;
        }
        if let Some(application) = &mut this.application {
            // The first wake is its start.
            application.open = true;
            application.resume(now);
        }
        let this = &mut self.endpoints[index];
        if this.connection.next_wake().is_some_and(|wake| wake.ps() <= now) {
            let mut out = Effects::default();
            let before = this.connection.stats().timeouts;
            this.connection.on_timer(Time(now), &mut out);
            if let Some(trace) = &mut self.fabric.trace
                && this.connection.stats().timeouts > before
            {
                trace.timed_out(this.flow as usize, now);
            }
            if out.timed_out {
                self.fabric.ledger.timed_out(self.processes.len() + index, now);
            }
        }
        self.go_on(index);
    }

    /// The application's next write begins, when it is due and after a pause perhaps, if there is to be one.
    #[inline(never)]
    pub(super) fn next_write(&mut self, endpoint: usize) {
        let (now, end, flow) = (self.now, self.end, self.endpoints[endpoint].flow);
        let Some(application) = &mut self.endpoints[endpoint].application else { return };
        if !application.connected || application.waits() || now >= application.stop || now >= end {
            return;
        }
        if let Some(delays) = application.delays.as_deref_mut() {
            let due = delays.due(application.message);
            if now < due {
                // What is due after the end is never written.
                if due < end {
                    (delays.resume, delays.early) = (due, true);
                    self.events.push(due, flow as usize, Event::Wake(endpoint as u32));
                }
                return;
            }
            if let Some((pauses, random)) = &mut delays.chance
                && random.below(Share::WHOLE) < pauses.share.0
            {
                delays.resume = now.saturating_add(random.exponential(pauses.mean.0)).min(NEVER - 1);
                self.events.push(delays.resume, flow as usize, Event::Wake(endpoint as u32));
                return;
            }
        }
        application.begin_write();
    }

    /// The next piece of the application's writes, if the send buffer takes one and none is being copied.
    #[inline(always)]
    fn next_copy(&mut self, endpoint: usize) -> bool {
        let Some(application) = &self.endpoints[endpoint].application else { return false };
        if application.copying > 0 {
            return false;
        }
        if application.left == 0 {
            self.next_write(endpoint);
        }
        let this = &mut self.endpoints[endpoint];
        let Some(application) = &mut this.application else { return false };
        application.copying = this.connection.whole().next_copy(application.left.into()) as u32;
        application.copying > 0
    }

    /// A piece of a write has been copied to the send buffer.
    #[inline(always)]
    fn put(&mut self, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        let application = this.application.as_mut().expect("only the writing end writes");
        let bytes = std::mem::take(&mut application.copying);
        application.left -= bytes;
        this.connection.whole().put(Time(self.now), bytes.into(), application.left == 0);
    }

    /// The CPU has copied a piece of a write to the send buffer.
    pub(super) fn copied(&mut self, endpoint: usize) {
        self.put(endpoint);
        self.go_on(endpoint);
    }

    /// Send what can be sent, else let the application write; and see to the next wake.
    #[inline(always)]
    pub(super) fn go_on(&mut self, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        if !this.busy && !this.is_silent() {
            self.act(endpoint);
        }
        self.see_to_wake(endpoint);
    }

    /// Send and write, at once where that costs nothing.
    #[inline(always)]
    fn act(&mut self, endpoint: usize) {
        let this = &self.endpoints[endpoint];
        let idle = || self.cpus[self.nics[this.nic as usize].host as usize].is_idle();
        if !(this.at_rest || this.is_free() && idle()) {
            self.ask(endpoint);
            return;
        }
        let reads = this.application.is_none();
        match this.plain_route(&self.fabric) {
            Some(route) if reads => self.answer_plainly(endpoint, route),
            Some(route) => self.act_plainly(endpoint, route),
            None => self.do_all(endpoint),
        }
    }

    /// See [`Endpoint::see_to_wake`].
    #[inline(always)]
    pub(super) fn see_to_wake(&mut self, endpoint: usize) {
        self.endpoints[endpoint].see_to_wake(endpoint, self.now, &mut self.events);
    }

    /// Ask the CPU for an output, or else for a piece of a write; and note what the endpoint waits for.
    fn ask(&mut self, endpoint: usize) {
        let (now, sender) = (self.now, self.processes.len() + endpoint);
        let this = &mut self.endpoints[endpoint];
        let host = self.nics[this.nic as usize].host as usize;
        if !this.is_open() {
            self.fabric.ledger.waits(sender, now, SenderState::Application);
            return;
        }
        let limited = this.connection.limited_by(Time(now));
        if limited == LimitedBy::Nothing {
            this.busy = true;
            self.fabric.ledger.waits(sender, now, SenderState::Cpu);
            self.ask_cpu(host, CpuTask::Output(endpoint));
            return;
        }
        let copies = self.next_copy(endpoint);
        // What it is held back by may change with a segment that the CPU has not taken in.
        let asked = self.inputs.get(endpoint).is_some_and(|inputs| *inputs > 0);
        let wait = if asked { SenderState::Cpu } else { self.wait_of(endpoint, limited) };
        self.fabric.ledger.waits(sender, now, wait);
        if copies {
            self.ask_cpu(host, CpuTask::Write(endpoint));
        }
    }

    /// Where all this costs nothing and the CPU is idle: send and write until neither goes on.
    #[inline(never)]
    fn do_all(&mut self, endpoint: usize) {
        let (now, sender) = (Time(self.now), self.processes.len() + endpoint);
        let mut limited = None;
        loop {
            let this = &mut self.endpoints[endpoint];
            if !this.is_open() {
                self.fabric.ledger.waits(sender, now.ps(), SenderState::Application);
                return;
            }
            // What a window keeps back stays there, whatever more is written.
            let shut = matches!(limited, Some(LimitedBy::CongestionWindow | LimitedBy::ReceiveWindow));
            if !shut {
                let Err(reason) = self.form_segment(endpoint) else {
                    let sending = self.endpoints[endpoint].sending(&self.fabric.datagrams);
                    if !self.enters_as(sender, sending) {
                        self.endpoints[endpoint].busy = true;
                        return;
                    }
                    self.entered(endpoint);
                    if self.endpoints[endpoint].is_silent() {
                        return;
                    }
                    continue;
                };
                limited = Some(reason);
            }
            if !self.next_copy(endpoint) {
                break;
            }
            self.put(endpoint);
        }
        let wait = limited.map_or(SenderState::Cpu, |limited| self.wait_of(endpoint, limited));
        self.fabric.ledger.waits(sender, now.ps(), wait);
    }

    /// What the endpoint waits for whose connection sends nothing for this reason.
    #[inline(never)]
    pub(super) fn wait_of(&self, endpoint: usize, limited: LimitedBy) -> SenderState {
        let this = &self.endpoints[endpoint];
        if this.application.is_none() {
            return SenderState::of(limited);
        }
        // A copy was made or refused since: that may be the reason, or is it no more. A longer segment may be more than the receive window.
        let asked = match limited {
            LimitedBy::Application | LimitedBy::SendBuffer | LimitedBy::Nagle => true,
            LimitedBy::CongestionWindow => !this.connection.has_room_for_segment(),
            _ => false,
        };
        this.waits_for(if asked { this.connection.limited_by(Time(self.now)) } else { limited })
    }

    /// Form the endpoint's next segment: what the CPU takes for it, or why there is none.
    #[inline(always)]
    pub(super) fn form_segment(&mut self, endpoint: usize) -> Result<u64, LimitedBy> {
        let this = &mut self.endpoints[endpoint];
        let before = self.fabric.trace.as_ref().map(|_| this.connection.stats().retransmissions);
        let next = self.fabric.datagrams.next();
        let segment = self.fabric.datagrams.segment_mut(next);
        this.connection.next_segment(Time(self.now), segment)?;
        let (header, len) = (segment.header_len(), segment.len);
        if let Some(trace) = &mut self.fabric.trace
            && before.is_some_and(|before| this.connection.stats().retransmissions > before)
        {
            trace.sent_again(this.flow as usize, self.now);
        }
        if let Some(trace) = &mut self.fabric.trace {
            trace.formed(endpoint, segment);
        }
        let cost = this.segment_cost(&self.costs, u64::from(len), false);
        let (written, begun) = (this.encapsulation.is_some(), self.now);
        this.formed = self.fabric.begin_datagram(
            written,
            Datagram {
                flow: this.flow,
                index: this.connection.segments_sent(),
                bytes: len,
                fragments: 1,
                train: false,
                arrived: 0,
                sent: false,
                to: Destination::endpoint(endpoint ^ 1),
                counted: len > 0 && this.application.is_some(),
                header: header as u32,
                begun,
                lost: false,
                holds: 1,
                refused: 0,
                trail: Trail::default(),
                written,
            },
        );
        Ok(cost)
    }

    /// The segment is formed: on to the NIC.
    pub(super) fn segment_formed(&mut self, endpoint: usize) {
        if self.endpoints[endpoint].formed == NOTHING {
            // By now there was nothing to send.
            self.endpoints[endpoint].busy = false;
            self.go_on(endpoint);
            return;
        }
        let sending = self.endpoints[endpoint].sending(&self.fabric.datagrams);
        if self.enters_as(self.processes.len() + endpoint, sending) {
            self.segment_handed(endpoint);
        }
    }

    /// The NIC has taken the segment that an item was for, or that has waited.
    pub(super) fn segment_handed(&mut self, endpoint: usize) {
        self.endpoints[endpoint].busy = false;
        self.entered(endpoint);
        self.go_on(endpoint);
    }

    /// The segment is in the NIC.
    #[inline(always)]
    pub(super) fn entered(&mut self, endpoint: usize) {
        let datagram = std::mem::replace(&mut self.endpoints[endpoint].formed, NOTHING);
        debug_assert_ne!(datagram, NOTHING, "what was handed over was a segment");
        self.fabric.ledger.stirs(self.processes.len() + endpoint, self.now);
        self.datagram_sent(datagram);
    }

    /// A segment is complete at its host: the CPU takes it, at once where that costs nothing.
    #[inline(always)]
    pub(super) fn receive_segment(&mut self, datagram: u32, endpoint: u32) {
        if self.endpoints[endpoint as usize].is_free() || self.input_cost(datagram) == 0 {
            self.take_segment(datagram);
            return;
        }
        self.fabric.datagrams[datagram].holds += 1;
        let endpoint = endpoint as usize;
        if self.inputs.is_empty() {
            self.inputs.resize(self.endpoints.len(), 0);
        }
        self.inputs[endpoint] += 1;
        if !self.endpoints[endpoint].busy {
            self.fabric.ledger.waits(self.processes.len() + endpoint, self.now, SenderState::Cpu);
        }
        let host = self.nics[self.endpoints[endpoint].nic as usize].host;
        self.ask_cpu(host as usize, CpuTask::Input(datagram));
    }

    /// A segment has come to an endpoint that it costs nothing, and nobody else holds its datagram: the connection takes it, and it is booked.
    #[inline(never)]
    pub(super) fn take_whole(&mut self, datagram: u32, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        let load = this.on_segment(self.now, endpoint, datagram, &mut self.fabric);
        let lane = (this.flow, Some(endpoint as u32));
        self.end_whole(datagram, lane, load);
        self.go_on(endpoint);
    }

    /// CPU time of receiving a segment, in picoseconds.
    pub(super) fn input_cost(&self, datagram: u32) -> u64 {
        let this = &self.fabric.datagrams[datagram];
        let endpoint = this.to.get().expect("a segment goes to an endpoint");
        self.endpoints[endpoint as usize].segment_cost(&self.costs, this.bytes.into(), true)
    }

    /// The CPU has taken in a segment, which the connection takes next.
    pub(super) fn input_done(&mut self, datagram: u32) {
        let to = self.fabric.datagrams[datagram].to.get();
        self.inputs[to.expect("a segment goes to an endpoint") as usize] -= 1;
    }

    /// The connection takes the segment.
    #[inline(never)]
    pub(super) fn take_segment(&mut self, datagram: u32) {
        let to = self.fabric.datagrams[datagram].to.get();
        let endpoint = to.expect("a segment goes to an endpoint") as usize;
        self.endpoints[endpoint].on_segment(self.now, endpoint, datagram, &mut self.fabric);
        self.go_on(endpoint);
    }
}
