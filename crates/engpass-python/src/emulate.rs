//! Emulated testbeds: the driver in this process, and the replay of its log.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use engpass_live::EmulateError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;

use crate::{Unsupported, invalid};

fn refused(py: Python<'_>, error: &EmulateError) -> PyErr {
    match error {
        EmulateError::Testbed(found) => invalid(py, found),
        EmulateError::Unsupported(what) => Unsupported::new_err(what.clone()),
        EmulateError::Config { .. } => PyValueError::new_err(error.to_string()),
        EmulateError::System { .. } => PyOSError::new_err(error.to_string()),
        EmulateError::Interrupted => PyKeyboardInterrupt::new_err(()),
    }
}

/// Carries real packets through the network of a testbed until it is stopped. Prints a JSON line to standard output when everything is
/// ready, and returns the last status as JSON.
#[pyfunction]
#[pyo3(signature = (config))]
pub(crate) fn emulate(py: Python<'_>, config: &str) -> PyResult<String> {
    let mut ready = |line: &Value| {
        let mut output = io::stdout();
        // The parent process may have closed the pipe.
        let _ = output.write_all(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
    };
    let ended = py.detach(|| engpass_live::emulate(config, &mut ready));
    ended.map(|status| status.to_string()).map_err(|error| refused(py, &error))
}

/// Replays the inputs of a driver log in virtual time. Returns what was compared and the first difference, as JSON.
#[pyfunction]
#[pyo3(signature = (path))]
pub(crate) fn replay(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    // The exception that a Python signal handler raises is passed on to the caller.
    let raised = Mutex::new(None);
    let found = py.detach(|| {
        let interrupted = || match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                true
            }
        };
        engpass_live::replay(&path, &interrupted)
    });
    match (found, raised.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        (Ok(found), _) => Ok(found.to_string()),
        (Err(EmulateError::Interrupted), Some(error)) => Err(error),
        (Err(error), _) => Err(refused(py, &error)),
    }
}
