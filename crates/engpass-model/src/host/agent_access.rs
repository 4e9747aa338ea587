//! How a measurement reaches the agent of a real host, and at which address its peers reach the host.

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::text::is_hidden;

/// Where the agent of a host runs in a measurement. Other engines ignore it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// On the measuring machine, without a network namespace.
    Local,
    /// On the measuring machine, in an existing network namespace, by its name in `ip netns`.
    Netns(String),
    /// On another machine, through the system's ssh. Any destination that `ssh` accepts.
    Ssh(String),
}

impl Reach {
    /// Description for messages and the schema.
    const WHAT: &'static str = "`local`, `netns NAME` or `ssh USER@HOST`";

    /// Parses the text of a testbed file. The error message names cause and remedy.
    ///
    /// # Errors
    /// For any other word, for a name that is missing or could be taken for an option, and for blanks within the name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let name = rest.trim();
        match word {
            "local" if name.is_empty() => Ok(Self::Local),
            "local" => Err(format!("`{text}` has text after `local`: write `local` alone")),
            "netns" => named(text, name, "netns NAME", &['/']).map(Self::Netns),
            "ssh" => named(text, name, "ssh USER@HOST", &[]).map(Self::Ssh),
            _ => Err(format!("`{text}` is not a way to reach a host: write {}", Self::WHAT)),
        }
    }
}

/// Checks that the name is safe as an argument of a command, and returns it.
fn named(text: &str, name: &str, pattern: &str, barred: &[char]) -> Result<String, String> {
    let fault = if name.is_empty() {
        "has no name"
    } else if name.starts_with('-') {
        "has a name that starts with `-`"
    } else if name == "." || name == ".." || name.contains(barred) {
        "has a path instead of a name"
    } else if name.contains(|c: char| c.is_whitespace() || is_hidden(c)) {
        "has blanks or invisible characters in its name"
    } else {
        return Ok(name.to_string());
    };
    Err(format!("`{text}` {fault}: write `{pattern}`"))
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Netns(name) => write!(f, "netns {name}"),
            Self::Ssh(destination) => write!(f, "ssh {destination}"),
        }
    }
}

/// The address at which other hosts reach a host. It is an IP address, since a name could resolve to another host later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub IpAddr);

impl Address {
    const WHAT: &'static str = "an IP address";

    /// Parses the text of a testbed file. The error message names cause and remedy.
    ///
    /// # Errors
    /// If the text is not an IP address, or is an unspecified or multicast address.
    pub fn parse(text: &str) -> Result<Self, String> {
        let address: IpAddr =
            text.parse().map_err(|_| format!("`{text}` is not an IP address: write it like `192.0.2.7`"))?;
        if address.is_unspecified() || address.is_multicast() {
            return Err(format!("`{text}` is not the address of a single host: write one like `192.0.2.7`"));
        }
        Ok(Self(address))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Implements `Deserialize` through `parse`, `Serialize` through `Display`, and a schema with an example.
macro_rules! text_serde {
    ($name:ident, $pattern:expr, $examples:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} in quotes", $name::WHAT)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::parse(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let pattern: Option<&str> = $pattern;
                let mut schema = schemars::json_schema!({
                    "type": "string",
                    "title": $name::WHAT,
                    "examples": $examples,
                });
                if let Some(pattern) = pattern {
                    schema.insert("pattern".into(), pattern.into());
                }
                schema
            }
        }
    };
}

text_serde!(
    Reach,
    Some(r"^(local|netns\s+[^\s/-][^\s/]*|ssh\s+[^\s-]\S*)$"),
    ["local", "netns NAME", "ssh USER@HOST"]
);
text_serde!(Address, None, ["192.0.2.7"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_access_text_round_trips() {
        for (text, reach) in [
            ("local", Reach::Local),
            ("netns left", Reach::Netns("left".into())),
            ("ssh kim@lab-3.example.org", Reach::Ssh("kim@lab-3.example.org".into())),
            ("ssh lab3", Reach::Ssh("lab3".into())),
        ] {
            assert_eq!(Reach::parse(text), Ok(reach.clone()));
            assert_eq!(reach.to_string(), text);
        }
    }

    #[test]
    fn agent_access_rejects_text_that_a_command_could_misread() {
        for (text, cause) in [
            ("ssh", "has no name"),
            ("ssh -oProxyCommand=x", "has a name that starts with `-`"),
            ("ssh a b", "has blanks or invisible characters in its name"),
            ("netns ../x", "has a path instead of a name"),
            ("local host", "has text after `local`"),
            ("telnet a", "is not a way to reach a host"),
        ] {
            let message = Reach::parse(text).expect_err("the text is invalid");
            assert!(message.contains(cause) && message.contains(": write"), "{message}");
        }
    }

    #[test]
    fn host_address_rejects_names_multicast_and_unspecified() {
        assert_eq!(Address::parse("2001:db8::7").map(|a| a.to_string()), Ok("2001:db8::7".into()));
        for text in ["server", "10.0.0", "0.0.0.0", "239.1.1.1", "::"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
