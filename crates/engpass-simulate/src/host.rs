//! Hosts: processes that send datagrams, CPUs, and sockets that receive.

use std::collections::VecDeque;

use engpass_frames::Frames;
use engpass_ledger::SenderState;
use engpass_model::engine::BusyTime;
use engpass_model::host::{CpuCost, Pauses};
use engpass_model::random::Stream;
use engpass_model::source::Arrivals;
use engpass_model::time::{Pace, SECOND, Time};
use engpass_model::unit::Share;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES, UDP_HEADER_BYTES};

use super::cell_ports::CellNetwork;
use super::clock::{Clock, NewEvent, NewEvents};
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
    /// Adds a work item behind those that it may not overtake. Work on TCP segments interrupts the copy of a write. Returns true if the CPU is idle.
    pub(super) fn enqueue(&mut self, item: CpuTask, now: u64) -> bool {
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
        self.is_idle()
    }

    /// Ends the item in progress. Returns `None` if it was interrupted.
    pub(super) fn end_task(&mut self, now: u64) -> Option<CpuTask> {
        if let Some(stale) = self.stale.iter().position(|at| *at == now) {
            self.stale.swap_remove(stale);
            return None;
        }
        self.acting = true;
        Some(self.current.take().expect("a busy CPU has a work item"))
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
    /// This process sends its next message.
    SendsMessage(usize),
    /// This sender hands its packet to its NIC.
    HandsOver(usize),
    /// This NIC takes injected packets that wait for it; it has taken the first.
    ServesQueue(usize),
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

impl Hosts {
    /// Begins the measurement window.
    pub(super) fn begin_window(&mut self, from: u64) {
        self.warmup_counts =
            self.endpoints.iter().map(|endpoint| endpoint.connection.stats().into()).collect();
        self.cpus.iter_mut().for_each(|cpu| cpu.busy.begin_window(from));
    }

    /// Releases memory that endpoints do not need, from time to time.
    pub(super) fn release_unused_memory(&mut self, now: u64) {
        if now >= self.next_release {
            self.next_release = now.saturating_add(SECOND);
            self.endpoints.iter_mut().for_each(|endpoint| endpoint.release_unused_memory(Time(now)));
        }
    }

    /// Begins the next message of a process, or continues it after a pause.
    #[inline(always)]
    pub(super) fn on_process_wake(
        &mut self,
        process: u32,
        shared: &mut SharedState,
        clock: &Clock,
    ) -> HostStep {
        let (index, now) = (process as usize, clock.now);
        let this = &mut self.processes[index];
        if !std::mem::take(&mut this.pausing) {
            if now >= this.stop || now >= clock.end {
                return HostStep::Waits(None);
            }
            if let Some(pauses) = &this.pauses
                && this.random.below(Share::WHOLE) < pauses.share.0
            {
                let resumes = now.saturating_add(this.random.exponential(pauses.mean.0));
                this.pausing = true;
                shared.ledger.set_sender_state(index, now, SenderState::Application);
                return HostStep::Waits(Some((resumes, this.flow, Event::ProcessWake(process))));
            }
        }
        HostStep::SendsMessage(index)
    }

    /// Returns the rank of a process among the senders of an instant if it needs no CPU time for its message and its CPU is idle.
    pub(super) fn turn_at_once(&self, process: usize) -> Option<usize> {
        let this = &self.processes[process];
        (this.is_zero_cost && self.cpus[this.host].is_idle()).then(|| self.rank_of(process, this.flow))
    }

    /// Creates the datagram of the next message of a process, and begins to send it: `at_once`, or through the CPU.
    pub(super) fn begin_message(
        &mut self,
        process: usize,
        at_once: bool,
        shared: &mut SharedState,
        now: u64,
        frames: &Frames,
    ) -> HostStep {
        let this = &mut self.processes[process];
        let datagram = Datagram {
            flow: this.flow as u32,
            index: this.messages,
            bytes: this.message as u32,
            fragments: this.fragments.count as u16,
            counted: true,
            header: UDP_HEADER_BYTES as u32,
            begun: now,
            refs: 1,
            tracked_per_hop: match this.way {
                EgressPath::Circuit { .. } => true,
                EgressPath::Frames { route } | EgressPath::Bond { route } => {
                    this.is_copied || this.fragments.count > 1 && frames.has_choices(route)
                }
            },
            ..Datagram::default()
        };
        this.datagram = Some(shared.begin_datagram(datagram.tracked_per_hop, datagram));
        this.fragment = 0;
        if at_once {
            return HostStep::HandsOver(process);
        }
        shared.ledger.set_sender_state(process, now, SenderState::Cpu);
        HostStep::Task(this.host, CpuTask::Send(process))
    }

    /// Begins the next task that waits for a CPU. Returns the events that follow, and the task if it takes effect at once: TCP output and writes without cost.
    pub(super) fn begin_task(
        &mut self,
        host: usize,
        shared: &mut SharedState,
        now: u64,
    ) -> (NewEvents, Option<CpuTask>) {
        let task = self.cpus[host].items.pop_front();
        self.cpus[host].acting = task.is_some();
        let Some(task) = task else { return ([None; 2], None) };
        let (flow, cost) = self.begin_item(host, task, shared, now);
        let wake = match task {
            // The new segment may set an earlier timer, which runs while the segment waits for the NIC.
            CpuTask::Output(endpoint) => self.endpoints[endpoint].next_wake(endpoint, now),
            _ => None,
        };
        if cost == 0 && matches!(task, CpuTask::Write(_) | CpuTask::Output(_)) {
            return ([wake, None], Some(task));
        }
        let ends = now.saturating_add(cost);
        let cpu = &mut self.cpus[host];
        (cpu.current, cpu.ends, cpu.acting) = (Some(task), ends, false);
        if cost > 0 {
            cpu.busy.add(now, ends);
        }
        ([wake, Some((ends, flow, Event::CpuDone(host as u32)))], None)
    }

    /// Lets a task of a CPU take effect.
    pub(super) fn finish_task(&mut self, task: CpuTask, shared: &mut SharedState, view: View) -> HostStep {
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
            CpuTask::Output(endpoint) => HostStep::HandsOver(shared.processes + endpoint),
            CpuTask::Input(datagram) => {
                let to = self.process_segment(datagram, shared, view);
                self.unprocessed_segments[to] -= 1;
                shared.release_datagram(datagram);
                HostStep::Sends(to)
            }
        }
    }

    /// Continues a sender after a NIC has taken its packet.
    #[inline(always)]
    pub(super) fn packet_sent(
        &mut self,
        sender: usize,
        nic: usize,
        shared: &mut SharedState,
        now: u64,
    ) -> HostStep {
        if let Some(endpoint) = sender.checked_sub(shared.processes) {
            if endpoint >= shared.endpoints {
                return HostStep::ServesQueue(nic);
            }
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
    pub(super) fn receive(&mut self, datagram: u32, shared: &mut SharedState, view: View) -> HostStep {
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
