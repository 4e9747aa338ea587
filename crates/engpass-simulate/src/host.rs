//! Hosts: processes that send datagrams, CPUs, and sockets that receive.

use std::collections::VecDeque;

use engpass_frames::Frames;
use engpass_ledger::SenderState;
use engpass_model::engine::BusyTime;
use engpass_model::host::{CpuCost, Pauses};
use engpass_model::random::Stream;
use engpass_model::source::Arrivals;
use engpass_model::time::Pace;
use engpass_model::unit::Share;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES, UDP_HEADER_BYTES};

use super::Network;
use super::cell_ports::CellNetwork;
use super::clock::NewEvent;
use super::endpoint::{Endpoint, NOTHING, SegmentCost, WarmupCounts};
use super::event_queue::Event;
use super::flow_counters::DropLocation;
use super::injection::InjectedSenders;
use super::nic::Nic;
use super::packet_store::{Datagram, PacketStore};
use super::queueing::PathId;
use super::ready_packet::{EgressPath, ReadyPacket};
use super::shared_state::SharedState;

/// A process: sends UDP datagrams of one flow.
pub(super) struct UdpApplication {
    pub(super) flow: usize,
    pub(super) host: usize,
    pub(super) nic: usize,
    pub(super) way: EgressPath,
    pub(super) message: u64,
    pub(super) mtu: u64,
    pub(super) fragments: Fragments,
    /// Arrivals of messages still to come, for traffic that is not evenly spaced.
    pub(super) arrivals: Option<Arrivals>,
    /// Instant at which the current message was due, for traffic that is not evenly spaced.
    pub(super) due: u64,
    /// Offered pace, in time per byte, for evenly spaced traffic.
    pub(super) pace: Option<Pace>,
    pub(super) start: u64,
    /// No message begins at or after this instant.
    pub(super) stop: u64,
    pub(super) cost: CpuCost,
    /// True if sending costs the host no CPU time.
    pub(super) is_zero_cost: bool,
    pub(super) pauses: Option<Pauses>,
    pub(super) random: Stream,
    pub(super) messages: u64,
    pub(super) fragment: u64,
    pub(super) datagram: Option<u32>,
    pub(super) pausing: bool,
    /// True if nodes copy the packets (multicast).
    pub(super) is_copied: bool,
}

impl UdpApplication {
    /// Returns the current fragment, ready for the NIC.
    pub(super) fn ready_packet(&self) -> ReadyPacket {
        ReadyPacket {
            flow: self.flow,
            nic: self.nic,
            way: self.way,
            ip: self.fragments.payload(self.fragment) + IP_HEADER_BYTES,
            datagram: self.datagram.expect("a process with a fragment has a datagram"),
            offset: (self.fragment * self.fragments.full / 8) as u16,
        }
    }

    /// Prepares the next message of the process. Returns the instant at which it is due.
    pub(super) fn next_message(&mut self) -> u64 {
        let Some(arrival) = self.arrivals.as_mut().and_then(Iterator::next) else {
            let paced = self.pace.map(|pace| pace.after(self.messages * self.message));
            return self.start.saturating_add(paced.unwrap_or(0));
        };
        self.due = self.due.saturating_add(arrival.gap.ps());
        self.message = arrival.bytes;
        self.fragments = Fragments::of(arrival.bytes + UDP_HEADER_BYTES, self.mtu);
        self.due
    }

    fn fragment_cost(&self) -> u64 {
        let first = self.fragment == 0;
        let payload = self.fragments.payload(self.fragment) - if first { UDP_HEADER_BYTES } else { 0 };
        self.cost.fragment(payload) + if first { self.cost.datagram_start() } else { 0 }
    }
}

/// The CPU of a host: one work item at a time, first come first served, but work on TCP segments interrupts the copy of a write.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    /// The item in progress, and the instant at which it ends.
    current: Option<CpuTask>,
    ends: u64,
    /// Items that wait, in order.
    items: VecDeque<CpuTask>,
    /// True while an item takes effect; further items that this causes wait.
    acting: bool,
    /// Remaining CPU time of the first waiting write, if it was interrupted.
    interrupted: Option<u64>,
    /// End times of interrupted items; the `CpuDone` events at these instants are void.
    stale: Vec<u64>,
    pub(super) busy: BusyTime,
}

impl Cpu {
    /// Adds a work item behind those that it may not overtake. Work on TCP segments interrupts the copy of a write.
    fn enqueue(&mut self, item: CpuTask, now: u64) {
        if !matches!(item, CpuTask::Output(_) | CpuTask::Input(_)) {
            self.items.push_back(item);
        } else if matches!(self.current, Some(CpuTask::Write(_))) && self.ends > now {
            self.interrupted = Some(self.ends - now);
            self.stale.push(self.ends);
            self.busy.interrupt(now);
            self.items.extend(self.current.take());
            // The interrupted write comes before all other items.
            self.items.rotate_right(1);
            self.items.push_front(item);
        } else {
            let writes = self.items.iter().position(|item| matches!(item, CpuTask::Write(_)));
            self.items.insert(writes.unwrap_or(self.items.len()), item);
        }
    }

    /// Returns true if an item without cost would take effect at once.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && !self.acting
    }
}

/// A work item of a CPU.
#[derive(Clone, Copy, Debug)]
pub(super) enum CpuTask {
    /// Send the next fragment of this process.
    Send(usize),
    /// Receive this UDP datagram.
    Receive(u32),
    /// Copy the next piece of a write of this endpoint's application.
    Write(usize),
    /// Form this endpoint's next segment.
    Output(usize),
    /// Process the incoming segment of this datagram.
    Input(u32),
}

/// The state that hosts read, but do not change, while they receive.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) now: u64,
    pub(super) frames: &'a Frames,
    pub(super) cells: &'a CellNetwork,
}

/// What a host does next.
pub(super) enum HostStep {
    /// Nothing before this event.
    Waits(Option<NewEvent>),
    /// This endpoint sends and writes what it may.
    Sends(usize),
    /// This endpoint hands its segment to its NIC.
    HandsOver(usize),
    /// The CPU of this host gets a task.
    Task(usize, CpuTask),
    /// A node takes this datagram, which is a control packet of this direction.
    Control(u32, u32),
}

/// A socket that receives datagrams of one flow.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub(super) host: usize,
    pub(super) cost: CpuCost,
    pub(super) capacity: u64,
    pub(super) used: u64,
    /// True if receiving costs the host no CPU time.
    pub(super) is_zero_cost: bool,
}

/// All hosts: their applications, CPUs, sockets and NICs.
pub(super) struct Hosts {
    pub(super) processes: Vec<UdpApplication>,
    /// TCP endpoints, two for every connection.
    pub(super) endpoints: Vec<Endpoint>,
    /// Counts of the endpoints at the end of the warm-up; empty without warm-up.
    pub(super) warmup_counts: Vec<WarmupCounts>,
    /// CPU costs of endpoints; an endpoint refers to its entry.
    pub(super) costs: Vec<SegmentCost>,
    /// By endpoint, the number of arrived segments that its host's CPU has not processed. Empty until a segment waits for a CPU.
    pub(super) unprocessed_segments: Vec<u32>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) nics: Vec<Nic>,
    /// By sender, its rank among the senders that hand packets to NICs at one instant. Empty if there are no bonds.
    pub(super) sender_ranks: Vec<u32>,
    /// By flow, the receiving socket, for flows of UDP datagrams from processes; ends with the last of them.
    pub(super) sockets: Vec<Option<Box<Socket>>>,
    /// Instant at which endpoints next release memory that they do not need, in picoseconds.
    pub(super) next_release: u64,
}

const HAS_SOCKET: &str = "a flow of datagrams has a socket";

impl Hosts {
    pub(super) fn socket(&self, flow: usize) -> &Socket {
        self.sockets[flow].as_ref().expect(HAS_SOCKET)
    }

    /// Returns the packet that a sender has ready: a process its fragment, an endpoint its segment, an injected sender its packet for this NIC.
    #[inline(always)]
    pub(super) fn ready_packet(
        &self,
        sender: usize,
        nic: usize,
        datagrams: &PacketStore,
        injected: &InjectedSenders,
    ) -> ReadyPacket {
        match sender.checked_sub(self.processes.len()) {
            None => self.processes[sender].ready_packet(),
            Some(endpoint) => match self.endpoints.get(endpoint) {
                Some(this) => this.ready_packet(datagrams),
                // An injected sender may have packets for several NICs.
                None => injected.ready_packet(nic),
            },
        }
    }

    /// Returns the rank of a sender among the senders that hand packets over at one instant: its flow, except that members of a bond can have several waiting
    /// senders of one flow.
    #[inline(always)]
    pub(super) fn rank_of(&self, sender: usize, flow: usize) -> usize {
        self.sender_ranks.get(sender).map_or(flow, |rank| *rank as usize)
    }

    /// Begins a work item. Returns its flow and its CPU time in picoseconds.
    fn begin_item(&mut self, host: usize, item: CpuTask, shared: &mut SharedState, now: u64) -> (usize, u64) {
        match item {
            CpuTask::Send(process) => (self.processes[process].flow, self.processes[process].fragment_cost()),
            CpuTask::Receive(datagram) => {
                let this = &shared.datagrams[datagram];
                let flow = this.flow as usize;
                (flow, self.socket(flow).cost.datagram(this.bytes.into(), u64::from(this.fragments)))
            }
            CpuTask::Write(endpoint) => {
                let rest = self.cpus[host].interrupted.take();
                let this = &self.endpoints[endpoint];
                (this.flow as usize, rest.unwrap_or_else(|| this.write_cost(&self.costs)))
            }
            CpuTask::Output(endpoint) => {
                let cost = self.form_segment(endpoint, shared, now).unwrap_or(0);
                (self.endpoints[endpoint].flow as usize, cost)
            }
            CpuTask::Input(datagram) => {
                (shared.datagrams[datagram].flow as usize, self.input_cost(&shared.datagrams[datagram]))
            }
        }
    }
}

impl Network {
    /// Begins the next message of a process, or continues it after a pause.
    pub(super) fn on_process_wake(&mut self, process: u32) {
        let index = process as usize;
        let this = &mut self.hosts.processes[index];
        if !std::mem::take(&mut this.pausing) {
            if self.clock.now >= this.stop || self.clock.now >= self.clock.end {
                return;
            }
            if let Some(pauses) = &this.pauses
                && this.random.below(Share::WHOLE) < pauses.share.0
            {
                let length = this.random.exponential(pauses.mean.0);
                this.pausing = true;
                self.shared.ledger.set_sender_state(index, self.clock.now, SenderState::Application);
                self.clock.events.push(
                    self.clock.now.saturating_add(length),
                    this.flow,
                    Event::ProcessWake(process),
                );
                return;
            }
        }
        // Shortcut: the CPU needs no time, and no other event comes before the packet is handed over.
        let (flow, host) = (this.flow, this.host);
        let (is_copied, is_zero_cost) = (this.is_copied, this.is_zero_cost);
        let at_once = is_zero_cost
            && self.hosts.cpus[host].is_idle()
            && self.clock.events.would_be_next(
                self.clock.now,
                self.hosts.rank_of(index, flow),
                Event::HandOver(process),
            );
        if at_once && !is_copied && self.try_send_message(index) {
            return;
        }
        let this = &mut self.hosts.processes[index];
        let datagram = Datagram {
            flow: this.flow as u32,
            index: this.messages,
            bytes: this.message as u32,
            fragments: this.fragments.count as u16,
            counted: true,
            header: UDP_HEADER_BYTES as u32,
            begun: self.clock.now,
            refs: 1,
            tracked_per_hop: match this.way {
                EgressPath::Circuit { .. } => true,
                EgressPath::Frames { route } | EgressPath::Bond { route } => {
                    this.is_copied || this.fragments.count > 1 && self.frames.has_choices(route)
                }
            },
            ..Datagram::default()
        };
        this.datagram = Some(self.shared.begin_datagram(datagram.tracked_per_hop, datagram));
        this.fragment = 0;
        if at_once {
            let ready_packet = self.hosts.processes[index].ready_packet();
            return self.hand_over(index, ready_packet);
        }
        self.shared.ledger.set_sender_state(index, self.clock.now, SenderState::Cpu);
        self.queue_cpu_task(host, CpuTask::Send(index));
    }

    pub(super) fn queue_cpu_task(&mut self, host: usize, item: CpuTask) {
        let cpu = &mut self.hosts.cpus[host];
        cpu.enqueue(item, self.clock.now);
        if cpu.is_idle() {
            self.next_item(host);
        }
    }

    /// Starts waiting items of a CPU until one takes time. TCP output and writes without cost take effect at once.
    fn next_item(&mut self, host: usize) {
        self.hosts.cpus[host].acting = true;
        while let Some(item) = self.hosts.cpus[host].items.pop_front() {
            let (flow, cost) = self.hosts.begin_item(host, item, &mut self.shared, self.clock.now);
            if let CpuTask::Output(endpoint) = item {
                // The new segment may set an earlier timer, which runs while the segment waits for the NIC.
                let wake = self.hosts.endpoints[endpoint].next_wake(endpoint, self.clock.now);
                self.clock.schedule(wake);
            }
            if cost == 0 && matches!(item, CpuTask::Write(_) | CpuTask::Output(_)) {
                self.finish_task(item);
                continue;
            }
            let ends = self.clock.now.saturating_add(cost);
            let cpu = &mut self.hosts.cpus[host];
            (cpu.current, cpu.ends) = (Some(item), ends);
            if cost > 0 {
                cpu.busy.add(self.clock.now, ends);
            }
            self.clock.events.push(ends, flow, Event::CpuDone(host as u32));
            break;
        }
        self.hosts.cpus[host].acting = false;
    }

    /// Handles the end of the CPU's current item.
    pub(super) fn on_cpu_done(&mut self, host: u32) {
        let host = host as usize;
        let cpu = &mut self.hosts.cpus[host];
        if let Some(stale) = cpu.stale.iter().position(|at| *at == self.clock.now) {
            cpu.stale.swap_remove(stale);
            return;
        }
        let item = cpu.current.take().expect("a busy CPU has a work item");
        cpu.acting = true;
        self.finish_task(item);
        self.next_item(host);
    }

    fn finish_task(&mut self, task: CpuTask) {
        let view = View { now: self.clock.now, frames: &self.frames, cells: &self.cells };
        let next = self.hosts.finish_task(task, &mut self.shared, view);
        self.act(next);
    }

    /// Receives a datagram that is complete at its host, and lets the host act on it.
    pub(super) fn receive(&mut self, datagram: u32) {
        let view = View { now: self.clock.now, frames: &self.frames, cells: &self.cells };
        let next = self.hosts.receive(datagram, &mut self.shared, view);
        self.act(next);
    }

    /// Lets a host do its next step.
    #[inline(always)]
    pub(super) fn act(&mut self, next: HostStep) {
        match next {
            HostStep::Waits(event) => self.clock.schedule(event),
            HostStep::Sends(endpoint) => self.send_and_schedule_wake(endpoint),
            HostStep::HandsOver(endpoint) => self.hand_over_segment(endpoint),
            HostStep::Task(host, task) => self.queue_cpu_task(host, task),
            HostStep::Control(datagram, direction) => {
                let parts = self.links().take_control(datagram, direction);
                self.proceed_in_parts(parts, true);
            }
        }
    }
}

impl Hosts {
    /// Lets a task of a CPU take effect.
    fn finish_task(&mut self, task: CpuTask, shared: &mut SharedState, view: View) -> HostStep {
        match task {
            CpuTask::Send(process) => {
                let rank = self.rank_of(process, self.processes[process].flow);
                HostStep::Waits(Some((view.now, rank, Event::HandOver(process as u32))))
            }
            CpuTask::Receive(datagram) => {
                let Datagram { flow, bytes, .. } = shared.datagrams[datagram];
                self.sockets[flow as usize].as_mut().expect(HAS_SOCKET).used -= u64::from(bytes);
                let path = shared.path_of(datagram, view.frames, &self.endpoints);
                self.received(datagram, path, shared, view);
                shared.release_datagram(datagram);
                HostStep::Waits(None)
            }
            CpuTask::Write(endpoint) => {
                self.endpoints[endpoint].commit_write(view.now);
                HostStep::Sends(endpoint)
            }
            CpuTask::Output(endpoint) if self.endpoints[endpoint].ready_segment == NOTHING => {
                // No segment is left to send.
                self.endpoints[endpoint].busy = false;
                HostStep::Sends(endpoint)
            }
            CpuTask::Output(endpoint) => HostStep::HandsOver(endpoint),
            CpuTask::Input(datagram) => {
                let to = self.process_segment(datagram, shared, view);
                self.unprocessed_segments[to] -= 1;
                shared.release_datagram(datagram);
                HostStep::Sends(to)
            }
        }
    }

    /// Continues a process or an endpoint after the NIC has taken its packet.
    #[inline(always)]
    pub(super) fn packet_sent(&mut self, sender: usize, shared: &mut SharedState, now: u64) -> HostStep {
        if let Some(endpoint) = sender.checked_sub(shared.processes) {
            self.endpoints[endpoint].busy = false;
            self.on_segment_in_nic(endpoint, shared, now);
            return HostStep::Sends(endpoint);
        }
        let this = &mut self.processes[sender];
        this.fragment += 1;
        if this.fragment < this.fragments.count {
            shared.ledger.set_sender_state(sender, now, SenderState::Cpu);
            return HostStep::Task(this.host, CpuTask::Send(sender));
        }
        let id = this.datagram.take().expect("a process with a fragment has a datagram");
        this.messages += 1;
        shared.ledger.set_sender_state(sender, now, SenderState::Application);
        let due = this.next_message();
        let wake = (due.max(now), this.flow, Event::ProcessWake(sender as u32));
        shared.datagram_sent(id, now);
        HostStep::Waits(Some(wake))
    }

    /// Receives a datagram that is complete at its host, or at the node that a control packet is for.
    #[inline(always)]
    fn receive(&mut self, datagram: u32, shared: &mut SharedState, view: View) -> HostStep {
        match shared.datagrams[datagram].to.get() {
            Some(endpoint) if !shared.is_of_tree(datagram) => {
                if endpoint as usize >= shared.endpoints {
                    let [arp, ..] = view.frames.control_directions(shared.endpoints);
                    if endpoint as usize >= arp {
                        return HostStep::Control(datagram, endpoint);
                    }
                    let sender = shared.deliver_icmp_message(datagram, &mut self.endpoints, view.now);
                    return sender.map_or(HostStep::Waits(None), HostStep::Sends);
                }
                self.take_segment(datagram, shared, view)
            }
            None if shared.reports.is_some() => {
                shared.delivered(datagram, view.now);
                HostStep::Waits(None)
            }
            _ => self.receive_message(datagram, shared, view),
        }
    }

    /// Receives a message for a socket: at once if that costs nothing, otherwise through the CPU, if the receive buffer has room.
    #[inline]
    fn receive_message(&mut self, datagram: u32, shared: &mut SharedState, view: View) -> HostStep {
        if shared.trees.is_some() {
            let host = self.socket(shared.datagrams[datagram].flow as usize).host;
            if !shared.reaches_receiver(datagram, host, view.now) {
                return HostStep::Waits(None);
            }
        }
        let this = &mut shared.datagrams[datagram];
        let socket = self.sockets[this.flow as usize].as_mut().expect(HAS_SOCKET);
        let bytes = u64::from(this.bytes);
        if socket.cost.datagram(bytes, u64::from(this.fragments)) == 0 {
            let path = shared.path_of(datagram, view.frames, &self.endpoints);
            self.received(datagram, path, shared, view);
        } else if socket.used + bytes > socket.capacity {
            shared.lose_datagram(datagram, DropLocation::ReceiveBuffer, view.now);
        } else {
            socket.used += bytes;
            this.refs += 1;
            return HostStep::Task(socket.host, CpuTask::Receive(datagram));
        }
        HostStep::Waits(None)
    }

    /// Counts a datagram that the receiver has taken; its packets took this path.
    #[inline(never)]
    pub(super) fn received(&self, datagram: u32, path: PathId, shared: &mut SharedState, view: View) {
        if let Some(key) = shared.received(datagram, Some(path), view.now) {
            shared.count_queueing(datagram, key, self, view);
        }
    }
}
