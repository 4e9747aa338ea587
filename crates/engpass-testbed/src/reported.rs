//! Records the values that were reported, so that consequences of an error are not reported as well.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::path;

/// Missing or wrong values about which errors were reported.
#[derive(Default)]
pub(crate) struct ReportedValues {
    paths: BTreeSet<String>,
    /// Unknown keys by the path of their table: each may be a misspelt key.
    unknown: BTreeMap<String, Vec<String>>,
}

impl ReportedValues {
    /// Collects the values that these errors are about.
    pub(crate) fn of(found: &[Diagnostic]) -> Self {
        let mut faulty = Self::default();
        for diagnostic in found.iter().filter(|found| found.severity == Severity::Error) {
            let Some(text) = &diagnostic.path else { continue };
            if diagnostic.code == "unknown-key"
                && let Ok(mut parts) = path::parse(text)
                && let Some(key) = parts.pop()
            {
                faulty.unknown.entry(path::join(&parts)).or_default().push(key);
            }
            faulty.paths.insert(text.clone());
        }
        faulty
    }

    /// Returns true if an error was reported about the value at this path or a table above it, or about an unknown key beside it that may be its misspelling.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let Some((key, above)) = path.split_last() else { return false };
        (1..=path.len()).any(|end| self.paths.contains(&path::join(&path[..end])))
            || (self.unknown.get(&path::join(above)).into_iter().flatten())
                .any(|unknown| path::nearest(unknown, [*key]).is_some())
    }

    /// Returns true if an error was reported about anything at or below this path.
    pub(crate) fn within(&self, path: &[&str]) -> bool {
        let base = path::join(path);
        let below = format!("{base}.");
        self.paths.contains(&base)
            || self.paths.range(below.clone()..).next().is_some_and(|path| path.starts_with(&below))
    }
}
