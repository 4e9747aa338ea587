//! What an endpoint sends and writes within one act, where that costs its host nothing and its packets go as frames that nobody watches.

use engpass_model::queue::Ecn;
use engpass_model::tcp::LimitedBy;
use engpass_model::time::Time;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::port::Passed;
use super::{Frames, Packet};
use crate::simulate::Network;
use crate::simulate::event::Event;
use crate::simulate::fabric::Datagram;
use crate::simulate::ledger::Wait;

/// Where an endpoint is in its act.
struct Act {
    endpoint: usize,
    sender: usize,
    /// Where the books keep what it does, if they do.
    states: Option<usize>,
    route: u32,
    /// Why it has sent no more.
    limited: Option<LimitedBy>,
    /// The next write was asked for: a piece of it is copied, if there is any.
    asked: bool,
}

/// Why an act does not simply go on.
enum Pause {
    /// The next port is told of a packet, which comes to the step at a place, and when.
    Told(u32, u32, u64),
    /// The application's next write begins.
    Write,
    /// The segment that is formed enters the NIC in the way of all packets, or waits for it.
    Formed,
    /// The endpoint can neither send nor write any more.
    Ends,
    /// It has nothing more to say.
    Silent,
}

impl Network {
    /// Send and write until neither goes on.
    #[inline(never)]
    pub(in crate::simulate) fn act_plainly(&mut self, endpoint: usize, route: u32) {
        let sender = self.processes.len() + endpoint;
        let states = self.fabric.ledger.states_of(sender);
        let mut act = Act { endpoint, sender, states, route, limited: None, asked: false };
        loop {
            match self.go_on_with(&mut act) {
                Pause::Told(id, place, at) => self.go(id, place, at, false),
                Pause::Write => {
                    self.next_write(endpoint);
                    act.asked = true;
                    continue;
                }
                Pause::Formed => {
                    let sending = self.endpoints[endpoint].sending(&self.fabric.datagrams);
                    if !self.enters_as(sender, sending) {
                        self.endpoints[endpoint].busy = true;
                        return;
                    }
                    self.entered(endpoint);
                }
                Pause::Ends => break,
                Pause::Silent => return,
            }
            if self.endpoints[endpoint].is_silent() {
                return;
            }
        }
        if states.is_some() {
            let wait = act.limited.map_or(Wait::Cpu, |limited| self.wait_of(endpoint, limited));
            self.fabric.ledger.waits_at(states, self.now, wait);
        }
    }

    /// Go on as long as all it needs is at hand.
    fn go_on_with(&mut self, act: &mut Act) -> Pause {
        let (now, end) = (self.now, self.end);
        let Self { endpoints, frames, fabric, events, nics, .. } = self;
        let this = &mut endpoints[act.endpoint];
        let route = frames.routes[act.route as usize];
        let Frames { ports, packets, steps, .. } = frames;
        let step = steps[route.first as usize];
        let line = &mut ports[step.port as usize];
        let nic = &nics[this.nic as usize];
        let last = if step.tells_port() { end } else { 0 };
        let mut flight = this.connection.flight();
        loop {
            // What a window keeps back stays there, whatever more is written.
            let shut = matches!(act.limited, Some(LimitedBy::CongestionWindow | LimitedBy::ReceiveWindow));
            if !shut && !act.asked {
                let id = fabric.datagrams.next();
                let segment = fabric.segment_of(id);
                let formed = this.connection.next_of(&mut flight, Time(now), segment);
                act.limited = formed.err();
                if formed.is_ok() {
                    let (header, len) = (segment.header_len() as u32, segment.len);
                    let ecn = match (segment.ect, segment.ce) {
                        (_, true) => Ecn::Marked,
                        (true, _) => Ecn::Capable,
                        _ => Ecn::NotCapable,
                    };
                    let ip = IP_HEADER_BYTES as u32 + header + len;
                    let counted = len > 0 && this.application.is_some();
                    let (occupied, _) = line.memory(now);
                    let room =
                        !nic.is_waited_for() && (occupied == 0 || occupied + u64::from(ip) <= nic.capacity);
                    let packet = packets.insert_with(|| Packet {
                        datagram: id,
                        ip,
                        sender: act.sender as u32,
                        step: route.first + 1,
                        first: route.first,
                        since: route.first,
                        ttl: route.ttl,
                        priority: route.priority,
                        ecn,
                    });
                    let passed = if room {
                        line.pass::<true>(now, ip, packet, last, &fabric.window)
                    } else {
                        Passed::Odd
                    };
                    let sent = !matches!(passed, Passed::Odd);
                    fabric.datagrams.insert_with(|| Datagram {
                        flow: this.flow,
                        index: this.connection.segments_sent(),
                        bytes: len,
                        fragments: 1,
                        train: false,
                        arrived: 0,
                        sent,
                        to: Some(act.endpoint as u32 ^ 1),
                        counted,
                        header,
                        begun: now,
                        lost: false,
                        // Of the packet, or of the endpoint.
                        holds: 1,
                        refused: 0,
                        lines: 0,
                        written: false,
                    });
                    if !sent {
                        packets.release(packet);
                        this.formed = id;
                        return Pause::Formed;
                    }
                    fabric.ledger.sends_packet(act.states, (counted, packet), now, line.free_at());
                    if line.watched {
                        fabric.ledger.shares_line(0, &fabric.datagrams[id], packet, ip, line);
                    }
                    if counted {
                        let tally = &mut fabric.flows[this.flow as usize];
                        tally.in_flight += 1;
                        if fabric.window.holds(now) {
                            tally.sent += 1;
                            tally.sent_bytes += u64::from(len);
                        }
                    }
                    match passed {
                        Passed::Told(at) => return Pause::Told(packet, route.first + 1, at),
                        Passed::Awaited(at) => {
                            events.push(at, line.port as usize, Event::Arrive(step.port));
                        }
                        _ => {}
                    }
                    if this.is_silent() {
                        return Pause::Silent;
                    }
                    continue;
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
