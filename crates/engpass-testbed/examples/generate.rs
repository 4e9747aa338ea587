//! Writes the files that are generated from the types of this crate, or checks that they are up to date: schema, catalogue, reference,
//! Python types.
//!
//! `cargo run -p engpass-testbed --example generate -- write|check`; `check` exits with 1 if a file is out of date.

#[path = "../../engpass-outcome/examples/generate/files.rs"]
mod files;

use std::process::ExitCode;

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
    ])
}
