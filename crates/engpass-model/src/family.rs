//! One list per family of components.
//!
//! `family!` turns a list of `"kind" => Variant(Config)` lines into the enum, the reader, the schema and the
//! catalogue of that family. Adding a component is one file and one line in its family's list.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A family as the catalogue and the conformance tests see it.
pub struct Listing {
    /// What the family is called: "discard policy".
    pub family: &'static str,
    /// Kind, and the schema of its config; the schema's `description` is the config's doc comment.
    pub kinds: Vec<(&'static str, Schema)>,
}

/// The schema of a config, inlined.
pub fn config_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// Define a family: see the [module](self).
///
/// The enum reads itself where it is nested in a table (`discard = "tail"`, or `discard = { epd = { threshold =
/// "300 cells" } }`: one key, the kind). Where a whole table is of a kind (`[switch.x]` with `kind = "atm"`), the
/// reader takes `kind` out and calls `read`.
///
/// Where a family names a trait (`Discard, "discard policy": DiscardConfig`), its configs implement it and `config` gives
/// the one at hand: what a kind does is said in its own file and nowhere else.
macro_rules! family {
    (
        $(#[$doc:meta])* $name:ident, $family:literal : $trait:ident
        { $($kind:literal => $variant:ident($config:ty)),+ $(,)? }
    ) => {
        $crate::family::family! { $(#[$doc])* $name, $family { $($kind => $variant($config)),+ } }

        impl $name {
            /// The config, whatever its kind.
            pub fn config(&self) -> &dyn $trait {
                match self { $(Self::$variant(config) => config),+ }
            }
        }
    };
    ($(#[$doc:meta])* $name:ident, $family:literal { $($kind:literal => $variant:ident($config:ty)),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $(#[doc = concat!("`", $kind, "`")] $variant($config)),+
        }

        impl $name {
            /// What the family is called in messages.
            pub const FAMILY: &'static str = $family;
            /// Every kind, in the order of the list.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// The kind this value is of.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind),+ }
            }

            /// Read the config of `kind` (the table without its `kind` key); `None` when no such kind exists.
            pub fn read<'de, D: serde::Deserializer<'de>>(kind: &str, table: D) -> Option<Result<Self, D::Error>> {
                match kind {
                    $($kind => Some(<$config as serde::Deserialize>::deserialize(table).map(Self::$variant)),)+
                    _ => None,
                }
            }

            /// Kinds with the schemas of their configs.
            pub fn listing(generator: &mut schemars::SchemaGenerator) -> $crate::family::Listing {
                $crate::family::Listing {
                    family: $family,
                    kinds: vec![$(($kind, $crate::family::config_schema::<$config>(generator))),+],
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(f, concat!("the kind of a ", $family, " in quotes, or a table with that one key"))
                    }
                    fn visit_str<E: serde::de::Error>(self, kind: &str) -> Result<$name, E> {
                        let empty = serde::de::value::MapDeserializer::<_, E>::new(
                            std::iter::empty::<(&str, &str)>(),
                        );
                        match <$name>::read(kind, empty) {
                            // What is missing is missing here: there is no table in which it could be looked for.
                            Some(Err(error)) => Err(E::custom(format!(
                                "`{kind}` is not enough, {error}: give its keys, `{{ {kind} = {{ key = value }} }}`"))),
                            Some(read) => read,
                            None => Err(E::unknown_variant(kind, $name::KINDS)),
                        }
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        use serde::de::Error;
                        let kind: String = map.next_key()?.ok_or_else(|| A::Error::custom(
                            concat!("an empty table names no ", $family)))?;
                        let value = match kind.as_str() {
                            $($kind => map.next_value::<$config>().map($name::$variant)?,)+
                            other => return Err(A::Error::unknown_variant(other, $name::KINDS)),
                        };
                        match map.next_key::<String>()? {
                            None => Ok(value),
                            Some(second) => Err(A::Error::custom(format!(
                                concat!("`{}` is a second ", $family, " beside `{}`: keep one"), second, kind))),
                        }
                    }
                }
                deserializer.deserialize_any(Visitor)
            }
        }

        impl serde::Serialize for $name {
            /// As `deserialize` reads it: `{ kind = config }`.
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(Some(1))?;
                match self { $(Self::$variant(config) => map.serialize_entry($kind, config)?),+ }
                map.end()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let tables: Vec<_> = Self::listing(generator).kinds.into_iter().map(|(kind, config)| {
                    schemars::json_schema!({
                        "type": "object",
                        "properties": { kind: config },
                        "required": [kind],
                        "additionalProperties": false,
                    })
                }).collect();
                let mut any = vec![schemars::json_schema!({ "enum": Self::KINDS })];
                any.extend(tables);
                schemars::json_schema!({ "title": $family, "anyOf": any })
            }
        }
    };
}
pub(crate) use family;
