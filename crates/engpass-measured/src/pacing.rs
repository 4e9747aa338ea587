//! How evenly a paced flow arrived, and the causes of deviating gaps.

use engpass_model::unit::wording::grouped;
use engpass_outcome::GapDeviation;

use crate::answer::{Distribution, End, Stalls};

const WAITED: &str = "other threads of the sending host used its core";
const STOLEN: &str = "the hypervisor of the sending host used its core, or woke it late";
const KERNEL: &str = "the sending host's kernel used its core, for interrupts and for sending";
/// From this share of the gaps' variance on, stalls are the main cause, and the summary names their causes.
const MOST: f64 = 0.5;

/// Returns the sender's part in the deviation of the gaps, by cause; `None` if no gaps were seen. Shares are of sums of squares, as in a variance.
pub(crate) fn gap_deviation(sender: &End, receiver: &End) -> Option<GapDeviation> {
    let (gaps, how) = (&receiver.gaps, &sender.pacing);
    let count = gaps.count.filter(|count| *count > 0)?;
    let sd = gaps.sd_ns?;
    let variance = (sd as f64).powi(2) * count as f64;
    let explained = how.stalls.as_ref().filter(|_| variance > 0.0);
    let explained = explained.map(|stalls| (stalls.squares_ns2 as f64 / variance).min(1.0));
    Some(GapDeviation {
        method: how.method.clone(),
        scheduling_class: how.class_.clone(),
        cpu_latency_held: how.awake,
        stalls: how
            .stalls
            .as_ref()
            .map(|stalls| serde_json::to_value(stalls).expect("stalls serialize to JSON")),
        explained_share: explained,
        summary: how.stalls.as_ref().map(|stalls| summary(gaps, stalls, explained.unwrap_or(0.0))),
    })
}

fn summary(gaps: &Distribution, stalls: &Stalls, explained: f64) -> String {
    let mut said = format!(
        "gaps deviate by {}, and half of them by at most {}",
        us(gaps.sd_ns.unwrap_or(0)),
        us(gaps.mad_ns.unwrap_or(0))
    );
    if stalls.count == 0 || explained == 0.0 {
        return said;
    }
    said += &format!(
        ": the sender stalled {} times, for at most {}, which explains {:.0} % of the deviation",
        grouped(stalls.count),
        us(stalls.longest_ns),
        100.0 * explained
    );
    if explained < MOST {
        return said + "; the rest arose on the path";
    }
    let causes = [(&stalls.waited, WAITED), (&stalls.stolen, STOLEN), (&stalls.kernel, KERNEL)];
    let mut causes = causes.map(|(cause, words)| (cause.squares_ppm, words));
    causes.sort_unstable_by(|one, other| other.cmp(one));
    let causes = causes.iter().filter(|(ppm, _)| *ppm >= 10_000);
    let told: Vec<String> =
        causes.map(|(ppm, words)| format!("{:.0} %: {words}", 100.0 * (*ppm as f64 / 1e6))).collect();
    format!("{said}; {}", told.join(", "))
}

/// Formats a time in microseconds with one decimal.
fn us(nanoseconds: u64) -> String {
    let (whole, tenth) = {
        let text = format!("{:.1}", nanoseconds as f64 / 1000.0);
        let (whole, tenth) = text.split_once('.').expect("one decimal");
        (whole.parse::<u64>().expect("digits"), tenth.to_owned())
    };
    format!("{}.{tenth} us", grouped(whole))
}
