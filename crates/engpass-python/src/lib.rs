//! `engpass._engpass`: coarse calls from Python into the core. Structured data are passed as JSON, there are no callbacks per packet, and
//! runs release the global interpreter lock.

mod capture;
mod emulate;
mod interrupt;
mod measured;
mod memory;
mod points;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use engpass_limit::limit;
use engpass_live::probe::Probe;
use engpass_live::{Limits, nanoseconds};
use engpass_outcome::{self as outcome, Outcome, Results, SweptValue};
use engpass_simulate::{Engine, modelled};
use engpass_simulate::{SimError, simulate, timeline};
use engpass_testbed::{Diagnostics, Source};
use indexmap::IndexMap;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};

use interrupt::Interrupt;
use points::Points;

pyo3::create_exception!(
    _engpass,
    InvalidTestbed,
    PyValueError,
    "A testbed file has errors: `diagnostics` and `rendered`."
);
pyo3::create_exception!(
    _engpass,
    Interrupted,
    PyRuntimeError,
    "A run was interrupted; nothing of it is kept."
);
pyo3::create_exception!(
    _engpass,
    Unsupported,
    PyRuntimeError,
    "The engine does not support a part of the testbed."
);

/// A checked testbed file with its variants and sweep.
#[pyclass(name = "Campaign", module = "engpass._engpass", frozen)]
struct PyCampaign(Points);

#[pymethods]
impl PyCampaign {
    #[getter]
    fn name(&self) -> &str {
        self.0.campaign.name()
    }

    #[getter]
    fn description(&self) -> Option<&str> {
        self.0.campaign.description()
    }

    #[getter]
    fn text(&self) -> &str {
        self.0.campaign.text()
    }

    #[getter]
    fn variants(&self) -> Vec<String> {
        self.0.campaign.variants().to_vec()
    }

    #[getter]
    fn repeats(&self) -> u32 {
        self.0.campaign.repeats()
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.campaign.seed()
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.0.campaign.duration().time().as_secs_f64()
    }

    /// The axes of the sweep, as JSON.
    fn axes(&self) -> String {
        let axes: Vec<Value> = self.0.campaign.axes().iter().map(axis).collect();
        Value::from(axes).to_string()
    }

    /// The graph of the testbed, as JSON, for drawing.
    fn topology(&self, py: Python<'_>) -> PyResult<String> {
        let point = self.point(py, &self.0.campaign.variants()[0], &[])?;
        Ok(serde_json::to_string(&engpass_testbed::drawing(&point)).expect("a drawing serializes to JSON"))
    }

    /// Hosts, links and traffic of one point in whole numbers, as JSON, for engines outside the core.
    fn numbers(&self, py: Python<'_>, variant: &str, sweep: Vec<(String, String)>) -> PyResult<String> {
        let point = self.point(py, variant, &sweep)?;
        Ok(serde_json::to_string(&engpass_testbed::plan(&point)).expect("a plan serializes to JSON"))
    }

    /// The share of the measurement window in which each link is down that is down in it, of one repeat, as JSON.
    fn shares_down(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: Vec<(String, String)>,
        repeat: u32,
    ) -> PyResult<String> {
        let point = self.point(py, variant, &sweep)?;
        let seed = point.testbed.run.seed + u64::from(repeat);
        Ok(json!(engpass_testbed::shares_down(&point, seed)).to_string())
    }

    /// The settings of these families at one point as a tree, as JSON: values as written, and defaults. An empty list asks for all families.
    /// Without `variant`, the answer has the settings of the file itself.
    fn settings(
        &self,
        py: Python<'_>,
        variant: Option<&str>,
        sweep: Vec<(String, String)>,
        families: Vec<String>,
    ) -> PyResult<Vec<u8>> {
        let settings = py.detach(|| self.0.campaign.settings(variant, &sweep, &families));
        let settings = settings.map_err(|diagnostics| invalid(py, &diagnostics))?;
        Ok(serde_json::to_vec(&settings).expect("settings serialize to JSON"))
    }

    /// Raises `InvalidTestbed` if the agents of real hosts do not support the traffic of one point.
    fn check_agents(&self, py: Python<'_>, variant: &str, sweep: Vec<(String, String)>) -> PyResult<()> {
        let checked = py.detach(|| self.0.campaign.check_agents(variant, &sweep));
        checked.map_err(|diagnostics| invalid(py, &diagnostics))
    }

    /// Traffic settings that agents do not support and that no warning mentions, as text with lines of the file. Empty if there are none.
    fn rendered_unmade(&self, color: bool) -> String {
        self.0.campaign.unmade().render(color)
    }

    /// Estimated memory in bytes for this campaign, for one point of it, and for a run of each engine, for these variants, as JSON.
    fn memory(&self, py: Python<'_>, variants: Vec<String>, sweep: Option<Vec<(String, String)>>) -> String {
        py.detach(|| memory::estimated(&self.0, &variants, sweep)).to_string()
    }

    /// Warnings about valid settings that are probably not intended, as JSON. If `variants` is given, only for these variants.
    #[pyo3(signature = (variants=None))]
    fn warnings(&self, variants: Option<Vec<String>>) -> String {
        let campaign = &self.0.campaign;
        match variants {
            Some(variants) => campaign.warnings_of(&variants).to_json().to_string(),
            None => campaign.warnings().to_json().to_string(),
        }
    }

    /// The warnings as text with lines of the file, in colour if `color`. Empty if there are none. If `variants` is given, only for these
    /// variants.
    #[pyo3(signature = (color, variants=None))]
    fn rendered_warnings(&self, color: bool, variants: Option<Vec<String>>) -> String {
        let campaign = &self.0.campaign;
        match variants {
            Some(variants) => campaign.warnings_of(&variants).render(color),
            None => campaign.warnings().render(color),
        }
    }

    /// Settings of a point that `limit` and `simulate` ignore: one sentence per key.
    fn left_out(&self, py: Python<'_>, variant: &str, sweep: Vec<(String, String)>) -> PyResult<Vec<String>> {
        let point = self.point(py, variant, &sweep)?;
        Ok(engpass_simulate::left_out(&point.testbed))
    }

    /// TCP settings of a point that `measure` or `emulate` cannot set for a socket: one sentence per end.
    fn unset_keys(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: Vec<(String, String)>,
        engine: &str,
    ) -> PyResult<Vec<String>> {
        Ok(engpass_measured::unset_keys(&*self.point(py, variant, &sweep)?, measured::engine(engine)?))
    }

    /// Requests to the agents of one point, as JSON. `asked` is an `Asked` as JSON.
    fn requests(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: Vec<(String, String)>,
        asked: &[u8],
    ) -> PyResult<Vec<u8>> {
        measured::asked_for(py, &*self.point(py, variant, &sweep)?, asked)
    }

    /// The outcome of one point with real hosts, from the answers of their agents, as JSON.
    fn measured(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: Vec<(String, String)>,
        repeat: u32,
        asked: &[u8],
        answers: &[u8],
    ) -> PyResult<String> {
        let outcome = measured::outcome(py, &*self.point(py, variant, &sweep)?, asked, answers)?;
        let outcome =
            Outcome { variant: variant.to_owned(), repeat, sweep: self.swept_values(&sweep), ..outcome };
        Ok(serde_json::to_string(&outcome).expect("an outcome serializes to JSON"))
    }

    /// Engines among `limit` and `simulate` that do not support a point, each with reason and remedy.
    fn refusals(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: Vec<(String, String)>,
    ) -> PyResult<Vec<(&'static str, String)>> {
        let point = self.point(py, variant, &sweep)?;
        let engines = [("limit", Engine::Limit), ("simulate", Engine::Simulate)];
        let refusal = |(name, engine)| Some((name, modelled(&point.testbed, &point.topology, engine).err()?));
        Ok(engines.into_iter().filter_map(refusal).collect())
    }

    /// Runs one point and returns its outcome as JSON.
    #[pyo3(signature = (engine, variant, sweep, repeat, interrupt))]
    fn run(
        &self,
        py: Python<'_>,
        engine: &str,
        variant: &str,
        sweep: Vec<(String, String)>,
        repeat: u32,
        interrupt: &Interrupt,
    ) -> PyResult<String> {
        // All of it without the interpreter lock, also reading the point and writing the outcome: of a short point they are the greater part.
        py.detach(|| self.outcome_of(engine, (variant, &sweep, repeat), interrupt)).map_err(|failed| {
            match failed {
                Failed::Invalid(diagnostics) => invalid(py, &diagnostics),
                Failed::Unsupported(what) => Unsupported::new_err(what),
                Failed::Run(error) => refused(error),
                Failed::NoEngine => {
                    PyValueError::new_err(format!("unknown engine `{engine}`: use `limit` or `simulate`"))
                }
            }
        })
    }

    /// Raises `ValueError` unless `points` are capture points of the point that support `form`, and `limit` is a valid size limit.
    #[pyo3(signature = (variant, sweep, points, form, limit))]
    fn check_captures(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: Vec<(String, String)>,
        points: Vec<String>,
        form: Option<&str>,
        limit: Option<&str>,
    ) -> PyResult<()> {
        let point = self.point(py, variant, &sweep)?;
        capture::wanted(&point, &points, form, limit).map(|_| ()).map_err(PyValueError::new_err)
    }

    /// Simulates one point and captures packets to files. Returns the outcome, and a summary of each file, as JSON.
    #[pyo3(signature = (variant, sweep, repeat, captures, form, limit, interrupt))]
    #[allow(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn capture(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: Vec<(String, String)>,
        repeat: u32,
        captures: Vec<(String, PathBuf)>,
        form: Option<&str>,
        limit: Option<&str>,
        interrupt: &Interrupt,
    ) -> PyResult<(String, String)> {
        let point = self.point(py, variant, &sweep)?;
        let seed = point.testbed.run.seed + u64::from(repeat);
        let watch = interrupt.watch(&point);
        let (points, paths): (Vec<String>, Vec<PathBuf>) = captures.into_iter().unzip();
        let wanted = capture::wanted(&point, &points, form, limit).map_err(PyValueError::new_err)?;
        let this =
            modelled(&point.testbed, &point.topology, Engine::Simulate).map_err(Unsupported::new_err)?;
        let done = py.detach(|| capture::simulated(&this, (variant, seed), wanted, &paths, &watch));
        let (outcome, captured) = done.map_err(|failed| match failed {
            capture::Failed::File(what) => PyOSError::new_err(what),
            capture::Failed::Run(error) => refused(error),
        })?;
        let results = (outcome.stored(), &this.without);
        let line = self.outcome(outcome::Engine::Simulate, (variant, &sweep, repeat), seed, results);
        Ok((line, captured.to_string()))
    }

    /// Simulates one point and samples it at `samples` times. Returns windows, queues and events over time, as JSON.
    #[pyo3(signature = (variant, sweep, repeat, samples, interrupt))]
    fn timeline(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: Vec<(String, String)>,
        repeat: u32,
        samples: usize,
        interrupt: &Interrupt,
    ) -> PyResult<String> {
        let point = self.point(py, variant, &sweep)?;
        let seed = point.testbed.run.seed + u64::from(repeat);
        let watch = interrupt.watch(&point);
        let this =
            modelled(&point.testbed, &point.topology, Engine::Simulate).map_err(Unsupported::new_err)?;
        let timeline = py.detach(|| timeline(&this.testbed, &this.topology, seed, samples, &watch));
        let timeline = serde_json::to_string(&timeline.map_err(refused)?);
        Ok(timeline.expect("a timeline serializes to JSON"))
    }
}

fn refused(error: SimError) -> PyErr {
    match error {
        SimError::Interrupted => Interrupted::new_err("interrupted"),
        SimError::Unsupported(what) => Unsupported::new_err(what),
        SimError::Ledger(what) => PyRuntimeError::new_err(what),
    }
}

/// Why a point has no outcome.
enum Failed {
    Invalid(Diagnostics),
    Unsupported(String),
    Run(SimError),
    NoEngine,
}

impl PyCampaign {
    /// Runs one point and returns its outcome as JSON.
    fn outcome_of(
        &self,
        engine: &str,
        at: (&str, &[(String, String)], u32),
        interrupt: &Interrupt,
    ) -> Result<String, Failed> {
        let point = self.0.get(at.0, at.1).map_err(Failed::Invalid)?;
        let seed = point.testbed.run.seed + u64::from(at.2);
        let watch = interrupt.watch(&point);
        let modelled =
            |engine| modelled(&point.testbed, &point.topology, engine).map_err(Failed::Unsupported);
        match engine {
            "limit" => {
                let this = modelled(Engine::Limit)?;
                let results = limit(&this.testbed, &this.topology).stored();
                Ok(self.outcome(outcome::Engine::Limit, at, 0, (results, &this.without)))
            }
            "simulate" => {
                let this = modelled(Engine::Simulate)?;
                let results =
                    simulate(&this.testbed, &this.topology, seed, &watch).map_err(Failed::Run)?.stored();
                Ok(self.outcome(outcome::Engine::Simulate, at, seed, (results, &this.without)))
            }
            _ => Err(Failed::NoEngine),
        }
    }

    fn point(
        &self,
        py: Python<'_>,
        variant: &str,
        sweep: &[(String, String)],
    ) -> PyResult<Arc<engpass_testbed::Point>> {
        py.detach(|| self.0.get(variant, sweep)).map_err(|diagnostics| invalid(py, &diagnostics))
    }

    /// Returns the outcome of a point as JSON.
    fn outcome(
        &self,
        engine: outcome::Engine,
        (variant, sweep, repeat): (&str, &[(String, String)], u32),
        seed: u64,
        (results, without): (Results, &IndexMap<String, &'static str>),
    ) -> String {
        let without = without.iter().map(|(traffic, cause)| (traffic.clone(), (*cause).to_owned()));
        let Results { flows, links, nodes, drops, events } = results;
        let outcome = Outcome {
            version: outcome::VERSION,
            variant: variant.to_owned(),
            engine,
            repeat,
            seed,
            sweep: self.swept_values(sweep),
            flows,
            links,
            nodes,
            drops,
            events,
            without: without.collect(),
            hosts: IndexMap::new(),
            measured: None,
            emulated: None,
            valid: None,
            invalid: None,
        };
        serde_json::to_string(&outcome).expect("an outcome serializes to JSON")
    }

    /// Swept values by the path of their key.
    fn swept_values(&self, sweep: &[(String, String)]) -> IndexMap<String, SweptValue> {
        sweep.iter().map(|(path, text)| (path.clone(), self.swept(path, text))).collect()
    }

    /// A swept value: a number in base units, or the text of the file if the value is not a quantity.
    fn swept(&self, path: &str, text: &str) -> SweptValue {
        let axis = self.0.campaign.axes().iter().find(|axis| axis.path == *path);
        let value = axis.and_then(|axis| axis.values.iter().find(|value| value.text == *text));
        match value.and_then(|value| value.number) {
            Some(number) => SweptValue { number: Some(number), text: None },
            None => SweptValue { number: None, text: Some(text.to_owned()) },
        }
    }
}

fn axis(axis: &engpass_testbed::Axis) -> Value {
    let values: Vec<Value> = axis
        .values
        .iter()
        .map(|value| json!({ "text": value.text, "number": value.number, "unit": value.unit }))
        .collect();
    json!({ "path": axis.path, "values": values })
}

fn invalid(py: Python<'_>, diagnostics: &Diagnostics) -> PyErr {
    let error = InvalidTestbed::new_err(diagnostics.summary());
    let value = error.value(py);
    let loads = py.import("json").and_then(|json| json.getattr("loads"));
    let parsed = loads.and_then(|loads| loads.call1((diagnostics.to_json().to_string(),)));
    let filled = parsed
        .and_then(|parsed| value.setattr("diagnostics", parsed))
        .and_then(|()| value.setattr("rendered", diagnostics.render(false)))
        .and_then(|()| value.setattr("rendered_color", diagnostics.render(true)));
    filled.map_or_else(|cause| cause, |()| error)
}

/// The version of the core.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The JSON Schema of a testbed file.
#[pyfunction]
fn schema() -> String {
    format!("{:#}", engpass_testbed::schema())
}

/// Every component with its help and keys, as JSON.
#[pyfunction]
fn catalogue() -> String {
    format!("{:#}", engpass_testbed::catalogue())
}

/// The parts of a dotted key. Raises `ValueError` if it is none.
#[pyfunction]
fn split_path(path: &str) -> PyResult<Vec<String>> {
    engpass_testbed::path::parse(path)
        .map_err(|cause| PyValueError::new_err(format!("`{path}` is not a valid path: {cause}")))
}

/// A dotted key of these parts, with quotes where TOML needs them.
#[pyfunction]
fn join_path(parts: Vec<String>) -> String {
    engpass_testbed::path::join(&parts)
}

/// Reads and checks a testbed file. Raises `InvalidTestbed` if it has errors.
#[pyfunction]
#[pyo3(signature = (text, source, overrides, max_points))]
fn load(
    py: Python<'_>,
    text: &[u8],
    source: String,
    overrides: Vec<(String, String)>,
    max_points: Option<u64>,
) -> PyResult<PyCampaign> {
    let loaded = Source::from_bytes(source, text)
        .and_then(|source| engpass_testbed::load(&source, &overrides, max_points));
    loaded.map(|campaign| PyCampaign(Points::of(campaign))).map_err(|diagnostics| invalid(py, &diagnostics))
}

/// Acts as an agent for a controller on standard input and output until the channel closes. Returns the exit code.
#[pyfunction]
#[pyo3(signature = (max_rate, max_bytes, max_time, silence))]
fn agent(
    py: Python<'_>,
    max_rate: Option<&str>,
    max_bytes: Option<&str>,
    max_time: Option<&str>,
    silence: &str,
) -> PyResult<u8> {
    let limits = Limits::parse(max_rate, max_bytes, max_time).map_err(PyValueError::new_err)?;
    let silence = nanoseconds(silence).map(Duration::from_nanos).map_err(PyValueError::new_err)?;
    let ended = py.detach(|| engpass_live::run(io::stdin(), io::stdout(), limits, silence));
    Ok(ended.exit_code())
}

/// A probe of this host. Run its steps in order, then get their results.
#[pyclass(name = "Probe", module = "engpass._engpass", frozen)]
struct PyProbe(Arc<Mutex<Probe>>);

#[pymethods]
impl PyProbe {
    #[new]
    #[pyo3(signature = (quick, directory))]
    fn new(quick: bool, directory: PathBuf) -> Self {
        Self(Arc::new(Mutex::new(Probe::new(quick, &directory))))
    }

    /// Names of the steps, in order.
    fn steps(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| lock(&self.0).steps())
    }

    /// Runs the step with this index. It runs in a thread of its own, so that Ctrl-C interrupts the call without waiting for the step. The
    /// thread holds nothing that outlives the process. Raises `OSError` if no thread can be started.
    fn run(&self, py: Python<'_>, step: usize) -> PyResult<()> {
        if step >= self.steps(py).len() {
            return Err(PyValueError::new_err(format!("there is no step {step}")));
        }
        let probe = Arc::clone(&self.0);
        let (done, mut ended) = mpsc::channel();
        #[allow(clippy::disallowed_methods, reason = "it measures, and simulates nothing")]
        let worker = thread::Builder::new().spawn(move || {
            lock(&probe).run(step);
            // After Ctrl-C, the receiver is gone.
            let _ = done.send(());
        })?;
        loop {
            let told;
            (told, ended) = py.detach(move || (ended.recv_timeout(SIGNALS), ended));
            if told != Err(RecvTimeoutError::Timeout) {
                break;
            }
            py.check_signals()?;
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(())
    }

    /// Results of the finished steps, as JSON.
    fn report(&self, py: Python<'_>) -> String {
        let report = py.detach(|| serde_json::to_string(&lock(&self.0).report()));
        report.expect("a report serializes to JSON")
    }

    /// The host as a testbed table with this name.
    fn table(&self, py: Python<'_>, name: &str) -> String {
        py.detach(|| lock(&self.0).report().table(name))
    }
}

/// Interval between checks for signals.
const SIGNALS: Duration = Duration::from_millis(100);

/// Locks the probe. A panic in one step does not invalidate the results of others.
fn lock(probe: &Mutex<Probe>) -> MutexGuard<'_, Probe> {
    probe.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymodule]
fn _engpass(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Interrupt>()?;
    module.add_class::<PyCampaign>()?;
    module.add_class::<PyProbe>()?;
    let py = module.py();
    module.add("InvalidTestbed", py.get_type::<InvalidTestbed>())?;
    module.add("Interrupted", py.get_type::<Interrupted>())?;
    module.add("Unsupported", py.get_type::<Unsupported>())?;
    module.add("NotMeasured", py.get_type::<measured::NotMeasured>())?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue, module)?)?;
    module.add_function(wrap_pyfunction!(split_path, module)?)?;
    module.add_function(wrap_pyfunction!(join_path, module)?)?;
    module.add_function(wrap_pyfunction!(load, module)?)?;
    module.add_function(wrap_pyfunction!(agent, module)?)?;
    module.add_function(wrap_pyfunction!(measured::check_end_of, module)?)?;
    module.add_function(wrap_pyfunction!(emulate::emulate, module)?)?;
    module.add_function(wrap_pyfunction!(emulate::replay, module)?)?;
    Ok(())
}
