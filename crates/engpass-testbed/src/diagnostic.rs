//! Errors and warnings about a testbed file: message, position and a suggested fix.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use engpass_model::text::is_hidden;
use engpass_model::unit::wording::grouped;
use serde_json::{Value, json};

use crate::findings::{Counts, Findings};
use crate::provenance::{Origin as Place, ValueSource};
use crate::source::Source;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The testbed cannot be used.
    Error,
    /// The testbed can be used, but probably does not do what was intended.
    Warning,
}

impl Severity {
    /// Returns the word that is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Key for removing duplicate findings: code, path and sweep axis; for findings without an axis code, path, message, position and `--set`.
pub(crate) type DuplicateKey =
    (&'static str, Option<String>, Result<Arc<str>, (String, Option<(usize, usize)>, Option<String>)>);

/// One error or warning.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Stable code in kebab-case, one of [`crate::codes::CODES`].
    pub code: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// Dotted key of the value or table: `traffic.stream.message`.
    pub path: Option<String>,
    /// Name of the file.
    pub file: String,
    /// Line, from 1. `None` if the value came from `--set` or has no position in the file.
    pub line: Option<usize>,
    /// Column in characters from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// Byte range in the file.
    pub span: Option<Range<usize>>,
    /// Origin of the value if it is not the value's own key in the file, such as ``variant `free` ``.
    pub source: Option<String>,
    /// The `--set PATH=VALUE` that gave the value, and the byte range to underline in it.
    pub(crate) set: Option<(String, Range<usize>)>,
    /// The sweep axis that gave the value. Findings that differ only in the value are shown once.
    pub(crate) axis: Option<Arc<str>>,
    /// Set if the finding is reported only when every point has it, because one variant may need what another does not use. The text is the finding's subject,
    /// in addition to the path.
    pub(crate) everywhere: Option<String>,
}

impl Diagnostic {
    pub(crate) fn error(code: &'static str, message: impl Into<String>) -> Self {
        debug_assert!(crate::codes::explain(code).is_some(), "code `{code}` is not in the list");
        Self {
            code,
            severity: Severity::Error,
            path: None,
            file: String::new(),
            line: None,
            column: None,
            message: message.into(),
            help: None,
            span: None,
            source: None,
            set: None,
            axis: None,
            everywhere: None,
        }
    }

    pub(crate) fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    pub(crate) fn path(mut self, path: &[impl AsRef<str>]) -> Self {
        self.path = Some(crate::path::join(path));
        self
    }

    /// Marks the finding to be reported only if every point has it. Findings of one path count together unless their subjects differ.
    pub(crate) fn only_if_at_every_point(mut self, subject: &str) -> Self {
        self.everywhere = Some(subject.into());
        self
    }

    /// Sets the position from the origin of a value or key.
    pub(crate) fn at(mut self, place: &Place) -> Self {
        self.span = place.span.clone();
        self.source = place.giver.name();
        match &place.giver {
            ValueSource::Set { path, text, key } => {
                let option = "--set ".len();
                let written = format!("--set {path}={text}");
                let meant =
                    if *key { option..option + path.len() } else { option + path.len() + 1..written.len() };
                self.set = Some((written, meant));
            }
            ValueSource::Sweep { axis, .. } => self.axis = Some(axis.clone()),
            _ => {}
        }
        self
    }

    /// Returns the key by which duplicate findings are removed. Findings about values of one axis share a key.
    pub(crate) fn sameness(&self) -> DuplicateKey {
        let own =
            || (self.message.clone(), self.span.clone().map(|span| (span.start, span.end)), self.set_text());
        (self.code, self.path.clone(), self.axis.clone().ok_or_else(own))
    }

    /// Replaces hidden characters in all printed fields by escapes.
    fn show_hidden(&mut self) {
        let texts = [
            self.path.as_mut(),
            Some(&mut self.file),
            Some(&mut self.message),
            self.help.as_mut(),
            self.source.as_mut(),
        ];
        for text in texts.into_iter().flatten() {
            if let Cow::Owned(shown) = visible(text) {
                *text = shown;
            }
        }
    }

    fn set_text(&self) -> Option<String> {
        self.set.as_ref().map(|(text, _)| text.clone())
    }

    fn to_json(&self) -> Value {
        json!({
            "code": self.code,
            "severity": self.severity.as_str(),
            "path": self.path,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "help": self.help,
            "span": self.span.as_ref().map(|span| [span.start, span.end]),
            "source": self.source,
        })
    }
}

/// Findings about one testbed, in the order of the file: at most a thousand, and the number of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    /// Findings that are not in the list.
    more: Counts,
    /// True if the check stopped early, so that there may be more findings.
    stopped: bool,
    text: Arc<str>,
}

impl Diagnostics {
    /// Sorts the findings, removes duplicates, and computes lines and columns.
    pub(crate) fn new(source: &Source, list: impl Into<Findings>) -> Self {
        let list = list.into();
        let lines = LineStarts::of(&source.text);
        let mut seen = BTreeSet::new();
        let mut kept: Vec<Diagnostic> = Vec::new();
        let (more, stopped) = (list.counted(), list.has_stopped());
        for mut found in list {
            if !seen.insert(found.sameness()) {
                continue;
            }
            found.file.clone_from(&source.name);
            found.show_hidden();
            if let Some(span) = &mut found.span {
                let end = source.text.len();
                *span = span.start.min(end)..span.end.min(end);
                let (line, column) = lines.position(&source.text, span.start);
                (found.line, found.column) = (Some(line), Some(column));
            }
            kept.push(found);
        }
        kept.sort_by_key(|found| (found.span.is_none(), found.span.as_ref().map(|span| span.start)));
        Self { list: kept, more, stopped, text: source.text.as_str().into() }
    }

    /// Returns a copy without findings about values from these sources.
    pub(crate) fn without(&self, sources: &[String]) -> Self {
        let is_left_out = |found: &Diagnostic| found.source.as_ref().is_some_and(|one| sources.contains(one));
        let list = self.list.iter().filter(|found| !is_left_out(found)).cloned().collect();
        Self { list, more: self.more, stopped: self.stopped, text: Arc::clone(&self.text) }
    }

    /// The listed findings.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Returns true if no findings are listed.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns true if at least one finding is an error.
    pub fn has_errors(&self) -> bool {
        self.count().errors > 0
    }

    fn count(&self) -> Counts {
        self.list.iter().fold(self.more, |counts, found| counts + Counts::of(found.severity))
    }

    /// Number of findings that are not in the list.
    pub fn more(&self) -> usize {
        self.more.total()
    }

    /// Renders the findings like a compiler, with the lines of the file; `color` adds colours for a terminal.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut text = String::new();
        for found in &self.list {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&renderer.render(&self.report(found)));
        }
        let at_least = if self.stopped { "at least " } else { "" };
        match self.more() {
            0 if self.stopped => text.push_str("\n\nand maybe more: the check stops at 1,000 errors"),
            0 => {}
            more => text.push_str(&format!("\n\nand {at_least}{} more", grouped(more as u64))),
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Counts the findings and names the file: `2 errors and 1 warning in lab.toml`.
    pub fn summary(&self) -> String {
        let Counts { errors, warnings } = self.count();
        let counted = [(Severity::Error, errors), (Severity::Warning, warnings)].map(|(severity, number)| {
            let plural = if number == 1 { "" } else { "s" };
            (number > 0).then(|| format!("{} {}{plural}", grouped(number as u64), severity.as_str()))
        });
        let counts: Vec<String> = counted.into_iter().flatten().collect();
        let file = self.list.first().map(|found| format!(" in {}", found.file)).unwrap_or_default();
        let at_least = if self.stopped { "at least " } else { "" };
        format!("{at_least}{}{file}", counts.join(" and "))
    }

    fn report<'a>(&'a self, found: &'a Diagnostic) -> Vec<Group<'a>> {
        let level = match found.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(found.message.as_str()).id(found.code);
        let mut group = if let Some((written, value)) = &found.set {
            let note = AnnotationKind::Primary.span(value.clone());
            title.element(Snippet::source(masked(written)).path("command line").annotation(note))
        } else if let Some(span) = &found.span {
            // Hand over only the lines that are shown.
            let (from, to) = window(&self.text, span);
            let line = self.text[..from].matches('\n').count() + 1;
            let label = found.source.as_deref().filter(|_| found.set.is_none());
            let note = AnnotationKind::Primary.span(span.start - from..span.end.min(to) - from).label(label);
            let shown =
                Snippet::source(masked(&self.text[from..to])).line_start(line).path(found.file.as_str());
            title.element(shown.annotation(note))
        } else {
            title.element(Origin::path(found.source.as_deref().unwrap_or(&found.file)))
        };
        if let Some(help) = &found.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        vec![group]
    }

    /// Returns the listed findings as a JSON array of objects with the public fields of [`Diagnostic`].
    pub fn to_json(&self) -> Value {
        Value::Array(self.list.iter().map(Diagnostic::to_json).collect())
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

/// Replaces hidden characters, except line feeds, by TOML escapes.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && c != '\n';
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| match u32::from(c) {
        _ if !hidden(c) => c.to_string(),
        code => format!("\\u{code:04X}"),
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Replaces hidden characters, except white space, by visible ones of the same byte length. Spans stay valid.
fn masked(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mask = |c: char| match c.len_utf8() {
        _ if !hidden(c) => c,
        1 => '?',
        2 => '¿',
        _ => '\u{FFFD}',
    };
    Cow::Owned(text.chars().map(mask).collect())
}

/// Returns the byte range of the line in which a span begins, cut to about 400 bytes on each side.
fn window(text: &str, span: &Range<usize>) -> (usize, usize) {
    const MOST: usize = 400;
    let begin = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[span.start..].find('\n').map_or(text.len(), |at| span.start + at);
    let mut from = begin.max(span.start.saturating_sub(MOST));
    let mut to = end.min(span.start.saturating_add(MOST));
    while !text.is_char_boundary(from) {
        from += 1;
    }
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    (from.min(span.start), to.max(span.start))
}

/// Byte offsets at which the lines of a text begin.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// Returns line and column, both from 1, of the byte at offset `at`.
    fn position(&self, text: &str, at: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= at);
        let column =
            text[self.0[line - 1]..].char_indices().take_while(|(i, _)| self.0[line - 1] + i < at).count();
        (line, column + 1)
    }
}
