//! Families of components: one list of kinds per family.
//!
//! The macro `family!` turns a list of `"kind" => Variant(Config)` lines into the enum, deserializer, schema and catalogue of a family. A
//! new component needs one file and one line in its family's list.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A family as the catalogue and the conformance tests see it.
pub struct Listing {
    /// Name of the family, such as "discard policy".
    pub family: &'static str,
    /// Each kind with the schema of its config. The schema's `description` is the config's doc comment.
    pub kinds: Vec<(&'static str, Schema)>,
}

/// Returns the schema of a config, inlined.
pub fn config_schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    T::json_schema(generator)
}

/// Defines a family; see the [module](self).
///
/// Nested in a table, the enum deserializes from a kind, as in `discard = "tail"`, or from a table with the kind as its only key, as in
/// `discard = { epd = { threshold = "300 cells" } }`. For a table with a `kind` key, such as `[switch.x]` with `kind = "atm"`, the caller
/// removes `kind` and calls `read`.
///
/// If the family names a trait (`Discard, "discard policy": DiscardConfig`), all its configs implement the trait, and `config` returns the
/// config as a trait object. The behaviour of a kind is therefore defined in its own file only.
macro_rules! family {
    (
        $(#[$doc:meta])* $name:ident, $family:literal : $trait:ident
        { $($kind:literal => $variant:ident($config:ty)),+ $(,)? }
    ) => {
        $crate::component_family::family! { $(#[$doc])* $name, $family { $($kind => $variant($config)),+ } }

        impl $name {
            /// The config of any kind as a trait object.
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
            /// Name of the family in messages.
            pub const FAMILY: &'static str = $family;
            /// All kinds, in the order of the list.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// The kind of this value.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $kind),+ }
            }

            /// Deserializes the config of `kind` from its table without the `kind` key. Returns `None` if the kind does not exist.
            pub fn read<'de, D: serde::Deserializer<'de>>(kind: &str, table: D) -> Option<Result<Self, D::Error>> {
                match kind {
                    $($kind => Some(<$config as serde::Deserialize>::deserialize(table).map(Self::$variant)),)+
                    _ => None,
                }
            }

            /// Returns all kinds with the schemas of their configs.
            pub fn listing(generator: &mut schemars::SchemaGenerator) -> $crate::component_family::Listing {
                $crate::component_family::Listing {
                    family: $family,
                    kinds: vec![$(($kind, $crate::component_family::config_schema::<$config>(generator))),+],
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
                            // The kind is given as a word, so a missing key means that the kind needs a table.
                            Some(Err(error)) => Err(E::custom(format!(
                                "{error} in `{kind}`: write `{kind}` as a table with its keys, `{{ {kind} = {{ key = value }} }}`"))),
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
            /// Serializes to the form that `deserialize` accepts: `{ kind = config }`.
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
