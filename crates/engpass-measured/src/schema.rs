//! The schema of requests.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::request::{Asked, Requests};

/// JSON Schema of [`Requests`], with that of [`Asked`] under `$defs`; the Python types are generated from it.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let asked = generator.subschema_for::<Asked>();
    debug_assert!(asked.get("$ref").is_some());
    generator.into_root_schema_for::<Requests>().to_value()
}
