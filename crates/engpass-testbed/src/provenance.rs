//! The origin of a value.

use std::ops::Range;
use std::sync::Arc;

/// The source that set a value.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) enum ValueSource {
    /// The value's own key in the file.
    #[default]
    File,
    /// A variant's table in the file.
    Variant(Arc<str>),
    /// A value of a sweep, numbered from 1; no number if the axis has faults.
    Sweep { axis: Arc<str>, index: Option<usize> },
    /// A value that the caller of [`crate::Campaign::point`] gave and that is not in the sweep.
    Point { axis: Arc<str>, text: Arc<str> },
    /// `--set PATH=VALUE`. `key` is true if the origin is the path instead of the value.
    Set { path: Arc<str>, text: Arc<str>, key: bool },
}

impl ValueSource {
    /// Returns the name of the source for messages; `None` for the file.
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

/// The source of a value and its position in the file.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Origin {
    pub(crate) giver: ValueSource,
    /// Byte range in the file; `None` if the value is not from the file.
    pub(crate) span: Option<Range<usize>>,
}

impl Origin {
    pub(crate) fn file(span: Range<usize>) -> Self {
        Self { giver: ValueSource::File, span: Some(span) }
    }
}
