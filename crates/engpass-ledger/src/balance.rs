//! Closes the ledger of a line: every bit-time is in one account, and the accounts balance.

use engpass_model::time::SECOND;
use engpass_model::wire::layers::{Layer, Wire};
use engpass_testbed::Topology;

use super::accounts::{Accounts, CONTROL, DEAD, DELIVERED, DUPLICATE, IN_FLIGHT};
use super::idle_reasons::{REASONS, Reasons, account};
use super::{DataUsage, Datagrams, Ledger, Line, LineSenders, LineUsage};

/// Error: the ledger of a line does not balance. The text names the link, the quantity and the difference. It is a bug of the program, never of a testbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbalanced(pub String);

/// The closed ledger of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineLedger {
    /// Parts of the line by account.
    pub accounts: Accounts,
    /// Parts of the line in the window.
    pub capacity: u128,
    /// Parts per bit.
    pub parts_per_bit: u64,
    /// Picoseconds in which the line was idle.
    pub idle: u64,
    /// Usage counts of each flow direction, in the order of the line's usage records.
    pub usages: Vec<LineUsageStats>,
}

/// Usage counts of one flow direction on one direction of a link. Another engine must find the same counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineUsageStats {
    /// Index of the traffic.
    pub flow: usize,
    /// True if the packets flow against the flow's data, as acknowledgments do.
    pub against: bool,
    /// Delivered datagrams of a `udp-stream` that the line carried completely in the window.
    pub whole: u64,
    /// Cells of lost datagrams. Here and below, a frame line counts bytes without the physical framing instead of cells.
    pub dead: u64,
    /// Cells of datagrams that were delivered but partly carried outside of the window, or neither delivered nor lost.
    pub in_flight: u64,
    /// Cells of segments and other packets without data.
    pub control: u64,
    /// Cells of a generator.
    pub generated: u64,
}

/// The line that an error names.
struct Imbalance<'a> {
    topology: &'a Topology,
    port: usize,
}

impl Imbalance<'_> {
    /// Fails with a message that has `what` and the difference, unless both sides are equal.
    fn check_equal(&self, what: &str, one: i128, other: i128) -> Result<(), Unbalanced> {
        if one == other {
            return Ok(());
        }
        let link = &self.topology.links[self.port / 2];
        let ends = [self.port % 2, 1 - self.port % 2].map(|end| &self.topology.nodes[link.ends[end]]);
        Err(Unbalanced(format!(
            "the ledger of link `{}` ({} -> {}) does not balance: {what} by {}",
            link.name,
            ends[0],
            ends[1],
            one - other
        )))
    }
}

impl Ledger {
    /// Closes the ledger of a port and returns its accounts. For a cell line, `cells` is the number of cells that left in the window. Fails if unbalanced.
    pub fn close(
        &self,
        topology: &Topology,
        port: usize,
        cells: Option<u64>,
    ) -> Result<LineLedger, Unbalanced> {
        if !self.on {
            return Ok(LineLedger::default());
        }
        let wrong = Imbalance { topology, port };
        let line = &self.lines[port];
        let [from, end] = line.edges;
        let reasons = self.idle_by_reason(port);
        let (idle, by_reason) = (end.idle - from.idle, reasons.iter().sum::<u64>());
        wrong.check_equal("idle time by reason exceeds idle time, in ps,", by_reason.into(), idle.into())?;

        // Time first: sent and idle time, both measured, must add up to the window.
        let sent = line.sent(cells);
        let measured = self.window.end - self.window.from.unwrap_or(0);
        let (cut_off, told) = (line.ticks_cut_off(), line.ticks_idle());
        wrong.check_equal(
            "time sent and time idle exceed the time, in ticks,",
            i128::from(sent.grains) * i128::from(line.ticks) + cut_off + told,
            i128::from(measured) * i128::from(line.ticks_per_ps),
        )?;

        // The capacity that is not used must be the measured idle time, except for the parts lost by rounding.
        let capacity = u128::from(measured) * line.rate / u128::from(SECOND);
        let (cut_off, told) = (line.parts(cut_off), line.parts(told));
        let carried = u128::from(sent.grains) * u128::from(line.grain);
        let left = capacity as i128 - (carried + cut_off) as i128;
        if left < 0 || left.unsigned_abs().abs_diff(told) > 2 {
            wrong.check_equal("parts idle exceed the time idle", left, told as i128)?;
        }
        let left = left.unsigned_abs();

        // Then check the bits: those posted by delivery status must be those sent.
        let mut accounts = self.carried_over(line, topology);
        let [physical, header] =
            [line.physical, line.header].map(|parts| u128::from(sent.carriers) * u128::from(parts));
        wrong.check_equal(
            "parts posted exceed parts sent",
            accounts.total() as i128,
            (carried - physical - header) as i128,
        )?;
        let framing = |parts: u128| {
            if line.framed { parts * u128::from(line.physical) / u128::from(line.grain) } else { 0 }
        };
        let (of_cut_off, of_left) = (framing(cut_off), framing(left));
        accounts.named[Layer::Physical as usize] = physical + of_cut_off + of_left;
        accounts.named[Layer::CellHeader as usize] = header;
        accounts.named[IN_FLIGHT] += cut_off - of_cut_off;
        let outside =
            self.deferred.is_some() && matches!(line.user, LineSenders::Sole(_) | LineSenders::Shared);
        for (reason, parts) in divide(left - of_left, &reasons).into_iter().enumerate() {
            accounts.named[account(reason, outside)] += parts;
        }
        let total = accounts.total();
        wrong.check_equal("the accounts exceed the capacity", total as i128, capacity as i128)?;
        let seen = line.usages.iter().map(|usage| self.usages[*usage as usize].seen());
        Ok(LineLedger { usages: seen.collect(), accounts, capacity, parts_per_bit: line.parts_per_bit, idle })
    }

    /// Adds up the usage records of a line: all that it carried completely in the window, without physical framing and cell headers.
    fn carried_over(&self, line: &Line, topology: &Topology) -> Accounts {
        let mut accounts = Accounts::default();
        let unit = u128::from(line.unit);
        for usage in line.usages.iter().map(|usage| &self.usages[*usage as usize]) {
            let plain = u128::from(usage.plain) * unit;
            if usage.generates {
                accounts.put_generated(&topology.flows[usage.flow as usize].name, plain);
            } else {
                accounts.named[CONTROL] += plain;
            }
            let Some(data) = usage.data.as_deref() else { continue };
            let wire = &self.entries[usage.entry as usize].wire;
            for layer in Layer::ALL.into_iter().skip_while(|layer| *layer <= Layer::CellHeader) {
                accounts.named[layer as usize] += data.parts(layer, wire);
            }
            accounts.named[DUPLICATE] += u128::from(data.duplicate);
            accounts.named[DEAD] += u128::from(data.dead) * unit;
            accounts.named[IN_FLIGHT] += u128::from(data.in_flight) * unit;
        }
        accounts.named[DELIVERED] -= accounts.named[DUPLICATE];
        accounts
    }
}

/// Number of cells or frames, and of grains, that a line sent completely in the window.
struct Sent {
    carriers: u64,
    grains: u64,
}

impl Line {
    /// Returns what the line sent completely in the window. For a cell line, `cells` is the number of cells that left in it.
    fn sent(&self, cells: Option<u64>) -> Sent {
        match cells {
            // The first cell may have begun before the window.
            Some(cells) => {
                let counted = cells - u64::from(self.cut.is_some()).min(cells);
                Sent { carriers: counted, grains: counted }
            }
            None => Sent { carriers: self.frames, grains: self.bytes },
        }
    }

    /// Returns the idle time in the window, in ticks.
    fn ticks_idle(&self) -> i128 {
        let [from, end] = self.edges;
        let ps = i128::from(end.idle) - i128::from(from.idle);
        ps * i128::from(self.ticks_per_ps) + i128::from(end.rounding) - i128::from(from.rounding)
    }

    /// Returns the time in the window that the transmissions across its edges take, in ticks.
    fn ticks_cut_off(&self) -> i128 {
        let [from, end] = self.edges;
        // A transmission that is longer than the window is in progress at both edges.
        self.cut.unwrap_or(0) as i128 + end.begun as i128 - from.begun as i128
    }

    /// Returns the parts of the line that pass in `ticks`, rounded down.
    fn parts(&self, ticks: i128) -> u128 {
        (ticks * i128::from(self.grain) / i128::from(self.ticks)).unsigned_abs()
    }
}

impl DataUsage {
    /// Returns the parts that a layer has in all datagrams that were delivered and carried completely.
    fn parts(&self, layer: Layer, wire: &Wire) -> u128 {
        let of_stream =
            |stream: &Datagrams| u128::from(stream.whole) * u128::from(stream.layers.parts(layer));
        let datagrams = self.stream.as_deref().map_or(0, of_stream);
        datagrams + u128::from(self.segments.parts(wire, layer))
    }
}

impl LineUsage {
    fn seen(&self) -> LineUsageStats {
        let data = self.data.as_deref();
        let (control, generated) = if self.generates { (0, self.plain) } else { (self.plain, 0) };
        LineUsageStats {
            flow: self.flow as usize,
            against: self.against,
            whole: data
                .and_then(|data| data.stream.as_ref())
                .map_or(0, |stream| stream.whole + stream.parted),
            dead: data.map_or(0, |data| data.dead),
            in_flight: data.map_or(0, |data| data.in_flight),
            control,
            generated,
        }
    }
}

/// Divides `whole` in proportion to `weights` by the largest remainders. The results add up to `whole`.
fn divide(whole: u128, weights: &Reasons) -> [u128; REASONS] {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut parts = [0; REASONS];
    if total == 0 {
        // The line was never idle: `whole` is only what rounding leaves.
        parts[REASONS - 1] = whole;
        return parts;
    }
    let (mut remainders, mut rest) = ([0; REASONS], whole);
    for (place, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0) {
        let exact = whole * u128::from(*weight);
        parts[place] = exact / total;
        remainders[place] = exact - parts[place] * total;
        rest -= parts[place];
    }
    for _ in 0..rest {
        let places = (0..REASONS).rev();
        let largest =
            places.max_by_key(|place| remainders[*place]).expect("the list of idle reasons is not empty");
        parts[largest] += 1;
        remainders[largest] = 0;
    }
    parts
}
