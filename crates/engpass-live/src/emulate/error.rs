//! Errors of the driver and of the replay.

use std::path::Path;
use std::{fmt, io};

use engpass_testbed::Diagnostics;

/// Reason why a testbed cannot be emulated, or a log cannot be replayed.
#[derive(Debug)]
pub enum EmulateError {
    /// The testbed has errors.
    Testbed(Box<Diagnostics>),
    /// The testbed uses something that this engine does not support; the text is a sentence.
    Unsupported(String),
    /// The configuration or request is wrong.
    Config {
        /// What is wrong.
        cause: String,
        /// How to fix it.
        help: String,
    },
    /// A system call or file operation failed.
    System {
        /// The operation, and the error of the system.
        cause: String,
        /// How to fix it.
        help: String,
    },
    /// The run was interrupted.
    Interrupted,
}

impl EmulateError {
    pub(super) fn config(cause: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Config { cause: cause.into(), help: help.into() }
    }

    /// Returns the error for a file that could not be written or read.
    pub(super) fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        let help = match error.kind() {
            io::ErrorKind::NotFound if what == "writing" => "create its directory first, or use another one",
            io::ErrorKind::NotFound => "give the path of a log that `emulate` wrote",
            io::ErrorKind::InvalidData => "use a log that `emulate` wrote",
            io::ErrorKind::PermissionDenied => "check the permissions there, or use another path",
            io::ErrorKind::IsADirectory => "give the path of a file in this directory",
            io::ErrorKind::StorageFull => "free some space on the disk, or use another one",
            _ => "see the error of the system call",
        };
        Self::System { cause: format!("{what} `{}`: {error}", path.display()), help: help.to_owned() }
    }

    pub(super) fn system(what: &str, error: &io::Error) -> Self {
        let help = match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "it needs CAP_NET_ADMIN and CAP_SYS_ADMIN over the namespaces: run as root, or in the user \
                 namespace that they belong to"
            }
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
                "check the path; devices need `/dev/net/tun` and the kernel's `tun`"
            }
            Some(libc::EBUSY) => "another process has the device open: end it, or use another name",
            Some(libc::EADDRINUSE) => {
                "use another path: another driver listens there, or a file with that name exists"
            }
            Some(libc::EINVAL) => {
                "check the name: an existing device with this name must be of the same kind"
            }
            _ => "see the error of the system call",
        };
        Self::System { cause: format!("{what}: {error}"), help: help.to_owned() }
    }
}

impl fmt::Display for EmulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Testbed(found) => f.write_str(&found.summary()),
            Self::Unsupported(what) => f.write_str(what),
            Self::Config { cause, help } | Self::System { cause, help } => {
                write!(f, "{cause}\nhelp: {help}")
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for EmulateError {}
