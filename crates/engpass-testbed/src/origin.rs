//! Where a value came from.

use std::ops::Range;
use std::sync::Arc;

/// Who gave a value.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum Giver {
    /// Its own place in the file.
    #[default]
    File,
    /// A variant's table in the file.
    Variant(Arc<str>),
    /// A value of a sweep, counted from 1; without its number where the axis has faults.
    Sweep { axis: Arc<str>, index: Option<usize> },
    /// A sweep value that the caller of [`crate::Campaign::point`] made up.
    Point { axis: Arc<str>, text: Arc<str> },
    /// `--set PATH=VALUE`; `key` where the path and not the value is meant.
    Set { path: Arc<str>, text: Arc<str>, key: bool },
}

impl Giver {
    /// What it is called in a message; nothing for the file.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::File => None,
            Self::Variant(name) => Some(format!("variant `{name}`")),
            Self::Sweep { axis, index: Some(index) } => Some(format!("sweep value {index} of `{axis}`")),
            Self::Sweep { axis, index: None } => Some(format!("sweep value of `{axis}`")),
            Self::Point { axis, text } => Some(format!("value `{text}` of `{axis}`")),
            Self::Set { path, .. } => Some(format!("--set {path}")),
        }
    }
}

/// Who gave a value, and where in the file it stands.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Origin {
    pub(crate) giver: Giver,
    /// Bytes of the file; none for what is not in it.
    pub(crate) span: Option<Range<usize>>,
}

impl Origin {
    pub(crate) fn file(span: Range<usize>) -> Self {
        Self { giver: Giver::File, span: Some(span) }
    }
}
