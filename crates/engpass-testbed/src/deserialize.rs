//! Deserializes a component from its table in the tree. A fault names the path of the wrong value.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use crate::path::suggestion;
use crate::tree::{Node, Table, Value};

/// Fault of a value that could not be read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// Keys from the component's table down to the value, innermost first.
    pub(crate) path: Vec<String>,
}

impl Fault {
    fn new(code: &'static str, message: impl Into<String>, help: Option<String>) -> Self {
        Self { code, message: message.into(), help, path: Vec::new() }
    }

    fn under(mut self, key: &str) -> Self {
        self.path.push(key.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        let (cause, cure) = split_cure(&message);
        let code = if cause.ends_with(" has no unit") {
            "missing-unit"
        } else if cause.contains(" is not a unit of ") {
            "unknown-unit"
        } else {
            "bad-value"
        };
        Self::new(code, cause, cure.map(String::from))
    }

    fn invalid_type(got: Unexpected<'_>, needed: &dyn Expected) -> Self {
        let needed = plain(&needed.to_string());
        let bare = match got {
            Unexpected::Signed(number) => Some(number.to_string()),
            Unexpected::Unsigned(number) => Some(number.to_string()),
            Unexpected::Other(number) => Some(number.into()),
            _ => None,
        };
        match bare {
            Some(number) if needed.contains("in quotes, like") => {
                Self::new("missing-unit", format!("`{number}` has no unit"), Some(format!("write {needed}")))
            }
            Some(number) => {
                Self::new("wrong-type", format!("the number `{number}` is not allowed here"), need(&needed))
            }
            None => {
                let got = match got {
                    Unexpected::Str(text) => format!("the text `{}`", crate::tree::shortened(text)),
                    Unexpected::Bool(flag) => format!("`{flag}`"),
                    Unexpected::Map => "a table".into(),
                    Unexpected::Seq => "a list".into(),
                    other => other.to_string(),
                };
                let needed = match needed.as_str() {
                    "text in quotes" if got == "a list" => "one text in quotes".into(),
                    _ => needed,
                };
                Self::new("wrong-type", format!("{got} is not allowed here"), need(&needed))
            }
        }
    }

    fn invalid_value(got: Unexpected<'_>, needed: &dyn Expected) -> Self {
        let needed = plain(&needed.to_string());
        let got = match got {
            Unexpected::Signed(number) => number.to_string(),
            Unexpected::Unsigned(number) => number.to_string(),
            other => other.to_string(),
        };
        Self::new("out-of-range", format!("`{got}` is out of range"), need(&needed))
    }

    fn invalid_length(length: usize, needed: &dyn Expected) -> Self {
        Self::new(
            "wrong-type",
            format!("a list of {length} values is not allowed here"),
            need(&plain(&needed.to_string())),
        )
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        let message = format!("unknown value `{}`", crate::tree::shortened(word));
        Self::new("unknown-value", message, suggestion(word, "known", known))
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Self::new("unknown-key", format!("unknown key `{key}`"), suggestion(key, "known keys", known))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new("missing-key", format!("`{key}` is missing"), None)
    }
}

fn need(needed: &str) -> Option<String> {
    Some(format!("write {needed}"))
}

/// Translates serde's name of a type into words for the author of a file.
fn plain(needed: &str) -> String {
    match needed {
        "u8" => "a whole number from 0 to 255, without quotes".into(),
        "u32" => "a whole number from 0 to 4294967295, without quotes".into(),
        "u16" => "a whole number from 0 to 65535, without quotes".into(),
        "u64" | "usize" => "a whole number from 0 to 18446744073709551615, without quotes".into(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number without quotes".into(),
        "a string" => "text in quotes".into(),
        "a boolean" => "`true` or `false`".into(),
        "a sequence" => "a list: `[\"a\", \"b\"]`".into(),
        "an array of length 2" => "a list of two names: `[\"a\", \"b\"]`".into(),
        "a map" => "a table: `{ key = value }`".into(),
        _ if needed.starts_with("struct ") => "a table: `{ key = value }`".into(),
        _ => needed.into(),
    }
}

/// Splits a message of the form "cause: cure" at the first colon outside quoted parts.
fn split_cure(message: &str) -> (&str, Option<&str>) {
    let mut quoted = false;
    for (at, c) in message.char_indices() {
        quoted ^= c == '`';
        if !quoted && message[at..].starts_with(": ") {
            return (&message[..at], Some(&message[at + 2..]));
        }
    }
    (message, None)
}

/// Deserializes the table of a component without the keys in `without`.
pub(crate) struct TableReader<'a> {
    pub(crate) table: &'a Table,
    /// Paths to skip, relative to the table.
    pub(crate) without: &'a BTreeSet<Vec<String>>,
    pub(crate) at: Vec<String>,
}

impl<'de> Deserializer<'de> for TableReader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(Keys {
            entries: self.table.iter(),
            next: None,
            without: self.without,
            at: &self.at,
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A value somewhere inside the table of a component.
struct ValueReader<'a> {
    node: &'a Node,
    without: &'a BTreeSet<Vec<String>>,
    at: Vec<String>,
}

impl<'de> Deserializer<'de> for ValueReader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Text(text) => visitor.visit_str(text),
            Value::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_u64(number),
                _ => Err(de::Error::invalid_type(Unexpected::Other(&number.to_string()), &visitor)),
            },
            Value::Float(text) => Err(de::Error::invalid_type(Unexpected::Other(text), &visitor)),
            Value::Boolean(flag) => visitor.visit_bool(*flag),
            Value::Date(text) => {
                let fault = Fault::new("wrong-type", format!("the date `{text}` is not allowed here"), None);
                Err(Fault { help: need(&plain(&(&visitor as &dyn Expected).to_string())), ..fault })
            }
            Value::List(nodes) => visitor.visit_seq(Items { nodes: nodes.iter().enumerate(), below: &self }),
            Value::Table(table) => visitor.visit_map(Keys {
                entries: table.iter(),
                next: None,
                without: self.without,
                at: &self.at,
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.node.as_set() {
            Some(text) => visitor.visit_string(text),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_string(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            // A list that is too short is reported by the visitor.
            Value::List(nodes) if nodes.len() > length => {
                Err(de::Error::invalid_length(nodes.len(), &visitor))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let written = self.node.as_set();
        match (&self.node.value, &written) {
            (_, Some(text)) | (Value::Text(text), None) => {
                let word: StrDeserializer<'_, Fault> = text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            _ => {
                let message = format!("{} is not allowed here", self.node.what());
                let words = known.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ");
                Err(Fault::new("wrong-type", message, Some(format!("write one of {words}"))))
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        newtype_struct seq tuple_struct map struct identifier ignored_any
    }
}

struct Keys<'a> {
    entries: indexmap::map::Iter<'a, String, crate::tree::Entry>,
    next: Option<(&'a str, &'a Node)>,
    without: &'a BTreeSet<Vec<String>>,
    at: &'a [String],
}

impl Keys<'_> {
    fn path(&self, key: &str) -> Vec<String> {
        self.at.iter().cloned().chain([key.to_string()]).collect()
    }
}

impl<'de> de::MapAccess<'de> for Keys<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        loop {
            let Some((key, entry)) = self.entries.next() else { return Ok(None) };
            if !self.without.is_empty() && self.without.contains(&self.path(key)) {
                continue;
            }
            self.next = Some((key, &entry.node));
            let word: StrDeserializer<'_, Fault> = key.as_str().into_deserializer();
            return seed.deserialize(word).map(Some).map_err(|fault| fault.under(key));
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (key, node) = self.next.take().expect("serde asks for a value after its key");
        let below = ValueReader { node, without: self.without, at: self.path(key) };
        seed.deserialize(below).map_err(|fault| fault.under(key))
    }
}

struct Items<'a> {
    nodes: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
    below: &'a ValueReader<'a>,
}

impl<'de> de::SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((index, node)) = self.nodes.next() else { return Ok(None) };
        let index = index.to_string();
        let at = self.below.at.iter().cloned().chain([index.clone()]).collect();
        let below = ValueReader { node, without: self.below.without, at };
        seed.deserialize(below).map(Some).map_err(|fault| fault.under(&index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.nodes.len())
    }
}
