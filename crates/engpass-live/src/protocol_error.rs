//! Errors for users: a code, a cause, and a text of help.

use std::io;

use serde::Serialize;

/// Error codes, as in `docs/agent.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Code {
    BadLine,
    BadRequest,
    UnknownRun,
    UnknownFlow,
    Busy,
    WrongOrder,
    Unreachable,
    Refused,
    NoAnswer,
    WrongPeer,
    NotPermitted,
    NotSupported,
    Limit,
    System,
}

/// An error record of the control protocol.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ProtocolError {
    pub(crate) code: Code,
    pub(crate) cause: String,
    pub(crate) help: String,
}

pub(crate) type Result<T> = std::result::Result<T, ProtocolError>;

impl ProtocolError {
    pub(crate) fn new(code: Code, cause: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, cause: cause.into(), help: help.into() }
    }

    /// Returns the error for a bad field of a request.
    pub(crate) fn field(name: &str, cause: impl std::fmt::Display, help: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, format!("`{name}`: {cause}"), help)
    }

    /// Returns the error for a failed system call; `what` names the operation.
    pub(crate) fn system(what: &str, error: &io::Error) -> Self {
        let (code, help) = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                (Code::NotPermitted, "run the agent as root or with the required capability")
            }
            Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::ENOSYS) => {
                (Code::NotSupported, "this kernel does not support it: remove the setting")
            }
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => {
                (Code::Unreachable, "check addresses and routes between the two hosts")
            }
            Some(libc::ECONNREFUSED | libc::ECONNRESET | libc::EPIPE) => {
                (Code::Refused, "check that the peer's agent is alive and that no firewall rejects its ports")
            }
            Some(libc::ETIMEDOUT) => {
                (Code::Unreachable, "check addresses, routes and firewalls between the two hosts")
            }
            Some(libc::EADDRNOTAVAIL) => (Code::System, "give an address of this host"),
            Some(libc::EMFILE | libc::ENFILE) => {
                (Code::System, "raise the limit of open files, or use fewer streams")
            }
            Some(libc::ENODEV) => (Code::System, "give an interface of this host"),
            _ => (Code::System, "see the error of the system call"),
        };
        Self::new(code, format!("{what}: {error}"), help)
    }
}

/// Adds the name of the operation to an error.
pub(crate) trait ErrorContext<T> {
    /// Converts the error to a [`ProtocolError`] that names `what` was done.
    fn doing(self, what: &str) -> Result<T>;
}

impl<T> ErrorContext<T> for io::Result<T> {
    fn doing(self, what: &str) -> Result<T> {
        self.map_err(|error| ProtocolError::system(what, &error))
    }
}
