//! Faults that tests inject into a ledger to check that closing it detects them.

use super::{DataUsage, Ledger, LineSenders};

/// A fault in the ledger.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// One lost cell too many.
    Dead,
    /// One delivered datagram of a stream too many.
    Whole,
    /// One unit without data too many, in every usage record.
    Plain,
    /// One picosecond of idle time too many, at the end of the window or at its begin.
    Idle { at_end: bool },
    /// One tick of rounding too many.
    Rounding,
    /// One picosecond too many of idle time with a reason.
    Reason,
    /// The transmission that began before the window is counted.
    Cut,
}

impl Ledger {
    /// Injects a fault into the first line where it is possible.
    ///
    /// # Panics
    /// If no line has the quantity that the fault changes.
    #[doc(hidden)]
    pub fn inject_fault(&mut self, fault: Fault) {
        match fault {
            Fault::Dead => self.first_data_usage().dead += 1,
            Fault::Whole => {
                self.first_data_usage()
                    .stream
                    .as_mut()
                    .expect("the first data usage belongs to a stream")
                    .whole += 1
            }
            Fault::Plain => self.usages.iter_mut().for_each(|usage| usage.plain += 1),
            Fault::Idle { at_end } => self.lines[0].edges[usize::from(at_end)].idle += 1,
            Fault::Rounding => self.lines[0].edges[1].rounding += 1,
            Fault::Reason => {
                let shared = self.lines.iter_mut().find(|line| line.user == LineSenders::Shared);
                let line = shared.expect("the testbed has a shared line");
                line.reasons.get_or_insert_default()[0] += 1;
            }
            Fault::Cut => {
                let cut = self.lines.iter_mut().find(|line| line.cut.is_some());
                cut.expect("a line was busy when the window began").cut = None;
            }
        }
    }

    fn first_data_usage(&mut self) -> &mut DataUsage {
        self.usages[0].data.as_mut().expect("the line carries data")
    }
}
