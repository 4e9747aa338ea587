//! Fast path of a TCP act: all that an endpoint sends and writes at one instant, as frames, without CPU cost and captures.

use engpass_frames::{FastPathResult, Packet};
use engpass_ledger::SenderState;
use engpass_model::queue::Ecn;
use engpass_model::tcp::{LimitedBy, Segment};
use engpass_model::time::Time;

use super::egress::{Egress, SenderRef, UnfragmentedDatagram};
use crate::Network;
use crate::endpoint::Endpoint;
use crate::event_queue::EventQueue;
use crate::host::Hosts;
use crate::packet_store::Destination;
use crate::shared_state::SharedState;

/// State of an act: an endpoint with an application sends and writes at one instant.
struct SendLoop {
    this: SendContext,
    /// Reason why the endpoint sends no more segments; `None` while it may.
    limited: Option<LimitedBy>,
    /// True if the application's next write has begun and its first part is still to be copied.
    write_begun: bool,
}

impl SendLoop {
    /// Returns true if a window holds back unsent data. Further writes then cannot send anything.
    #[inline(always)]
    fn is_shut(&self) -> bool {
        matches!(self.limited, Some(LimitedBy::CongestionWindow | LimitedBy::ReceiveWindow))
    }
}

/// The endpoint that acts, with what it looks up once.
#[derive(Clone, Copy)]
struct SendContext {
    endpoint: usize,
    sender: usize,
    /// Index of the endpoint's sender states in the ledger; `None` if the ledger keeps none.
    states: Option<usize>,
    route: u32,
}

impl SendContext {
    /// Returns the datagram of a segment, with `index` still to be set.
    #[inline(always)]
    fn whole(self, flow: u32, segment: &Segment, is_writer: bool) -> UnfragmentedDatagram {
        let ecn = match (segment.ect, segment.ce) {
            (_, true) => Ecn::Marked,
            (true, _) => Ecn::Capable,
            _ => Ecn::NotCapable,
        };
        UnfragmentedDatagram {
            flow,
            index: 0,
            to: Destination::endpoint(self.endpoint ^ 1),
            sender: self.sender as u32,
            header: segment.header_len() as u32,
            bytes: segment.len,
            counted: segment.len > 0 && is_writer,
            resent: false,
            ecn,
        }
    }
}

/// Reason why the send loop of an act stops.
enum LoopBreak {
    /// A packet was handed to the next step ahead of time (lookahead): packet number, and instant of arrival.
    DeliveredAhead(u32, u64),
    /// The formed segment must take the slow path into the NIC, or wait for it.
    Formed,
    /// A segment outside a segment burst is formed and may be sent; true if its data was sent before.
    Other(bool),
    /// The application's next write begins.
    Write,
    /// The endpoint can neither send nor write any more.
    Ends,
}

impl Egress<'_> {
    /// Sends the datagram with the next free index `id`, whose segment is already formed there. If it needs the slow path, `ready_segment` gets its index. Returns the
    /// reason why the send loop must stop, if any.
    #[inline(always)]
    fn try_send_segment(
        &mut self,
        id: u32,
        whole: UnfragmentedDatagram,
        states: Option<usize>,
        ready_segment: &mut u32,
        shared: &mut SharedState,
        events: &mut EventQueue,
    ) -> Option<LoopBreak> {
        match self.send(id, whole, shared, events, SenderRef::Endpoint(states)) {
            FastPathResult::ArrivesAt(at) if at <= self.last => Some(LoopBreak::DeliveredAhead(id, at)),
            FastPathResult::NeedsSlowPath => {
                shared.datagrams.insert_next(id, whole.datagram(self.now, false), Packet::NONE);
                *ready_segment = id;
                Some(LoopBreak::Formed)
            }
            _ => None,
        }
    }
}

impl Network {
    /// Sends and writes until neither is possible any more, and records the sender state.
    #[inline(never)]
    pub(crate) fn send_and_write_fast_path(&mut self, endpoint: usize, route: u32) {
        let sender = self.shared.processes + endpoint;
        let states = self.shared.ledger.states_of_writer(endpoint);
        let this = SendContext { endpoint, sender, states, route };
        let mut act = SendLoop { this, limited: None, write_begun: false };
        loop {
            let pause = match self.run_send_loop(&mut act) {
                LoopBreak::Write => {
                    let wake = self.hosts.endpoints[endpoint].next_write(endpoint, &self.clock);
                    self.clock.schedule(wake);
                    act.write_begun = true;
                    continue;
                }
                LoopBreak::Ends => break,
                LoopBreak::Other(resent) => self.try_send_formed_segment(this, resent),
                other => Some(other),
            };
            if let Some(pause) = pause
                && !self.complete_send(this, pause)
            {
                return;
            }
        }
        if states.is_some() {
            let wait = match act.limited {
                None => SenderState::Cpu,
                // Shortcut for the most common reason, without the checks of `sender_state`.
                Some(LimitedBy::CongestionWindow)
                    if self.hosts.endpoints[endpoint].connection.has_room_for_segment() =>
                {
                    SenderState::CongestionWindow
                }
                Some(limited) => self.hosts.endpoints[endpoint].sender_state(limited, self.clock.now),
            };
            self.shared.ledger.set_state_at(states, self.clock.now, wait);
        }
    }

    /// Sends the acknowledgments and other segments of a receive-only endpoint.
    #[inline(never)]
    pub(crate) fn send_receiver_segments_fast_path(&mut self, endpoint: usize, route: u32) {
        // The ledger keeps no states of receive-only endpoints.
        let acting = SendContext { endpoint, sender: self.shared.processes + endpoint, states: None, route };
        loop {
            let now = self.clock.now;
            let Self { clock, hosts: Hosts { endpoints, nics, .. }, frames, shared, .. } = self;
            let this = &mut endpoints[endpoint];
            let id = shared.datagrams.next();
            let segment = shared.datagrams.segment_mut(id);
            if this.connection.next_segment(Time(now), segment).is_err() {
                return;
            }
            let whole = acting.whole(this.flow, segment, false);
            let whole = UnfragmentedDatagram { index: this.connection.segments_sent(), ..whole };
            let nic = &nics[this.nic as usize];
            let mut exit = Egress::of(nic, route, frames, clock);
            if let Some(pause) =
                exit.try_send_segment(id, whole, None, &mut this.ready_segment, shared, &mut clock.events)
                && !self.complete_send(acting, pause)
            {
                return;
            }
            if self.hosts.endpoints[endpoint].is_quiescent() {
                return;
            }
        }
    }

    /// Sends the segment that an endpoint has formed at the next free datagram index. Returns the reason why the send loop must stop, if any.
    #[inline(never)]
    fn try_send_formed_segment(&mut self, acting: SendContext, resent: bool) -> Option<LoopBreak> {
        let Self { clock, hosts: Hosts { endpoints, nics, .. }, frames, shared, .. } = self;
        let this = &mut endpoints[acting.endpoint];
        let nic = &nics[this.nic as usize];
        let mut exit = Egress::of(nic, acting.route, frames, clock);
        let id = shared.datagrams.next();
        let whole = acting.whole(this.flow, shared.datagrams.segment(id), true);
        let whole = UnfragmentedDatagram { index: this.connection.segments_sent(), resent, ..whole };
        exit.try_send_segment(id, whole, acting.states, &mut this.ready_segment, shared, &mut clock.events)
    }

    /// Completes the transmission for which the send loop has stopped: forwards a packet that the next step got ahead of time (lookahead), or passes the formed
    /// segment to the NIC on the slow path. Returns false if the segment has to wait.
    #[inline(always)]
    fn complete_send(&mut self, this: SendContext, pause: LoopBreak) -> bool {
        if let LoopBreak::DeliveredAhead(id, at) = pause {
            self.forward(id, at, false);
            return true;
        }
        self.enqueue_formed_segment(this)
    }

    /// Passes the formed segment to the NIC on the slow path. Returns false if it has to wait.
    #[inline(never)]
    fn enqueue_formed_segment(&mut self, this: SendContext) -> bool {
        let ready_packet = self.hosts.endpoints[this.endpoint].ready_packet(&self.shared.datagrams);
        let enters = self.enter_nic_or_wait_with(this.sender, ready_packet);
        if enters {
            self.hosts.on_segment_in_nic(this.endpoint, &mut self.shared, self.clock.now);
        } else {
            self.hosts.endpoints[this.endpoint].busy = true;
        }
        enters
    }

    /// Sends and writes until something outside the endpoint, its NIC and its first line is needed.
    #[inline(always)]
    fn run_send_loop(&mut self, act: &mut SendLoop) -> LoopBreak {
        let now = self.clock.now;
        let Self { clock, hosts: Hosts { endpoints, nics, .. }, frames, shared, .. } = self;
        let Endpoint { connection, application, ready_segment, nic, flow, .. } =
            &mut endpoints[act.this.endpoint];
        let connection = connection.whole();
        let application = application.as_mut().expect("the fast path runs at a writing endpoint");
        loop {
            if !act.write_begun && !act.is_shut() {
                let ended = match connection.start_burst(Time(now)) {
                    Ok(mut burst) => {
                        let nic = &nics[*nic as usize];
                        let mut exit = Egress::of(nic, act.this.route, frames, clock);
                        let whole = act.this.whole(*flow, burst.pattern(), true);
                        while burst.goes_on() {
                            let id = shared.datagrams.next();
                            connection.next_in_burst(&mut burst, Time(now), shared.datagrams.segment_mut(id));
                            let whole = UnfragmentedDatagram { index: connection.segments_sent(), ..whole };
                            let states = act.this.states;
                            if let Some(pause) = exit.try_send_segment(
                                id,
                                whole,
                                states,
                                ready_segment,
                                shared,
                                &mut clock.events,
                            ) {
                                return pause;
                            }
                        }
                        connection.limited_by_after(&burst)
                    }
                    Err(limited) => limited,
                };
                act.limited = match ended {
                    None => {
                        let (next, new) = (shared.datagrams.next(), connection.next_sequence());
                        let segment = shared.datagrams.segment_mut(next);
                        match connection.next_segment(Time(now), segment) {
                            Ok(()) => return LoopBreak::Other(segment.seq < new),
                            Err(reason) => Some(reason),
                        }
                    }
                    limited => limited,
                };
            }
            if application.copying > 0 {
                return LoopBreak::Ends;
            }
            if application.left == 0 && !act.write_begun {
                return LoopBreak::Write;
            }
            act.write_begun = false;
            let left = application.left.into();
            if act.is_shut() {
                let bytes = connection.copy(Time(now), left);
                application.left -= bytes as u32;
                if bytes == 0 || bytes < left {
                    return LoopBreak::Ends;
                }
                continue;
            }
            let bytes = connection.next_copy(left);
            if bytes == 0 {
                return LoopBreak::Ends;
            }
            application.left -= bytes as u32;
            connection.put(Time(now), bytes, application.left == 0);
        }
    }
}
