//! Sending without CPU cost: all that a TCP endpoint sends and writes at one instant, and messages of processes. On the fast path, packets are frames of a run
//! without captures and enter the first line at once.

use engpass_frames::{FastPathResult, Packet};
use engpass_ledger::SenderState;
use engpass_model::queue::Ecn;
use engpass_model::tcp::{LimitedBy, Segment};
use engpass_model::time::Time;
use engpass_model::wire::ip::UDP_HEADER_BYTES;

use super::egress::{Egress, UnfragmentedDatagram};
use super::hop::Links;
use crate::clock::{Clock, NewEvent, NewEvents};
use crate::endpoint::Endpoint;
use crate::event_queue::Event;
use crate::host::Hosts;
use crate::packet_store::{Datagram, Destination};
use crate::progress::{Departed, Progress};
use crate::ready_packet::EgressPath;
use crate::shared_state::SharedState;

/// State of a send loop: what an endpoint sends and writes at one instant.
pub(crate) struct SendLoop {
    endpoint: usize,
    sender: usize,
    /// Index of the endpoint's sender states in the ledger; `None` if the ledger keeps none.
    states: Option<usize>,
    route: u32,
    /// Reason why the endpoint sends no more segments; `None` while it may.
    limited: Option<LimitedBy>,
    /// True after a pause.
    resumed: bool,
    /// Events that follow: the arrival of a packet, and the next wake of the application.
    arrival: Option<NewEvent>,
    wake: Option<NewEvent>,
}

/// Reason why a send loop pauses.
pub(crate) enum Pause {
    /// A packet was handed to the next step ahead of time (lookahead): packet number, and instant of arrival.
    DeliveredAhead(u32, u64),
    /// The formed segment must take the slow path into the NIC, or wait for it.
    Formed,
    /// The endpoint can neither send nor write any more.
    Ends,
}

impl SendLoop {
    /// Begins a send loop. The route is used on the fast path only.
    #[inline(always)]
    pub(crate) fn new(endpoint: usize, route: u32, sender: usize) -> Self {
        Self {
            endpoint,
            sender,
            states: None,
            route,
            limited: None,
            resumed: false,
            arrival: None,
            wake: None,
        }
    }

    /// Takes the events that follow from sending and writing.
    #[inline(always)]
    pub(crate) fn take_events(&mut self) -> NewEvents {
        [self.arrival.take(), self.wake.take()]
    }

    /// Returns true if a window holds back unsent data. Further writes then cannot send anything.
    #[inline(always)]
    fn is_shut(&self) -> bool {
        matches!(self.limited, Some(LimitedBy::CongestionWindow | LimitedBy::ReceiveWindow))
    }

    /// Returns the datagram of a segment, with `index` still to be set.
    #[inline(always)]
    fn whole(&self, flow: u32, segment: &Segment, is_writer: bool) -> UnfragmentedDatagram {
        let ecn = match (segment.ect, segment.ce) {
            (_, true) => Ecn::Marked,
            (true, _) => Ecn::Capable,
            _ => Ecn::NotCapable,
        };
        let datagram = Datagram {
            flow,
            to: Destination::endpoint(self.endpoint ^ 1),
            header: segment.header_len() as u32,
            bytes: segment.len,
            counted: segment.len > 0 && is_writer,
            fragments: 1,
            refs: 1,
            ..Datagram::default()
        };
        UnfragmentedDatagram { datagram, sender: self.sender as u32, states: self.states, ecn }
    }
}

impl Egress<'_> {
    /// Sends the datagram with the next free index `id`, whose segment is already formed there. If it needs the slow path, `ready_segment` gets its index. Returns the
    /// reason why the send loop must pause, if any.
    #[inline(always)]
    fn try_send_segment(
        &mut self,
        id: u32,
        whole: &UnfragmentedDatagram,
        ready_segment: &mut u32,
        shared: &mut SharedState,
        act: &mut SendLoop,
    ) -> Option<Pause> {
        match self.send(id, whole, shared, &mut act.arrival) {
            FastPathResult::ArrivesAt(at) if at <= self.last => Some(Pause::DeliveredAhead(id, at)),
            FastPathResult::NeedsSlowPath => {
                let datagram = Datagram { begun: self.now, ..whole.datagram.clone() };
                shared.datagrams.insert_next(id, datagram, Packet::NONE);
                *ready_segment = id;
                Some(Pause::Formed)
            }
            _ => None,
        }
    }
}

impl Links<'_> {
    /// Sends the message that a process has ready as one packet, and prepares its next message. It must cost the host no CPU time. Returns `None`, without
    /// effect, if the slow path must take it.
    #[inline(always)]
    pub(crate) fn send_message(&mut self, process: usize, hosts: &mut Hosts) -> Option<Departed> {
        let Self { frames, shared, clock } = self;
        let Hosts { processes, nics, .. } = hosts;
        let this = &mut processes[process];
        let EgressPath::Frames { route } = this.way else { return None };
        if this.is_copied
            || this.fragments.count > 1
            || !shared.fast_path_allowed()
            || shared.reports.is_some()
        {
            return None;
        }
        let mut exit = Egress::of(&nics[this.nic], route, frames, clock);
        let datagram = Datagram {
            flow: this.flow as u32,
            index: this.messages,
            header: UDP_HEADER_BYTES as u32,
            bytes: this.message as u32,
            counted: true,
            fragments: 1,
            refs: 1,
            ..Datagram::default()
        };
        let whole =
            UnfragmentedDatagram { datagram, sender: process as u32, states: None, ecn: Ecn::NotCapable };
        let (id, mut arrival) = (shared.datagrams.next(), None);
        let FastPathResult::ArrivesAt(at) = exit.send(id, &whole, shared, &mut arrival) else {
            return None;
        };
        let progress = if at <= exit.last { Progress::Ahead(at) } else { Progress::Rests(arrival) };
        this.messages += 1;
        let due = this.next_message().max(clock.now);
        let wake = (due, this.flow, Event::ProcessWake(process as u32));
        Some(([Some(wake), None], Some((id, progress))))
    }

    /// Sends and writes until neither is possible any more, and then records the sender state.
    #[inline(always)]
    pub(crate) fn send_and_write(&mut self, act: &mut SendLoop, hosts: &mut Hosts) -> Pause {
        act.states = self.shared.ledger.states_of_writer(act.endpoint);
        let pause = self.send_and_write_until_pause(act, hosts);
        if matches!(pause, Pause::Ends) && act.states.is_some() {
            let (this, now) = (&hosts.endpoints[act.endpoint], self.clock.now);
            let wait = match act.limited {
                None => SenderState::Cpu,
                // Shortcut for the most common reason, without the checks of `sender_state`.
                Some(LimitedBy::CongestionWindow) if this.connection.has_room_for_segment() => {
                    SenderState::CongestionWindow
                }
                Some(limited) => this.sender_state(limited, now),
            };
            self.shared.ledger.set_state_at(act.states, now, wait);
        }
        pause
    }

    /// Sends the acknowledgments and other segments of a receive-only endpoint.
    #[inline(always)]
    pub(crate) fn send_as_reader(&mut self, act: &mut SendLoop, hosts: &mut Hosts) -> Pause {
        let Self { frames, shared, clock } = self;
        let this = &mut hosts.endpoints[act.endpoint];
        if std::mem::replace(&mut act.resumed, true) && this.is_quiescent() {
            return Pause::Ends;
        }
        let mut exit = Egress::of(&hosts.nics[this.nic as usize], act.route, frames, clock);
        loop {
            let id = shared.datagrams.next();
            let segment = shared.datagrams.segment_mut(id);
            if this.connection.next_segment(Time(clock.now), segment).is_err() {
                return Pause::Ends;
            }
            let mut whole = act.whole(this.flow, segment, false);
            whole.datagram.index = this.connection.segments_sent();
            let pause = exit.try_send_segment(id, &whole, &mut this.ready_segment, shared, act);
            if let Some(pause) = pause {
                return pause;
            }
            if this.is_quiescent() {
                return Pause::Ends;
            }
        }
    }

    /// Sends and writes until something outside the endpoint, its NIC and its first line is needed.
    #[inline(always)]
    fn send_and_write_until_pause(&mut self, act: &mut SendLoop, hosts: &mut Hosts) -> Pause {
        let Self { frames, shared, clock } = self;
        let (now, endpoint) = (clock.now, act.endpoint);
        let Endpoint { connection, application, ready_segment, nic, flow, .. } =
            &mut hosts.endpoints[endpoint];
        let nic = &hosts.nics[*nic as usize];
        let connection = connection.whole();
        let application = application.as_mut().expect("the fast path runs at a writing endpoint");
        loop {
            if !act.is_shut() {
                let ended = match connection.start_burst(Time(now)) {
                    Ok(mut burst) => {
                        let mut exit = Egress::of(nic, act.route, frames, clock);
                        let mut whole = act.whole(*flow, burst.pattern(), true);
                        while burst.goes_on() {
                            let id = shared.datagrams.next();
                            connection.next_in_burst(&mut burst, Time(now), shared.datagrams.segment_mut(id));
                            whole.datagram.index = connection.segments_sent();
                            let pause = exit.try_send_segment(id, &whole, ready_segment, shared, act);
                            if let Some(pause) = pause {
                                return pause;
                            }
                        }
                        connection.limited_by_after(&burst)
                    }
                    Err(limited) => limited,
                };
                act.limited = match ended {
                    None => {
                        let (id, new) = (shared.datagrams.next(), connection.next_sequence());
                        let segment = shared.datagrams.segment_mut(id);
                        match connection.next_segment(Time(now), segment) {
                            Ok(()) => {
                                let mut whole = act.whole(*flow, segment, true);
                                whole.datagram.resent = segment.seq < new;
                                whole.datagram.index = connection.segments_sent();
                                let mut exit = Egress::of(nic, act.route, frames, clock);
                                match exit.try_send_segment(id, &whole, ready_segment, shared, act) {
                                    Some(pause) => return pause,
                                    None => continue,
                                }
                            }
                            Err(reason) => Some(reason),
                        }
                    }
                    limited => limited,
                };
            }
            if application.copying > 0 {
                return Pause::Ends;
            }
            if application.left == 0 {
                act.wake = application.next_write(endpoint, *flow as usize, clock);
            }
            let left = application.left.into();
            if act.is_shut() {
                let bytes = connection.copy(Time(now), left);
                application.left -= bytes as u32;
                if bytes == 0 || bytes < left {
                    return Pause::Ends;
                }
                continue;
            }
            let bytes = connection.next_copy(left);
            if bytes == 0 {
                return Pause::Ends;
            }
            application.left -= bytes as u32;
            connection.put(Time(now), bytes, application.left == 0);
        }
    }
}

impl Hosts {
    /// Sends and writes where the fast path does not serve, until a segment is formed or neither is possible any more. The CPU must be idle.
    #[inline(always)]
    pub(crate) fn send_and_write(
        &mut self,
        act: &mut SendLoop,
        shared: &mut SharedState,
        clock: &Clock,
    ) -> Pause {
        let (now, endpoint, sender) = (clock.now, act.endpoint, act.sender);
        let resumed = std::mem::replace(&mut act.resumed, true);
        if resumed && self.endpoints[endpoint].is_quiescent() {
            return Pause::Ends;
        }
        if !self.endpoints[endpoint].is_open() {
            shared.ledger.set_sender_state(sender, now, SenderState::Application);
            return Pause::Ends;
        }
        loop {
            // If a window holds data back, further writes cannot make segments go.
            if !act.is_shut() {
                match self.form_segment(endpoint, shared, now) {
                    Ok(_) => return Pause::Formed,
                    Err(reason) => act.limited = Some(reason),
                }
            }
            let this = &mut self.endpoints[endpoint];
            let (copies, wake) = this.next_copy(endpoint, clock);
            act.wake = wake;
            if !copies {
                let state = |limited| this.sender_state(limited, now);
                shared.ledger.set_sender_state(sender, now, act.limited.map_or(SenderState::Cpu, state));
                return Pause::Ends;
            }
            this.commit_write(now);
        }
    }
}
