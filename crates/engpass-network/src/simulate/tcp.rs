//! TCP connections at hosts: applications that write, CPUs that pay, NICs that hold back.

use engpass_model::host::{CpuCost, Pauses};
use engpass_model::random::Stream;
use engpass_model::tcp::{Connection, LimitedBy, Out, Segment, Stats};
use engpass_model::time::Time;
use engpass_model::unit::Share;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::Network;
use super::event::Event;
use super::fabric::Datagram;
use super::host::Item;
use super::ledger::Wait;
use super::nic::{Sending, Way};

/// One end of a connection. Endpoint `2k` of a flow writes, endpoint `2k + 1` reads.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) flow: usize,
    pub(super) host: usize,
    pub(super) nic: usize,
    pub(super) way: Way,
    pub(super) connection: Connection,
    /// What the host pays at this end.
    pub(super) cost: CpuCost,
    /// Earliest wake that is pending.
    pub(super) timer: u64,
    /// The segment that the CPU forms or that waits for the NIC, and the datagram that carries it.
    pub(super) segment: Option<Segment>,
    pub(super) datagram: Option<u32>,
    /// An output is under way: the next segment is not formed before it is handed over.
    pub(super) busy: bool,
    /// What the connection had counted when the warm-up was over.
    pub(super) before: Stats,
    /// The application that writes; `None` at the reading end.
    pub(super) application: Option<Application>,
}

/// An application that writes messages of one size, one after the other.
#[derive(Debug)]
pub(super) struct Application {
    pub(super) message: u64,
    pub(super) start: u64,
    pub(super) stop: u64,
    pub(super) pauses: Option<Pauses>,
    pub(super) random: Stream,
    /// Bytes of the current write that are not copied to the send buffer; none of it is yet while this is `message`.
    pub(super) left: u64,
    /// Bytes that the CPU copies, or waits to copy.
    pub(super) copying: u64,
    /// The connection may be opened.
    pub(super) open: bool,
    /// The connection is established: writes may begin.
    pub(super) connected: bool,
    /// When a pause ends.
    pub(super) resume: Option<u64>,
}

impl Endpoint {
    /// The segment that is ready.
    pub(super) fn sending(&self) -> Sending {
        let segment = self.segment.expect("a segment is formed before it is handed over");
        Sending {
            flow: self.flow,
            nic: self.nic,
            way: self.way,
            ip: IP_HEADER_BYTES + segment.wire_len(),
            datagram: self.datagram.expect("a formed segment has a datagram"),
        }
    }

    /// CPU time of the piece of a write that is copied, in picoseconds: the first one pays for the call.
    pub(super) fn write_cost(&self) -> u64 {
        let application = self.application.as_ref().expect("only the writing end writes");
        let call = if application.left == application.message { self.cost.write() } else { 0 };
        call + self.cost.bytes(application.copying)
    }

    /// What the endpoint waits for, when its connection sends nothing for this reason.
    fn waits_for(&self, limited: LimitedBy) -> Wait {
        let application = self.application.as_ref();
        let (copying, left) =
            application.map_or((0, 0), |application| (application.copying, application.left));
        match limited {
            LimitedBy::Application | LimitedBy::SendBuffer if copying > 0 => Wait::Cpu,
            LimitedBy::Application | LimitedBy::SendBuffer if left > 0 => Wait::SendBuffer,
            LimitedBy::SendBuffer => Wait::Application,
            other => Wait::of(other),
        }
    }

    fn segment_cost(&self, segment: &Segment, incoming: bool) -> u64 {
        let reads = self.application.is_none();
        match segment.len {
            0 => self.cost.ack(),
            // The writer's bytes are paid for by the write.
            len if incoming && reads => self.cost.segment() + self.cost.bytes(len),
            _ => self.cost.segment(),
        }
    }
}

impl Network {
    /// A wake of an endpoint: its application starts or goes on, or a timer of its connection expires.
    pub(super) fn endpoint_wake(&mut self, endpoint: u32) {
        let index = endpoint as usize;
        let now = self.now;
        let this = &mut self.endpoints[index];
        if this.timer <= now {
            this.timer = u64::MAX;
        }
        if let Some(application) = &mut this.application {
            application.open |= now >= application.start;
            if application.resume.is_some_and(|resume| resume <= now) {
                application.resume = None;
                application.left = application.message;
            }
        }
        let this = &mut self.endpoints[index];
        if this.connection.next_wake().is_some_and(|wake| wake.ps() <= now) {
            let mut out = Out::default();
            let before = this.connection.stats().timeouts;
            this.connection.on_timer(Time(now), &mut out);
            if let Some(trace) = &mut self.fabric.trace
                && this.connection.stats().timeouts > before
            {
                trace.timed_out(this.flow, now);
            }
            if out.timer_since.is_some() {
                self.fabric.ledger.timed_out(self.processes.len() + index, now);
            }
            self.after_input(index, out);
        } else {
            self.go_on(index);
        }
    }

    /// The connection has taken an input.
    fn after_input(&mut self, endpoint: usize, out: Out) {
        if let Some(application) = &mut self.endpoints[endpoint].application {
            application.connected |= out.established;
        }
        self.go_on(endpoint);
    }

    /// The application's next write begins, after a pause perhaps, if there is to be one.
    fn next_write(&mut self, endpoint: usize) {
        let (now, end, flow) = (self.now, self.end, self.endpoints[endpoint].flow);
        let Some(application) = &mut self.endpoints[endpoint].application else { return };
        if !application.connected || application.resume.is_some() || now >= application.stop || now >= end {
            return;
        }
        if let Some(pauses) = &application.pauses
            && application.random.below(Share::WHOLE) < pauses.share.0
        {
            let resume = now.saturating_add(application.random.exponential(pauses.mean.0));
            application.resume = Some(resume);
            self.events.push(resume, flow, Event::Wake(endpoint as u32));
            return;
        }
        application.left = application.message;
    }

    /// Ask the CPU to copy the next piece of the application's writes, if the send buffer takes one.
    fn next_copy(&mut self, endpoint: usize) {
        let Some(application) = &self.endpoints[endpoint].application else { return };
        if application.copying > 0 {
            return;
        }
        if application.left == 0 {
            self.next_write(endpoint);
        }
        let this = &mut self.endpoints[endpoint];
        let Some(application) = &mut this.application else { return };
        application.copying = this.connection.next_copy(application.left);
        if application.copying > 0 {
            let host = this.host;
            self.ask_cpu(host, Item::Write(endpoint));
        }
    }

    /// The CPU has copied a piece of a write to the send buffer.
    pub(super) fn copied(&mut self, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        let application = this.application.as_mut().expect("only the writing end writes");
        let bytes = std::mem::take(&mut application.copying);
        application.left -= bytes;
        this.connection.put(Time(self.now), bytes, application.left == 0);
        self.go_on(endpoint);
    }

    /// Send if that is possible, else let the application write; and note what it waits for.
    fn send_or_wait(&mut self, endpoint: usize, open: bool, limited: LimitedBy) {
        let wait = match limited {
            _ if !open => Wait::Application,
            LimitedBy::Nothing => {
                self.endpoints[endpoint].busy = true;
                self.ask_cpu(self.endpoints[endpoint].host, Item::Output(endpoint));
                Wait::Cpu
            }
            limited => {
                self.next_copy(endpoint);
                let this = &self.endpoints[endpoint];
                // The copy that was not made may be the reason.
                let asked = matches!(limited, LimitedBy::Application | LimitedBy::Nagle);
                let limited = if asked { this.connection.limited_by(Time(self.now)) } else { limited };
                this.waits_for(limited)
            }
        };
        self.fabric.ledger.waits(self.processes.len() + endpoint, self.now, wait);
    }

    /// Send what can be sent, else let the application write; and see to the next wake.
    fn go_on(&mut self, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        let open = this.application.as_ref().is_none_or(|application| application.open);
        if !this.busy {
            let limited = this.connection.limited_by(Time(self.now));
            self.send_or_wait(endpoint, open, limited);
        }
        let this = &mut self.endpoints[endpoint];
        if let Some(wake) = this.connection.next_wake() {
            let wake = wake.ps().max(self.now);
            if wake < this.timer {
                this.timer = wake;
                self.events.push(wake, this.flow, Event::Wake(endpoint as u32));
            }
        }
    }

    /// The CPU begins to form the endpoint's next segment: what that costs.
    pub(super) fn form_segment(&mut self, endpoint: usize) -> u64 {
        let this = &mut self.endpoints[endpoint];
        let before = this.connection.stats().retransmissions;
        this.segment = this.connection.transmit(Time(self.now));
        if let Some(trace) = &mut self.fabric.trace
            && this.connection.stats().retransmissions > before
        {
            trace.sent_again(this.flow, self.now);
        }
        let segment = this.segment;
        segment.map_or(0, |segment| this.segment_cost(&segment, false))
    }

    /// The segment is formed: on to the NIC.
    pub(super) fn segment_formed(&mut self, endpoint: usize) {
        let this = &self.endpoints[endpoint];
        let Some(segment) = this.segment else {
            self.endpoints[endpoint].busy = false;
            self.go_on(endpoint);
            return;
        };
        let datagram = Datagram {
            flow: this.flow as u32,
            index: this.connection.stats().segments_sent,
            bytes: segment.len,
            fragments: 1,
            arrived: 0,
            sent: false,
            to: Some(endpoint as u32 ^ 1),
            counted: segment.len > 0 && this.application.is_some(),
            loss: None,
            holds: 1,
        };
        let flow = this.flow;
        let id = self.fabric.begin_datagram(datagram);
        if self.fabric.segments.len() <= id as usize {
            self.fabric.segments.resize(id as usize + 1, Segment::default());
        }
        self.fabric.segments[id as usize] = segment;
        self.endpoints[endpoint].datagram = Some(id);
        let sender = self.processes.len() + endpoint;
        self.events.push(self.now, flow, Event::Hand(sender as u32));
    }

    /// The NIC has taken the segment.
    pub(super) fn segment_handed(&mut self, endpoint: usize) {
        let this = &mut self.endpoints[endpoint];
        (this.busy, this.segment) = (false, None);
        let datagram = this.datagram.take().expect("what was handed over was a datagram");
        self.fabric.ledger.stirs(self.processes.len() + endpoint, self.now);
        self.datagram_sent(datagram);
        self.go_on(endpoint);
    }

    /// A segment is complete at its host: the CPU takes it, at once where that costs nothing.
    pub(super) fn receive_segment(&mut self, datagram: u32) {
        if self.input_cost(datagram) == 0 {
            self.take_segment(datagram);
            return;
        }
        self.fabric.datagrams[datagram].holds += 1;
        let endpoint = self.fabric.datagrams[datagram].to.expect("a segment goes to an endpoint") as usize;
        if !self.endpoints[endpoint].busy {
            self.fabric.ledger.waits(self.processes.len() + endpoint, self.now, Wait::Cpu);
        }
        self.ask_cpu(self.endpoints[endpoint].host, Item::Input(datagram));
    }

    /// CPU time of receiving a segment, in picoseconds.
    pub(super) fn input_cost(&self, datagram: u32) -> u64 {
        let endpoint = self.fabric.datagrams[datagram].to.expect("a segment goes to an endpoint");
        self.endpoints[endpoint as usize].segment_cost(&self.fabric.segments[datagram as usize], true)
    }

    /// The connection takes the segment.
    pub(super) fn take_segment(&mut self, datagram: u32) {
        let this = &self.fabric.datagrams[datagram];
        let endpoint = this.to.expect("a segment goes to an endpoint") as usize;
        let segment = self.fabric.segments[datagram as usize];
        if this.counted {
            let (flow, index) = (this.flow as usize, this.index);
            let tally = &mut self.fabric.flows[flow];
            tally.in_flight -= 1;
            tally.receive(index, self.now);
            if self.fabric.window.holds(self.now) {
                tally.received += 1;
            }
        }
        let mut out = Out::default();
        let connection = &mut self.endpoints[endpoint].connection;
        let refused = connection.stats().bytes_refused;
        connection.on_segment(Time(self.now), &segment, &mut out);
        let refused = connection.stats().bytes_refused - refused;
        let this = &self.fabric.datagrams[datagram];
        if this.counted && self.fabric.window.holds(self.now) {
            // What came for the first time, whether or not bytes before it are missing: more than the lines carried
            // cannot arrive.
            self.fabric.flows[this.flow as usize].received_bytes += segment.len.saturating_sub(refused);
        }
        self.fabric.ledger.refused(datagram, refused);
        self.fabric.ledger.stirs(self.processes.len() + endpoint, self.now);
        self.after_input(endpoint, out);
    }
}
