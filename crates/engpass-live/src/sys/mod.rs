//! System calls that need `unsafe`, each behind a safe function.
#![allow(unsafe_code)]

pub(crate) mod batch;
pub(crate) mod clock;
pub(crate) mod device;
pub(crate) mod option;
pub(crate) mod send;
pub(crate) mod signal;
pub(crate) mod thread;
pub(crate) mod thread_priority;
pub(crate) mod tun;
pub(crate) mod uring;
