//! What was reported already, so that nothing is reported which only follows from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Severity};
use crate::path;

/// Values that are missing or wrong and were reported.
#[derive(Default)]
pub(crate) struct Faulty {
    paths: BTreeSet<String>,
    /// Unknown keys by the path of their table: each may be another key, misspelt.
    unknown: BTreeMap<String, Vec<String>>,
}

impl Faulty {
    /// The values that these findings are about.
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

    /// Whether the value at this path, or a table around it, was reported; or a key beside it that may be meant for it.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let Some((key, above)) = path.split_last() else { return false };
        (1..=path.len()).any(|end| self.paths.contains(&path::join(&path[..end])))
            || (self.unknown.get(&path::join(above)).into_iter().flatten())
                .any(|unknown| path::nearest(unknown, [*key]).is_some())
    }

    /// Whether anything at or below this path was reported.
    pub(crate) fn within(&self, path: &[&str]) -> bool {
        let base = path::join(path);
        let below = format!("{base}.");
        self.paths.contains(&base)
            || self.paths.range(below.clone()..).next().is_some_and(|path| path.starts_with(&below))
    }
}
