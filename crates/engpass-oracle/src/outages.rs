//! Links that go down and come back (docs/model.md, "Events").

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::event::EventChange;
use engpass_model::random::Stream;

use crate::cell::LineId;

/// The states of links over time.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// For each link that is down, the time since which it is.
    pub(crate) down: BTreeMap<usize, u64>,
    /// Past outages: link, begin and end.
    pub(crate) past: Vec<(usize, u64, u64)>,
    /// Interfaces that their nodes see as down.
    pub(crate) seen_down: BTreeSet<LineId>,
    /// Number of times each link went down.
    pub(crate) times: BTreeMap<usize, u64>,
}

impl Outages {
    /// Returns true if the node at the beginning of a line sees it up.
    pub(crate) fn is_seen_up(&self, line: LineId) -> bool {
        !self.seen_down.contains(&line)
    }

    pub(crate) fn is_down(&self, line: LineId) -> bool {
        self.down.contains_key(&line.link)
    }

    /// Returns true if an outage destroyed a frame whose transmission lasted from `begun` to `left`.
    pub(crate) fn cuts(&self, line: LineId, begun: u64, left: u64) -> bool {
        let past = self.past.iter().filter(|(link, ..)| *link == line.link);
        let mut outages = past.map(|(_, down, up)| (*down, Some(*up)));
        let now = self.down.get(&line.link).map(|down| (*down, None));
        let cuts = |(down, up): (u64, Option<u64>)| left > down && up.is_none_or(|up| begun < up);
        outages.any(cuts) || now.is_some_and(cuts)
    }
}

/// Returns the changes of an event of the file up to `end`, with their times.
pub(crate) fn changes(
    config: &engpass_model::event::Event,
    mut random: Stream,
    end: u64,
) -> Vec<(u64, EventChange)> {
    let mut at = config.at.map_or(0, |at| at.0);
    let mut changes = Vec::new();
    match (config.mean_time_between_failures, config.mean_time_to_repair) {
        (Some(up), Some(down)) => loop {
            for (mean, state) in [(up, EventChange::Down), (down, EventChange::Up)] {
                at += random.exponential(mean.0);
                if at > end {
                    return changes;
                }
                changes.push((at, state));
            }
        },
        _ => {
            let state = config.change.expect("an event without random times has a change");
            while at <= end {
                changes.push((at, state));
                match config.every {
                    Some(every) => at += every.0,
                    None => break,
                }
            }
        }
    }
    changes
}
