//! Captures of a simulated run: capture points by name, files by path.

use std::path::PathBuf;

use engpass_capture::{File, Files, Form, Limit, Point, SyntheticPackets, about};
use engpass_live::CaptureFile;
use engpass_simulate::SupportedTestbed;
use engpass_simulate::{RunControl, SimError, SimOutcome, captured};
use serde_json::{Value, json};

/// Capture points of a testbed, and the size limit of each capture.
pub(crate) type Wanted = (Vec<Point>, Limit);

/// Why a run with captures failed.
pub(crate) enum Failed {
    /// A file cannot be written; the message names file and reason.
    File(String),
    /// The simulation failed, as it would without captures.
    Run(SimError),
}

/// Finds the capture points. The error message names cause and remedy.
pub(crate) fn wanted(
    point: &engpass_testbed::Point,
    points: &[String],
    form: Option<&str>,
    limit: Option<&str>,
) -> Result<Wanted, String> {
    let form = form.map(Form::parse).transpose()?;
    let limit = limit.map(Limit::parse).transpose()?.unwrap_or_default();
    let points = points.iter().map(|text| Point::find(text, form, &point.topology));
    Ok((points.collect::<Result<_, _>>()?, limit))
}

/// Simulates a point and writes captures to `paths`. Returns the outcome, and a summary of each file in the same order.
pub(crate) fn simulated(
    this: &SupportedTestbed<'_>,
    (variant, seed): (&str, u64),
    (points, limit): Wanted,
    paths: &[PathBuf],
    watch: &dyn RunControl,
) -> Result<(SimOutcome, Value), Failed> {
    let (testbed, topology) = (&this.testbed, &this.topology);
    let about = about(testbed, variant, seed);
    let mut files = Files(Vec::new());
    let unwritten = |path: &PathBuf, error: std::io::Error| {
        Failed::File(format!("the capture `{}` cannot be written: {error}", path.display()))
    };
    for (place, path) in points.into_iter().zip(paths) {
        let packets = Box::new(SyntheticPackets::new(topology));
        let file = CaptureFile::create(path)
            .and_then(|out| File::begin(topology, place, limit, packets, &about, out))
            .map_err(|error| unwritten(path, error))?;
        files.0.push(file);
    }
    let ports = files.ports();
    let outcome = captured(testbed, topology, seed, &ports, watch, &mut files);
    let mut told = Vec::new();
    for (file, path) in files.0.into_iter().zip(paths) {
        let done = file.end().map_err(|error| unwritten(path, error))?;
        told.push(json!({
            "path": path.display().to_string(),
            "packets": done.packets,
            "bytes": done.bytes,
            "bad_pdus": done.bad_pdus,
            "limited": done.limited,
        }));
    }
    Ok((outcome.map_err(Failed::Run)?, Value::from(told)))
}
