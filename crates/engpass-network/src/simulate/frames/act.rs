//! What an endpoint sends and writes within one act, where that costs its host nothing and its packets go as frames that nobody watches.

use engpass_ledger::Wait;
use engpass_model::queue::Ecn;
use engpass_model::tcp::{LimitedBy, Segment};
use engpass_model::time::Time;

use super::exit::{Exit, Whole, Whose};
use super::port::Passed;
use super::{Frames, Packet};
use crate::simulate::Network;
use crate::simulate::datagrams::To;
use crate::simulate::event::Events;
use crate::simulate::fabric::Fabric;
use crate::simulate::tcp::Endpoint;

/// Where an endpoint that writes is in its act.
struct Act {
    this: Acting,
    /// Why it has sent no more.
    limited: Option<LimitedBy>,
    /// The next write was asked for: a piece of it is copied, if there is any.
    asked: bool,
}

impl Act {
    /// Whether a window keeps back what is not sent: it stays there, whatever more is written.
    #[inline(always)]
    fn is_shut(&self) -> bool {
        matches!(self.limited, Some(LimitedBy::CongestionWindow | LimitedBy::ReceiveWindow))
    }
}

/// An endpoint that acts.
#[derive(Clone, Copy)]
struct Acting {
    endpoint: usize,
    sender: usize,
    /// Where the books keep what it does, if they do.
    states: Option<usize>,
    route: u32,
}

impl Acting {
    /// The datagram of a segment that says this, but for its number.
    #[inline(always)]
    fn whole(self, flow: u32, segment: &Segment, is_writer: bool) -> Whole {
        let ecn = match (segment.ect, segment.ce) {
            (_, true) => Ecn::Marked,
            (true, _) => Ecn::Capable,
            _ => Ecn::NotCapable,
        };
        Whole {
            flow,
            index: 0,
            to: To::endpoint(self.endpoint ^ 1),
            sender: self.sender as u32,
            header: segment.header_len() as u32,
            bytes: segment.len,
            counted: segment.len > 0 && is_writer,
            ecn,
        }
    }
}

/// Why an act does not simply go on.
enum Pause {
    /// The next port is told of a packet, which comes to the step at a place, and when.
    Told(u32, u32, u64),
    /// The segment that is formed enters the NIC in the way of all packets, or waits for it.
    Formed,
    /// A segment is formed that is none of a flight, and may go on the line.
    Other,
    /// The application's next write begins.
    Write,
    /// The endpoint can neither send nor write any more.
    Ends,
}

impl Exit<'_> {
    /// The datagram whose place is the next one, where its segment is formed, goes on the line if nothing is in its way.
    #[inline(always)]
    fn send_whole(
        &mut self,
        id: u32,
        whole: Whole,
        states: Option<usize>,
        formed: &mut u32,
        fabric: &mut Fabric,
        events: &mut Events,
    ) -> Option<Pause> {
        match self.send(id, whole, fabric, events, Whose::Endpoint(states)) {
            Passed::On(at) if at <= self.last => Some(Pause::Told(id, self.route.first + 1, at)),
            Passed::Odd => {
                fabric.datagrams.insert_next(id, whole.datagram(self.now, false), Packet::NONE);
                *formed = id;
                Some(Pause::Formed)
            }
            _ => None,
        }
    }
}

impl Network {
    /// Send and write until neither goes on.
    #[inline(never)]
    pub(in crate::simulate) fn act_plainly(&mut self, endpoint: usize, route: u32) {
        let sender = self.processes.len() + endpoint;
        let states = self.fabric.ledger.states_of_writer(endpoint);
        let this = Acting { endpoint, sender, states, route };
        let mut act = Act { this, limited: None, asked: false };
        loop {
            let pause = match self.go_on_with(&mut act) {
                Pause::Write => {
                    self.next_write(endpoint);
                    act.asked = true;
                    continue;
                }
                Pause::Ends => break,
                Pause::Other => self.send_formed(this),
                other => Some(other),
            };
            if let Some(pause) = pause
                && !self.hand_over_after(this, pause)
            {
                return;
            }
        }
        if states.is_some() {
            let wait = match act.limited {
                None => Wait::Cpu,
                // The most common reason needs none of the other questions of `wait_of`.
                Some(LimitedBy::CongestionWindow)
                    if self.endpoints[endpoint].connection.has_room_for_segment() =>
                {
                    Wait::CongestionWindow
                }
                Some(limited) => self.wait_of(endpoint, limited),
            };
            self.fabric.ledger.waits_at(states, self.now, wait);
        }
    }

    /// Send what an end has to say that only reads.
    #[inline(never)]
    pub(in crate::simulate) fn answer_plainly(&mut self, endpoint: usize, route: u32) {
        // Nobody asks what it waits for.
        let acting = Acting { endpoint, sender: self.processes.len() + endpoint, states: None, route };
        loop {
            let (now, end) = (self.now, self.end);
            let Self { endpoints, frames, fabric, events, nics, .. } = self;
            let this = &mut endpoints[endpoint];
            let id = fabric.datagrams.next();
            let segment = fabric.datagrams.segment_mut(id);
            if this.connection.next_segment(Time(now), segment).is_err() {
                return;
            }
            let whole = acting.whole(this.flow, segment, false);
            let whole = Whole { index: this.connection.segments_sent(), ..whole };
            let Frames { ports, steps, routes, .. } = frames;
            let nic = &nics[this.nic as usize];
            let mut exit = Exit::of(nic, routes[route as usize], (ports, steps), (now, end));
            if let Some(pause) = exit.send_whole(id, whole, None, &mut this.formed, fabric, events)
                && !self.hand_over_after(acting, pause)
            {
                return;
            }
            if self.endpoints[endpoint].is_silent() {
                return;
            }
        }
    }

    /// What an endpoint has formed as the next datagram's segment goes on the line, if nothing is in its way.
    #[inline(never)]
    fn send_formed(&mut self, acting: Acting) -> Option<Pause> {
        let Self { endpoints, frames: Frames { ports, steps, routes, .. }, fabric, events, nics, .. } = self;
        let this = &mut endpoints[acting.endpoint];
        let (nic, route) = (&nics[this.nic as usize], routes[acting.route as usize]);
        let mut exit = Exit::of(nic, route, (ports, steps), (self.now, self.end));
        let id = fabric.datagrams.next();
        let whole = acting.whole(this.flow, fabric.datagrams.segment(id), true);
        let whole = Whole { index: this.connection.segments_sent(), ..whole };
        exit.send_whole(id, whole, acting.states, &mut this.formed, fabric, events)
    }

    /// A packet of which the next port is told goes on, or the segment that is formed enters the NIC in the way of all packets. Returns whether
    /// that has not to wait.
    #[inline(always)]
    fn hand_over_after(&mut self, this: Acting, pause: Pause) -> bool {
        if let Pause::Told(id, place, at) = pause {
            self.go(id, place, at, false);
            return true;
        }
        self.enter_formed(this)
    }

    /// The segment that is formed enters the NIC in the way of all packets. Returns whether it has not to wait.
    #[inline(never)]
    fn enter_formed(&mut self, this: Acting) -> bool {
        let sending = self.endpoints[this.endpoint].sending(&self.fabric.datagrams);
        let enters = self.enters_as(this.sender, sending);
        if enters {
            self.entered(this.endpoint);
        } else {
            self.endpoints[this.endpoint].busy = true;
        }
        enters
    }

    /// Go on as long as all it needs is at hand.
    #[inline(always)]
    fn go_on_with(&mut self, act: &mut Act) -> Pause {
        let (now, end) = (self.now, self.end);
        let Self { endpoints, frames, fabric, events, nics, .. } = self;
        let Endpoint { connection, application, formed, nic, flow, .. } = &mut endpoints[act.this.endpoint];
        let connection = connection.whole();
        let application = application.as_mut().expect("who acts writes");
        loop {
            if !act.asked && !act.is_shut() {
                let ended = match connection.flight(Time(now)) {
                    Ok(mut flight) => {
                        let Frames { ports, steps, routes, .. } = &mut *frames;
                        let (nic, route) = (&nics[*nic as usize], routes[act.this.route as usize]);
                        let mut exit = Exit::of(nic, route, (ports, steps), (now, end));
                        let whole = act.this.whole(*flow, flight.pattern(), true);
                        while flight.goes_on() {
                            let id = fabric.datagrams.next();
                            connection.next_of(&mut flight, Time(now), fabric.datagrams.segment_mut(id));
                            let whole = Whole { index: connection.segments_sent(), ..whole };
                            let states = act.this.states;
                            if let Some(pause) = exit.send_whole(id, whole, states, formed, fabric, events) {
                                return pause;
                            }
                        }
                        connection.limited_after(&flight)
                    }
                    Err(limited) => limited,
                };
                act.limited = match ended {
                    None => {
                        let next = fabric.datagrams.next();
                        match connection.next_segment(Time(now), fabric.datagrams.segment_mut(next)) {
                            Ok(()) => return Pause::Other,
                            Err(reason) => Some(reason),
                        }
                    }
                    limited => limited,
                };
            }
            if application.copying > 0 {
                return Pause::Ends;
            }
            if application.left == 0 && !act.asked {
                return Pause::Write;
            }
            act.asked = false;
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
