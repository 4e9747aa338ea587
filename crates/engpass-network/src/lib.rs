//! A network as a value: the closed forms of the `limit` engine.

pub mod limit;
