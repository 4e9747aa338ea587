//! A testbed file as a tree in which every key and value knows its origin.

use std::ops::Range;
use std::sync::Arc;

use engpass_model::text::is_hidden;
use indexmap::IndexMap;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Diagnostic;
use crate::findings::Findings;
use crate::path::with_quotes;
use crate::provenance::{Origin, ValueSource};
use crate::unclosed::{self, Unclosed};

/// A value and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) origin: Origin,
    pub(crate) value: Value,
}

/// A TOML value. Floats keep their text, so nothing is rounded.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i128),
    Float(String),
    Boolean(bool),
    Date(String),
    List(Vec<Node>),
    /// Shared: the points of a campaign share all unchanged tables.
    Table(Arc<Table>),
}

/// A table in the order of the file.
pub(crate) type Table = IndexMap<String, Entry>;

/// The value of a key, with the origin of the key.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Origin,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns the value as a file would show it and as a sweep names it: text without its quotes.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            Value::Text(text) | Value::Float(text) | Value::Date(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Boolean(flag) => flag.to_string(),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }

    /// Returns the value as a name. A name given on the command line may look like a number.
    pub(crate) fn name(&self) -> Option<String> {
        self.as_set().or_else(|| match &self.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// Returns the text of this value if `--set` or the caller of a point gave it; `None` if the text is that of a list, a table or a quoted string, which is
    /// not the value's own text.
    pub(crate) fn as_set(&self) -> Option<String> {
        match (&self.value, &self.origin.giver) {
            (Value::Table(_) | Value::List(_), _) => None,
            (_, ValueSource::Set { text, .. } | ValueSource::Point { text, .. }) => {
                // The text of a list or table is not that of a value inside it. A text in quotes was parsed already.
                (!text.trim_start().starts_with(['"', '\'', '[', '{'])).then(|| text.to_string())
            }
            _ => None,
        }
    }

    /// Describes the value for messages.
    pub(crate) fn what(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text `{}`", shortened(text)),
            Value::Integer(number) => format!("the number `{number}`"),
            Value::Float(text) => format!("the number `{}`", shortened(text)),
            Value::Boolean(flag) => format!("`{flag}`"),
            Value::Date(text) => format!("the date `{text}`"),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }

    /// Sets the source of this value and everything in it, unless the source is already something other than the file.
    pub(crate) fn stamp(&mut self, giver: &ValueSource) {
        if self.origin.giver == ValueSource::File {
            self.origin.giver = giver.clone();
        }
        match &mut self.value {
            Value::List(nodes) => nodes.iter_mut().for_each(|node| node.stamp(giver)),
            Value::Table(table) => {
                for entry in Arc::make_mut(table).values_mut() {
                    if entry.key.giver == ValueSource::File {
                        entry.key.giver = giver.clone();
                    }
                    entry.node.stamp(giver);
                }
            }
            _ => {}
        }
    }

    /// Returns the number of values in this value, itself included.
    pub(crate) fn size(&self) -> usize {
        1 + match &self.value {
            Value::List(nodes) => nodes.iter().map(Self::size).sum(),
            Value::Table(table) => table.values().map(|entry| entry.node.size()).sum(),
            _ => 0,
        }
    }
}

/// Shortens a text to 60 characters, hidden characters replaced by spaces.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let mut short: String = text.chars().take(MOST).map(|c| if is_hidden(c) { ' ' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        short.push('…');
    }
    short
}

/// Parses a file. Duplicate keys are reported and parsing continues. After any other error there is no tree.
pub(crate) fn parse(text: &str, found: &mut Findings) -> Option<Node> {
    /// Limit of reported syntax errors: a text that is not TOML has one in every line.
    const MOST: usize = 5;
    let (tree, errors) = DeTable::parse_recoverable(text);
    let unclosed = if errors.iter().all(is_duplicate) { None } else { unclosed::find(text) };
    let mut broken = 0;
    if let Some(unclosed) = &unclosed {
        broken += 1;
        found.push(report_unclosed(text, unclosed));
    }
    for error in errors {
        // Behind an unclosed bracket the parser takes everything for its content, so errors there mean nothing.
        if let Some(unclosed) = &unclosed
            && error.span().is_none_or(|span| span.start >= unclosed.span.start)
        {
            continue;
        }
        let place = Origin { giver: ValueSource::File, span: error.span() };
        if is_duplicate(&error) {
            let key = error.span().and_then(|span| text.get(span)).unwrap_or("").trim();
            let message = format!("`{}` is given twice", shortened(key));
            let first = error.span().and_then(|span| first_line(text, key, span.start));
            let first = first.map_or(String::new(), |line| format!("it is in line {line}, too: "));
            let help = format!("{first}keep one of them, or give the second another name");
            found.push(Diagnostic::error("duplicate-key", message).at(&place).help(help));
        } else {
            broken += 1;
            if broken <= MOST {
                let message = format!("this is not TOML: {}", error.message());
                let help = syntax_help(error.message(), text, error.span());
                found.push(Diagnostic::error("syntax", message).at(&place).help(help));
            }
        }
    }
    if broken > 0 {
        return None;
    }
    let span = tree.span();
    Some(Node { origin: Origin::file(span), value: Value::Table(table(tree.into_inner()).into()) })
}

fn is_duplicate(error: &toml::de::Error) -> bool {
    error.message() == "duplicate key"
}

fn report_unclosed(text: &str, unclosed: &Unclosed) -> Diagnostic {
    let Unclosed { span, end, before } = unclosed;
    let place = Origin { giver: ValueSource::File, span: Some(span.clone()) };
    let message = format!("this is not TOML: `{}` is never closed", &text[span.clone()]);
    let help = match before {
        Some((header, line)) => {
            format!("close it with `{end}` before `{}` in line {line}", shortened(header))
        }
        None => format!("close it with `{end}`"),
    };
    Diagnostic::error("syntax", message).at(&place).help(help)
}

/// Returns the line that gives `key` before the duplicate at `position`: the first equal header, or the first line of the same table with this key. `None` if
/// it is in the same line or inside a value.
fn first_line(text: &str, key: &str, position: usize) -> Option<usize> {
    let begin = text[..position].rfind('\n').map_or(0, |newline| newline + 1);
    let second = text[begin..].lines().next()?.trim();
    let before: Vec<&str> = text[..begin].lines().map(str::trim).collect();
    let is_header = |line: &&str| line.starts_with('[');
    let found = if is_header(&second) {
        let header = |line: &str| line.split('#').next().unwrap_or("").trim().to_string();
        before.iter().position(|line| header(line) == header(second))
    } else {
        let table = before.iter().rposition(is_header).map_or(0, |header| header + 1);
        let gives =
            |line: &&str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='));
        before[table..].iter().position(gives).map(|line| table + line)
    };
    found.map(|line| line + 1)
}

fn syntax_help(message: &str, text: &str, span: Option<Range<usize>>) -> String {
    if message.contains("recurs") {
        return "tables and lists nest at most 80 deep; a testbed needs four".into();
    }
    if message.contains("string values must be quoted") {
        let value = span.and_then(|span| text.get(span)).unwrap_or("").trim();
        let is_plain = !value.is_empty() && !value.contains(|c: char| c == '"' || c == '\\' || is_hidden(c));
        let value = if is_plain { value } else { "9 kB" };
        return format!("put the value in quotes: `\"{}\"`", shortened(value));
    }
    match span.and_then(|span| name_with_quotes(text, span.start)) {
        Some(quoted) => {
            format!("a name with other characters than letters, digits, `-` and `_` needs quotes: `{quoted}`")
        }
        None => "a line is `key = value` or `[table.name]`; text needs \"quotes\"".into(),
    }
}

/// Returns the header or the key at a position with quotes around the names that need them; `None` if none does.
fn name_with_quotes(text: &str, position: usize) -> Option<String> {
    const LONGEST: usize = 200;
    let begin = text.get(..position)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[begin..].lines().next()?.trim();
    if line.len() > LONGEST {
        return None;
    }
    let Some(header) = line.strip_prefix('[') else {
        let (key, _) = line.split_once('=')?;
        return Some(format!("{} = …", with_quotes(key)?));
    };
    let (name, _) = header.rsplit_once(']')?;
    Some(format!("[{}]", with_quotes(name)?))
}

/// Parses the value of a `--set`: as TOML if it is a TOML value other than a date, otherwise as text.
pub(crate) fn parse_value(text: &str) -> Node {
    let origin = Origin::default();
    let read = DeValue::parse(text).ok().filter(|value| !value.get_ref().is_datetime());
    let value = match read {
        Some(read) => value(read.into_inner()),
        None => Value::Text(text.into()),
    };
    let mut node = Node { origin, value };
    forget_spans(&mut node);
    node
}

/// Removes the positions in the file from a value that is not in the file.
fn forget_spans(node: &mut Node) {
    node.origin.span = None;
    match &mut node.value {
        Value::List(nodes) => nodes.iter_mut().for_each(forget_spans),
        Value::Table(table) => {
            for entry in Arc::make_mut(table).values_mut() {
                entry.key.span = None;
                forget_spans(&mut entry.node);
            }
        }
        _ => {}
    }
}

fn table(table: DeTable<'_>) -> Table {
    let read = table.into_iter().map(|(key, node)| {
        let place = Origin::file(key.span());
        let span = node.span();
        let value = value(node.into_inner());
        (
            key.into_inner().into_owned(),
            Entry { key: place, node: Node { origin: Origin::file(span), value } },
        )
    });
    read.collect()
}

fn value(value: DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            // No key accepts a number this large. As text, it is shown in full in the error message.
            Err(_) => Value::Float(number.to_string()),
        },
        DeValue::Float(number) => Value::Float(number.as_str().into()),
        DeValue::Boolean(flag) => Value::Boolean(flag),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(list) => Value::List(
            list.into_iter()
                .map(|node| {
                    let span = node.span();
                    let value = self::value(node.into_inner());
                    Node { origin: Origin::file(span), value }
                })
                .collect(),
        ),
        DeValue::Table(inner) => Value::Table(table(inner).into()),
    }
}
