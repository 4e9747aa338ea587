//! The macro `udp_traffic!`: the keys that every kind of UDP traffic to one host has, each declared once.

/// Defines the config of a kind of UDP traffic from the keys that only this kind has. The keys of all kinds stand before and behind them.
///
/// `shared_settings` and `check_shared` are what these keys add to `common` and `check` of `SourceConfig`.
macro_rules! udp_traffic {
    ($(#[$doc:meta])* pub struct $name:ident { $($own:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// Sending host.
            pub from: String,
            /// Receiving host.
            pub to: String,
            $($own)*
            /// Virtual circuit of the packets, if there are several.
            pub circuit: Option<String>,
            /// Data path at the sending host, if that has a `memory` or an `io_bus`; by default that of the host.
            pub send_path: Option<$crate::host::DataPath>,
            /// Data path at the receiving host, like `send_path`.
            pub receive_path: Option<$crate::host::DataPath>,
            /// Receive buffer of the receiving socket, counted in payload bytes; the host's `receive_buffer` if not given.
            pub receive_buffer: Option<$crate::unit::Size>,
            /// Settings for real hosts.
            #[serde(default)]
            pub live: $crate::source::Live,
            /// Priority of the packets, 0 (default) to 7, for queue disciplines with priorities: 7 goes first (IEEE 802.1Q, priority code point).
            #[serde(default)]
            pub priority: u8,
            /// Time to live of the packets, 64 by default: they cross at most one router fewer than this (RFC 1812 section 5.3.1).
            #[serde(default = "super::default_ttl")]
            pub ttl: u8,
            /// When it starts; at the beginning of the run if not given.
            #[serde(default)]
            pub start: Option<$crate::unit::Duration>,
            /// When it stops; at the end of the run if not given.
            #[serde(default)]
            pub stop: Option<$crate::unit::Duration>,
        }

        impl $name {
            fn shared_settings(&self) -> $crate::source::Common<'_> {
                $crate::source::Common {
                    circuit: self.circuit.as_deref(),
                    data_paths: (self.send_path, self.receive_path),
                    receive_buffer: self.receive_buffer,
                    priority: self.priority,
                    ttl: Some(self.ttl),
                    live: Some(&self.live),
                    ..$crate::source::Common::between((&self.from, &self.to), (self.start, self.stop))
                }
            }

            fn check_shared(&self, errors: &mut $crate::range_errors::RangeErrors) {
                super::check_receive_buffer(self.receive_buffer, errors);
                self.live.check($crate::source::Transport::Udp, errors);
                super::check_packets(self.priority, self.ttl, errors);
            }
        }
    };
}

pub(super) use udp_traffic;
