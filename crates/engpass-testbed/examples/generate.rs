//! Writes the files that are generated from the types of this crate, or checks that they are up to date: schema, catalogue, reference,
//! Python types.
//!
//! `cargo run -p engpass-testbed --example generate -- write|check`; `check` exits with 1 if a file is out of date.

#[path = "../../engpass-outcome/examples/generate/files.rs"]
mod files;

use std::fmt::Write;
use std::iter;
use std::process::ExitCode;

use engpass_model::unit::{UNITS, Unit};

fn main() -> ExitCode {
    let about = "The types of points and drawings: generated from `crates/engpass-testbed` by `make gen`.";
    let schema = engpass_testbed::plan_schema();
    let plan = engpass_outcome::python::module(about, "", &schema, "PointPlan", &[]);
    let catalogue = engpass_testbed::catalogue();
    files::run(&[
        ("schema/testbed.schema.json", format!("{:#}\n", engpass_testbed::schema())),
        ("schema/catalogue.json", format!("{catalogue:#}\n")),
        ("docs/reference.md", engpass_testbed::reference(&catalogue)),
        ("python/engpass/types/plan.py", plan),
        ("python/engpass/types/units.py", units()),
    ])
}

/// Returns the Python module with the table of units.
fn units() -> String {
    let mut text = String::from(
        "\"\"\"Units of quantities: generated from `crates/engpass-model` by `make gen`.\"\"\"\n\n\
         from collections.abc import Mapping\n\
         from decimal import Decimal\n\n\
         UNITS: Mapping[str, tuple[str, Decimal]] = {\n",
    );
    for unit in UNITS {
        for name in iter::once(&unit.name).chain(unit.others) {
            let Unit { base, mantissa, exponent, .. } = unit;
            writeln!(text, "    \"{name}\": (\"{base}\", Decimal(\"{mantissa}e{exponent}\")),")
                .expect("writing to a string cannot fail");
        }
    }
    text + "}\n\"\"\"Units of files and results: base unit of each, and its size in it. Shares have none.\"\"\"\n"
}
