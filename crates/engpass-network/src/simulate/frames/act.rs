//! What an endpoint sends and writes within one act, where that costs its host nothing and its packets go as frames that nobody watches.

use engpass_model::queue::Ecn;
use engpass_model::tcp::LimitedBy;
use engpass_model::time::Time;

use super::exit::{Exit, Whole, Whose};
use super::port::Passed;
use super::{Frames, Packet};
use crate::simulate::Network;
use crate::simulate::arena::Arena;
use crate::simulate::event::Events;
use crate::simulate::fabric::Fabric;
use crate::simulate::ledger::Wait;
use crate::simulate::tcp::Endpoint;

/// Where an endpoint that writes is in its act.
struct Act {
    this: Acting,
    /// Why it has sent no more.
    limited: Option<LimitedBy>,
    /// The next write was asked for: a piece of it is copied, if there is any.
    asked: bool,
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

/// Why an act does not simply go on.
enum Pause {
    /// The next port is told of a packet, which comes to the step at a place, and when.
    Told(u32, u32, u64),
    /// The segment that is formed enters the NIC in the way of all packets, or waits for it.
    Formed,
    /// The application's next write begins.
    Write,
    /// The endpoint can neither send nor write any more.
    Ends,
}

impl Exit<'_> {
    /// What `this` has formed as the next datagram's segment goes on the line, if nothing is in its way. What an end that only reads says does
    /// not count.
    #[inline(always)]
    fn send_segment(
        &mut self,
        acting: Acting,
        this: &mut Endpoint,
        packets: &mut Arena<Packet>,
        fabric: &mut Fabric,
        events: &mut Events,
    ) -> Option<Pause> {
        let id = fabric.datagrams.next();
        let segment = fabric.segment_of(id);
        let (header, len) = (segment.header_len() as u32, segment.len);
        let ecn = match (segment.ect, segment.ce) {
            (_, true) => Ecn::Marked,
            (true, _) => Ecn::Capable,
            _ => Ecn::NotCapable,
        };
        let whole = Whole {
            flow: this.flow,
            index: this.connection.segments_sent(),
            to: Some(acting.endpoint as u32 ^ 1),
            sender: acting.sender as u32,
            header,
            bytes: len,
            counted: len > 0 && this.application.is_some(),
            ecn,
        };
        let now = self.now;
        let passed = self.send(whole, packets, fabric, events, Whose::Endpoint(acting.states));
        match passed {
            Passed::On(at) if at <= self.last => Some(Pause::Told(self.packet, self.route.first + 1, at)),
            Passed::Odd => {
                this.formed = fabric.datagrams.insert(whole.datagram(now, false));
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
        let states = self.fabric.ledger.states_of(sender);
        let this = Acting { endpoint, sender, states, route };
        let mut act = Act { this, limited: None, asked: false };
        loop {
            match self.go_on_with(&mut act) {
                Pause::Write => {
                    self.next_write(endpoint);
                    act.asked = true;
                }
                Pause::Ends => break,
                other => {
                    if !self.hand_over_after(this, other) {
                        return;
                    }
                }
            }
        }
        if states.is_some() {
            let wait = match act.limited {
                None => Wait::Cpu,
                // What nearly all wait for.
                Some(LimitedBy::CongestionWindow) => Wait::CongestionWindow,
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
            let segment = fabric.segment_of(fabric.datagrams.next());
            if this.connection.next_segment(Time(now), segment).is_err() {
                return;
            }
            let Frames { ports, packets, steps, routes, .. } = frames;
            let nic = &nics[this.nic as usize];
            let mut exit = Exit::of(nic, routes[route as usize], (ports, steps), (now, end));
            if let Some(pause) = exit.send_segment(acting, this, packets, fabric, events)
                && !self.hand_over_after(acting, pause)
            {
                return;
            }
            if self.endpoints[endpoint].is_silent() {
                return;
            }
        }
    }

    /// A packet of which the next port is told goes on, or the segment that is formed enters the NIC in the way of all packets. Returns whether
    /// that has not to wait.
    #[inline(always)]
    fn hand_over_after(&mut self, this: Acting, pause: Pause) -> bool {
        if let Pause::Told(id, place, at) = pause {
            self.go(id, place, at, false);
            return true;
        }
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
        let now = self.now;
        let Self { endpoints, frames, fabric, events, nics, .. } = self;
        let this = &mut endpoints[act.this.endpoint];
        let Frames { ports, packets, steps, routes, .. } = frames;
        let nic = &nics[this.nic as usize];
        let mut exit = Exit::of(nic, routes[act.this.route as usize], (ports, steps), (now, self.end));
        let mut flight = this.connection.flight();
        loop {
            // What a window keeps back stays there, whatever more is written.
            let shut = matches!(act.limited, Some(LimitedBy::CongestionWindow | LimitedBy::ReceiveWindow));
            if !shut && !act.asked {
                let segment = fabric.segment_of(fabric.datagrams.next());
                let formed = this.connection.next_of(&mut flight, Time(now), segment);
                act.limited = formed.err();
                if formed.is_ok() {
                    match exit.send_segment(act.this, this, packets, fabric, events) {
                        None => continue,
                        Some(pause) => return pause,
                    }
                }
            }
            let Some(application) = &mut this.application else { return Pause::Ends };
            if application.copying > 0 {
                return Pause::Ends;
            }
            if application.left == 0 && !act.asked {
                return Pause::Write;
            }
            act.asked = false;
            let (connection, left) = (this.connection.whole(), application.left.into());
            if shut {
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
            flight = connection.flight();
        }
    }
}
