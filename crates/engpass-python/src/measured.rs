//! Points with real hosts: requests to agents, and outcomes of their answers.

use engpass_limit::limit;
use engpass_measured::{Answers, Asked, Failure, check_end, measured, requests};
use engpass_outcome::Outcome;
use engpass_simulate::{Engine, modelled};
use engpass_testbed::Point;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

pyo3::create_exception!(
    _engpass,
    NotMeasured,
    pyo3::exceptions::PyRuntimeError,
    "A point with real hosts has no outcome. Its arguments are the cause, and the cure or none."
);

fn failed(failure: Failure) -> PyErr {
    NotMeasured::new_err((failure.cause, failure.help))
}

/// Parses JSON that the controller wrote.
fn parsed<T: DeserializeOwned>(text: &[u8]) -> PyResult<T> {
    serde_json::from_slice(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Parses the name of an engine with real hosts.
pub(crate) fn engine(name: &str) -> PyResult<engpass_measured::Engine> {
    serde_json::from_value(name.into()).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns the requests to the agents of a point as JSON.
pub(crate) fn asked_for(py: Python<'_>, point: &Point, asked: &[u8]) -> PyResult<Vec<u8>> {
    let asked: Asked = parsed(asked)?;
    let found = py.detach(|| requests(point, &asked)).map_err(failed)?;
    Ok(serde_json::to_vec(&found).expect("requests serialize to JSON"))
}

/// Returns the outcome of a point without variant, repeat and swept values.
pub(crate) fn outcome(py: Python<'_>, point: &Point, asked: &[u8], answers: &[u8]) -> PyResult<Outcome> {
    let (asked, answers): (Asked, Answers) = (parsed(asked)?, parsed(answers)?);
    let found = py.detach(|| {
        let this = modelled(&point.testbed, &point.topology, Engine::Limit);
        let limits = this.map(|this| limit(&this.testbed, &this.topology).stored().flows);
        measured(point, &asked, &limits.unwrap_or_default(), answers)
    });
    found.map_err(failed)
}

/// Raises `NotMeasured` if an end of a flow failed or ended before its time. `told` is its event `done`, as JSON.
#[pyfunction]
#[pyo3(name = "check_end", signature = (flow, host, told))]
pub(crate) fn check_end_of(flow: &str, host: &str, told: &[u8]) -> PyResult<()> {
    check_end(flow, host, parsed(told)?).map_err(failed)
}
