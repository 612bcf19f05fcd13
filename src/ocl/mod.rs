//! OpenCL: platforms, contexts, buffers, programs and checked launches. The only unsafe code of the crate.
//!
//! The rest of the crate waits for a device in reads and writes of buffers, and in `Device::synchronize`. It launches kernels only through the
//! typed functions that `kernels!` declares (`crate::kernels`). They check the length of every buffer that they pass.
#![allow(unsafe_code)]

mod buffer;
mod cache;
mod context;
mod foreign;
mod launch;
mod platform;
mod program;
mod quirks;
mod transfer;

pub(crate) use buffer::Buffer;
pub use context::Programs;
pub(crate) use context::{Context, lock};
pub(crate) use launch::{Arg, MOST_WORDS, Plan, Plans, Prepared, Signature};
pub(crate) use platform::{Found, found};
pub(crate) use program::{Defines, File, checksum};

use crate::error::Error;
use opencl3::error_codes::{ClError, error_text};

/// Turns a failed call into an error that names the call, the device and the code.
fn api_error(device: &str, call: impl Into<String>, error: ClError) -> Error {
    Error::Api { device: device.into(), call: call.into(), name: error_text(error.0), code: error.0 }
}
