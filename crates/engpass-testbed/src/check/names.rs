//! Names of components, for lookups.

use std::collections::BTreeSet;

/// Names in the order of the file.
pub(super) struct Names<'a> {
    pub(super) list: Vec<&'a str>,
    set: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(names: impl IntoIterator<Item = &'a String>) -> Self {
        let mut set = BTreeSet::new();
        let list = names.into_iter().map(String::as_str).filter(|name| set.insert(*name)).collect();
        Self { list, set }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.set.contains(name)
    }
}
