//! Collects findings. A thousand are kept and the others are only counted, so that millions of faults take no more memory than a thousand.

use std::ops::{Add, Deref, DerefMut};

use crate::diagnostic::{Diagnostic, Severity};

/// Largest number of findings that are kept. A longer list would not help to repair a testbed.
pub(crate) const MOST: usize = 1000;

/// Numbers of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

impl Counts {
    pub(crate) fn of(severity: Severity) -> Self {
        match severity {
            Severity::Error => Self { errors: 1, warnings: 0 },
            Severity::Warning => Self { errors: 0, warnings: 1 },
        }
    }

    pub(crate) fn total(self) -> usize {
        self.errors + self.warnings
    }

    /// Returns the larger number of each severity.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { errors: self.errors.max(other.errors), warnings: self.warnings.max(other.warnings) }
    }
}

impl Add for Counts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { errors: self.errors + other.errors, warnings: self.warnings + other.warnings }
    }
}

/// The findings so far: some are kept, the others only counted. Dereferences to the kept ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings {
    kept: Vec<Diagnostic>,
    counted: Counts,
    /// Findings with this code are discarded.
    ignored: Option<&'static str>,
    /// True if the check stopped early.
    stopped: bool,
}

impl Findings {
    /// Returns an empty collection that ignores findings of one code.
    pub(crate) fn ignoring(code: &'static str) -> Self {
        Self { ignored: Some(code), ..Self::default() }
    }

    /// Adds a finding. If the list is full, an error replaces the last kept warning.
    pub(crate) fn push(&mut self, found: Diagnostic) {
        if self.ignored == Some(found.code) {
            return;
        }
        if self.kept.len() < MOST {
            self.kept.push(found);
            return;
        }
        let warning = |one: &Diagnostic| one.severity == Severity::Warning;
        let place = self.kept.iter().rposition(warning).filter(|_| found.severity == Severity::Error);
        let dropped = match place {
            Some(place) => {
                let warning = self.kept.remove(place);
                self.kept.push(found);
                warning
            }
            None => found,
        };
        self.count(Counts::of(dropped.severity));
    }

    /// Adds an error with this code. Calls `make` only if the error is kept, not just counted.
    pub(crate) fn push_error(&mut self, code: &'static str, make: impl FnOnce() -> Diagnostic) {
        if self.ignored == Some(code) {
            return;
        }
        if self.is_full() { self.count(Counts::of(Severity::Error)) } else { self.push(make()) }
    }

    /// Returns true if no further error would be kept.
    pub(crate) fn is_full(&self) -> bool {
        self.counted.errors > 0 || self.errors() >= MOST
    }

    /// Counts findings without adding them.
    pub(crate) fn count(&mut self, more: Counts) {
        self.counted = self.counted + more;
    }

    /// Adds all findings and counts of another collection.
    pub(crate) fn append(&mut self, other: Self) {
        let counted = other.counted;
        self.stopped |= other.stopped;
        self.extend(other);
        self.count(counted);
    }

    /// Records that the check stops here, so there may be more findings.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Returns true if there may be more findings than were kept and counted.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// Number of findings that are counted but not kept.
    pub(crate) fn counted(&self) -> Counts {
        self.counted
    }

    /// Number of errors, kept and counted.
    pub(crate) fn errors(&self) -> usize {
        let kept = self.kept.iter().filter(|found| found.severity == Severity::Error).count();
        kept + self.counted.errors
    }

    /// Retains only the kept findings for which `keep` returns true.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&Diagnostic) -> bool) {
        self.kept.retain(keep);
    }

    /// Removes and returns the kept findings for which `taken` returns true.
    pub(crate) fn extract(&mut self, mut taken: impl FnMut(&Diagnostic) -> bool) -> Vec<Diagnostic> {
        self.kept.extract_if(.., |found| taken(found)).collect()
    }
}

impl Deref for Findings {
    type Target = [Diagnostic];
    fn deref(&self) -> &[Diagnostic] {
        &self.kept
    }
}

impl DerefMut for Findings {
    fn deref_mut(&mut self) -> &mut [Diagnostic] {
        &mut self.kept
    }
}

impl Extend<Diagnostic> for Findings {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, more: T) {
        more.into_iter().for_each(|found| self.push(found));
    }
}

impl IntoIterator for Findings {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

impl From<Diagnostic> for Findings {
    fn from(found: Diagnostic) -> Self {
        Self { kept: vec![found], ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_keep_a_thousand_and_errors_displace_warnings() {
        let mut found = Findings::default();
        for _ in 0..MOST {
            found.push(Diagnostic::warning("no-effect", "w"));
        }
        found.push(Diagnostic::error("bad-value", "e"));
        assert_eq!((found.len(), found.errors()), (MOST, 1));
        assert_eq!(found.counted(), Counts { errors: 0, warnings: 1 });
        for _ in 0..MOST {
            found.push_error("bad-value", || Diagnostic::error("bad-value", "e"));
        }
        assert!(found.iter().all(|one| one.severity == Severity::Error));
        assert_eq!(found.counted(), Counts { errors: 1, warnings: MOST });
        // An error beyond the maximum is counted without being built.
        found.push_error("bad-value", || panic!("an error beyond the maximum is not built"));
        assert_eq!(found.errors(), MOST + 2);
    }

    #[test]
    fn ignored_code_is_neither_kept_nor_counted() {
        let mut found = Findings::ignoring("missing-key");
        found.push(Diagnostic::error("missing-key", "m"));
        found.push_error("missing-key", || panic!("an ignored error is not built"));
        assert_eq!((found.len(), found.errors()), (0, 0));
    }
}
