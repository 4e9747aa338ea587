//! The accounts of a line (docs/ledger.md), computed from the postings.
//!
//! The state is in `../accounts.rs`.

use std::collections::BTreeMap;

use engpass_model::wire::Framing;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_testbed::topology::LinkEnds;

use super::Engine;
use crate::accounts::{Accounts, Unit};
use crate::cell::LineId;
use crate::idle_reasons::by_largest_remainders;
use crate::ledger::{Datagram, Fate};
use crate::line_usage::{Carried, CarriedPacket, Cut};
use crate::wire::{cells, ethernet_header, ethernet_padding};

impl Engine<'_> {
    /// Returns the accounts of every line up to `at`, by link and end.
    pub(crate) fn accounts(&self, at: u64) -> BTreeMap<(usize, usize), Accounts> {
        let links = 0..self.topology.links.len();
        let lines = links.flat_map(|link| [0, 1].map(|end| LineId { link, end }));
        lines.map(|line| (line.position(), self.accounts_of(at, line))).collect()
    }

    fn accounts_of(&self, at: u64, line: LineId) -> Accounts {
        let link = &self.topology.links[line.link];
        let own = link.lines[line.end];
        let unit = Unit::of(own);
        let at = at.max(self.books.from());
        let mut accounts = Accounts::new();
        let mut put = |account: &str, parts: u128| {
            if parts > 0 {
                *accounts.entry(account.to_owned()).or_default() += parts;
            }
        };
        let from = self.books.from();
        let (carriers, units) = self.books.sent.get(&line).copied().unwrap_or_default();
        let (carriers, units) = (u128::from(carriers), u128::from(units));
        // Parts of transmissions that the window edges clip: of the one across the begin, the part after it; of the one in progress at `at`, the part
        // before `at`, but not before the begin.
        let mut cut_off = 0;
        if let Some(&cut) = self.books.cut.get(&line) {
            cut_off += unit.before(u64::MAX, cut) - unit.before(from, cut);
        }
        if let Some(cut) = self.under_way(line) {
            cut_off += unit.before(at, cut) - unit.before(from, cut);
        }
        let cut_off = cut_off * unit.grain / unit.pace.0;
        let capacity = u128::from(at - from) * u128::from(own.rate) * unit.parts / 1_000_000_000_000;
        let idle = capacity - units * unit.grain - cut_off;
        let framed = |parts: u128| match link.medium.frames_idle_time() {
            true => parts * unit.framing / unit.grain,
            false => 0,
        };
        let cells = matches!(own.framing, Framing::Cells { .. });
        let physical = if cells { units * unit.framing } else { carriers * unit.around * 8 };
        put("physical framing", physical + framed(cut_off) + framed(idle));
        for (reason, parts) in by_largest_remainders(idle - framed(idle), &self.reasons_of(at, line)) {
            put(reason.account(), parts);
        }
        put("in flight", cut_off - framed(cut_off));
        let unit_parts = if cells { 384 * unit.parts } else { 8 };
        if cells {
            put("cell headers", units * 40 * unit.parts);
        }
        for (&(_, datagram), carried) in self.books.carried.range((line, 0)..=(line, usize::MAX)) {
            let this = self.ledger.datagram(datagram);
            let parts = u128::from(carried.units) * unit_parts;
            match self.ledger.fate(datagram) {
                _ if this.generated => {
                    put(&format!("generator: {}", self.topology.flows[this.flow].name), parts)
                }
                _ if this.controls() => put("ACK and control", parts),
                Fate::Received if !self.is_partly(line, datagram, carried) => {
                    for (account, bytes) in self.layers(link, this, carried) {
                        put(account, u128::from(bytes) * 8 * unit.parts);
                    }
                }
                Fate::Lost => put("lost datagrams", parts),
                _ => put("in flight", parts),
            }
        }
        accounts
    }

    /// Returns the transmission in progress.
    fn under_way(&self, line: LineId) -> Option<Cut> {
        match self.lines.get(&line) {
            Some(cells) => cells.begun().map(|(base, before)| Cut { base, units: (before, before + 1) }),
            None => {
                let this = &self.frame_lines[&line];
                let (base, before) = this.begun()?;
                let bytes = this.sending.map_or(0, |sending| sending.bytes);
                Some(Cut { base, units: (before, before + bytes) })
            }
        }
    }

    /// Returns the bytes of a delivered datagram's packets on a line by account, without physical framing and cell headers.
    fn layers(&self, link: &LinkEnds, datagram: &Datagram, carried: &Carried) -> Vec<(&'static str, u64)> {
        let mut layers = Vec::new();
        let (mut payload, mut duplicate) = (0, 0);
        // The refused bytes are at the end of the payload.
        let wanted = datagram.bytes() - datagram.refused;
        for &CarriedPacket { tunnels, offset, bytes, vc } in &carried.packets {
            let header = datagram.header.saturating_sub(offset).min(bytes);
            payload += bytes - header;
            duplicate += (offset + bytes).saturating_sub(wanted.max(offset + header));
            layers.push(("IP headers", IP_HEADER_BYTES));
            layers.push(("tunnel headers", tunnels));
            layers.push(("transport headers", header));
            let ip = IP_HEADER_BYTES + tunnels + bytes;
            match link.lines[0].framing {
                Framing::Cells { .. } => {
                    let sdu = self.sdu(vc.expect("a cell flow has a circuit"), ip);
                    layers.push(("encapsulation", sdu - ip));
                    layers.push(("AAL5 trailers", 8));
                    layers.push(("padding", cells(sdu) * 48 - sdu - 8));
                }
                Framing::Ethernet => {
                    layers.push(("frame headers", ethernet_header(link)));
                    layers.push(("padding", ethernet_padding(link, ip)));
                }
                Framing::Packets => layers.push(("frame headers", link.overhead)),
            }
        }
        layers.push(("delivered", payload - duplicate));
        layers.push(("duplicate", duplicate));
        layers
    }
}
