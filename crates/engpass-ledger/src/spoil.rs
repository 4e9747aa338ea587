//! Faults that tests put into books, to see that closing finds them.

use super::{Freight, Ledger, User};

/// A fault in the books.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A cell of a lost datagram too many.
    Dead,
    /// A delivered datagram of a stream too many.
    Whole,
    /// A unit without data too many, in every book.
    Plain,
    /// A picosecond too many that a line was idle, at the end of the window or when it began.
    Idle { at_end: bool },
    /// A tick too many by which ends were rounded.
    Rounding,
    /// A picosecond of idle time too many that has a reason.
    Reason,
    /// The transmission that began before the window counts.
    Cut,
}

impl Ledger {
    /// Put a fault into the books of the first line that may have it.
    ///
    /// # Panics
    /// Where no line has what the fault is about.
    #[doc(hidden)]
    pub fn spoil(&mut self, fault: Fault) {
        match fault {
            Fault::Dead => self.first_freight().dead += 1,
            Fault::Whole => self.first_freight().stream.as_mut().expect("it is a stream's").whole += 1,
            Fault::Plain => self.books.iter_mut().for_each(|book| book.plain += 1),
            Fault::Idle { at_end } => self.lines[0].edges[usize::from(at_end)].idle += 1,
            Fault::Rounding => self.lines[0].edges[1].rounding += 1,
            Fault::Reason => {
                let shared = self.lines.iter_mut().find(|line| line.user == User::Shared);
                let line = shared.expect("several flows share a line");
                line.reasons.get_or_insert_default()[0] += 1;
            }
            Fault::Cut => {
                let cut = self.lines.iter_mut().find(|line| line.cut.is_some());
                cut.expect("some line was busy when the window began").cut = None;
            }
        }
    }

    fn first_freight(&mut self) -> &mut Freight {
        self.books[0].freight.as_mut().expect("something is carried over it")
    }
}
