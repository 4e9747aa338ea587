//! The schema of requests and of the answers that Python reads.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::answer::End;
use crate::request::Requests;

/// JSON Schema of [`Requests`], with that of [`End`] under `$defs`; the Python types are generated from it.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let end = generator.subschema_for::<End>();
    debug_assert!(end.get("$ref").is_some());
    generator.into_root_schema_for::<Requests>().to_value()
}
