//! Busy times of CPUs and routers, and the longest queues at the end of the warm-up (docs/model.md, "Loads" and "Longest queues").

use std::collections::BTreeMap;

use super::Engine;
use crate::cell::LineId;
use crate::queue::Length;

impl Engine<'_> {
    /// Returns the time in the measurement window in which each host's CPU or router's engine was busy, in picoseconds, by node and number of the engine;
    /// without those that never were.
    pub(crate) fn busy_times(&self, at: u64) -> BTreeMap<(usize, usize), u64> {
        let cpus = self
            .cpus
            .iter()
            .map(|cpu| cpu.worked + cpu.busy.as_ref().map_or(0, |busy| self.books.counted(busy.since, at)));
        let first = self.topology.hosts + self.topology.switches;
        let cpus = cpus.enumerate().map(|(node, time)| ((node, 0), time));
        let routers = (first..).zip(&self.routers).flat_map(|(node, engines)| {
            engines.iter().enumerate().map(move |(engine, this)| {
                ((node, engine), this.worked + this.since.map_or(0, |since| self.books.counted(since, at)))
            })
        });
        let busy = cpus.chain(routers);
        busy.filter(|(_, time)| *time > 0).collect()
    }

    /// Begins to measure queues at the end of the warm-up.
    pub(crate) fn begin_queues(&mut self) {
        let none = Length { packets: 0, bytes: 0 };
        for (line, this) in &self.frame_lines {
            if let Some(discipline) = &this.discipline {
                self.longest.begin(*line, 0, discipline.length(&this.held));
            }
        }
        for (vc, entrance) in &self.entrances {
            let length = entrance.discipline.length(&entrance.held);
            self.longest.begin(self.vcs[*vc].lines[0], 0, length);
        }
        let lines: Vec<LineId> = self.lines.keys().copied().filter(|line| self.at_switch(*line)).collect();
        for line in lines {
            let this = &self.lines[&line];
            let cells = (0..this.classes()).map(|class| this.held(class)).max().unwrap_or(0);
            self.longest.begin(line, cells, none);
        }
    }
}
