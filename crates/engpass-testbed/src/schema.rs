//! The JSON Schema of a testbed file, for editors and for the Python types.

use engpass_model::bond::Bond;
use engpass_model::circuit::Circuit;
use engpass_model::component_family::Listing;
use engpass_model::event::Event;
use engpass_model::host::Host;
use engpass_model::link::Link;
use engpass_model::router::Router;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::tunnel::Tunnel;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::required_keys::without_null;
use crate::testbed::Run;

/// JSON Schema of a [`PointPlan`](crate::PointPlan), with that of a [`Drawing`](crate::Drawing) under `$defs`; the Python types are generated from it.
pub fn plan_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let drawing = generator.subschema_for::<crate::Drawing>();
    debug_assert!(drawing.get("$ref").is_some());
    generator.into_root_schema_for::<crate::PointPlan>().to_value()
}

/// JSON Schema (draft 2020-12) of the whole file.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let host = component::<Host>(&mut generator);
    let router = component::<Router>(&mut generator);
    let link = component::<Link>(&mut generator);
    let circuit = component::<Circuit>(&mut generator);
    let tunnel = component::<Tunnel>(&mut generator);
    let bond = component::<Bond>(&mut generator);
    let event = component::<Event>(&mut generator);
    let run = component::<Run>(&mut generator);
    let switch = by_kind(Switch::listing(&mut generator));
    let traffic = by_kind(Traffic::listing(&mut generator));
    let mut definitions: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    definitions.sort_keys();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Engpass testbed",
        "description": "A network, its traffic, and how it is to be run. Units are mandatory: `\"9 kB\"`.",
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "Name of the testbed in reports; the name of the file if not given." },
            "description": { "type": "string", "description": "Purpose of the testbed, in a sentence or two." },
            "host": named("Hosts by name.", host),
            "switch": named("Switches by name.", switch),
            "router": named("Routers by name.", router),
            "link": named("Links by name.", link),
            "circuit": named("Circuits by name.", circuit),
            "tunnel": named("Tunnels by name.", tunnel),
            "bond": named("Bonds by name.", bond),
            "traffic": named("Traffic by name.", traffic),
            "event": named("Events by name.", event),
            "run": run,
            "sweep": sweep(),
            "variant": {
                "type": "object",
                "description": "Variants by name: each a table of dotted keys and the values they have in it.",
                "additionalProperties": {
                    "type": "object",
                    "examples": [{ "circuit.data.shaping": "16 %" }],
                },
            },
        },
        "additionalProperties": false,
        "$defs": definitions,
    });
    without_null(&mut schema);
    schema
}

fn component<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    T::json_schema(generator).to_value()
}

fn named(description: &str, each: Value) -> Value {
    json!({ "type": "object", "description": description, "additionalProperties": each })
}

/// One schema per kind, distinguished by the key `kind`.
fn by_kind(listing: Listing) -> Value {
    let kinds = listing.kinds.into_iter().map(|(kind, schema)| {
        let mut schema = schema.to_value();
        let mut properties = Map::new();
        properties.insert(
            "kind".into(),
            json!({ "const": kind, "description": format!("The {}.", listing.family) }),
        );
        properties.extend(schema["properties"].as_object().cloned().unwrap_or_default());
        let mut required = vec![json!("kind")];
        required.extend(schema["required"].as_array().cloned().unwrap_or_default());
        schema["properties"] = Value::Object(properties);
        schema["required"] = Value::Array(required);
        schema["title"] = kind.into();
        schema
    });
    json!({ "oneOf": kinds.collect::<Vec<_>>() })
}

fn sweep() -> Value {
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    json!({
        "type": "object",
        "description": "Dotted keys and the values they run through; several axes give every combination.",
        "examples": [{ "traffic.stream.message": { "from": "1 kB", "to": "64 kB", "step": "1 kB" } }],
        "additionalProperties": {
            "anyOf": [
                { "type": "array", "items": scalar, "minItems": 1, "uniqueItems": true },
                { "type": "object", "description": "A range, or dotted keys continued." },
            ],
        },
    })
}
