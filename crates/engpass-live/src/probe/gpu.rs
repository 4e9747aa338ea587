//! Copies between memory and a GPU, pinned and pageable, through the CUDA driver.
//!
//! The driver is loaded at run time. Without it nothing is measured, and nothing is guessed.
#![allow(unsafe_code, reason = "the driver is a C library that is found at run time")]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;

use libloading::{Library, Symbol};
use schemars::JsonSchema;
use serde::Serialize;

use super::sample_stats::{Spread, spread};
use super::sys;

/// Copy throughput of one GPU, in bytes per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Gpu {
    /// Name of the GPU, from the driver.
    pub name: String,
    /// PCI address, as in `devices`.
    pub address: String,
    /// Bytes per copy.
    pub bytes: u64,
    /// From pinned memory to the GPU: DMA reads the program's pages directly.
    pub pinned_to: Spread,
    /// From the GPU to pinned memory.
    pub pinned_from: Spread,
    /// From pageable memory to the GPU: the driver first copies to a pinned buffer, in a pipeline.
    pub pageable_to: Spread,
    /// From the GPU to pageable memory.
    pub pageable_from: Spread,
}

type Status = c_int;
type Pointer = u64;

/// Entry points of the CUDA driver.
struct Driver<'a> {
    init: Symbol<'a, unsafe extern "C" fn(c_uint) -> Status>,
    count: Symbol<'a, unsafe extern "C" fn(*mut c_int) -> Status>,
    get: Symbol<'a, unsafe extern "C" fn(*mut c_int, c_int) -> Status>,
    name: Symbol<'a, unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status>,
    address: Symbol<'a, unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status>,
    retain: Symbol<'a, unsafe extern "C" fn(*mut *mut c_void, c_int) -> Status>,
    release: Symbol<'a, unsafe extern "C" fn(c_int) -> Status>,
    current: Symbol<'a, unsafe extern "C" fn(*mut c_void) -> Status>,
    allocate: Symbol<'a, unsafe extern "C" fn(*mut Pointer, usize) -> Status>,
    free: Symbol<'a, unsafe extern "C" fn(Pointer) -> Status>,
    allocate_host: Symbol<'a, unsafe extern "C" fn(*mut *mut c_void, usize) -> Status>,
    free_host: Symbol<'a, unsafe extern "C" fn(*mut c_void) -> Status>,
    to_device: Symbol<'a, unsafe extern "C" fn(Pointer, *const c_void, usize) -> Status>,
    from_device: Symbol<'a, unsafe extern "C" fn(*mut c_void, Pointer, usize) -> Status>,
    /// Waits for a copy to end: a copy from pageable memory returns once its data is staged.
    synchronise: Symbol<'a, unsafe extern "C" fn() -> Status>,
}

/// Measures all GPUs of the CUDA driver.
///
/// # Errors
/// Returns the reason why nothing could be measured.
pub(super) fn gpus(bytes: usize, repeats: usize) -> Result<Vec<Gpu>, String> {
    // SAFETY: loading runs the driver's initialisers, as in every program that uses it; the symbols have the types of `cuda.h`, version 4 and later.
    unsafe {
        let library = Library::new("libcuda.so.1")
            .map_err(|_| "there is no CUDA driver (`libcuda.so.1`)".to_owned())?;
        let driver = load(&library).map_err(|error| format!("the CUDA driver lacks a call: {error}"))?;
        check("cuInit", (driver.init)(0))?;
        let mut count = 0;
        check("cuDeviceGetCount", (driver.count)(&raw mut count))?;
        if count == 0 {
            return Err("the CUDA driver finds no GPU".to_owned());
        }
        (0..count).map(|index| gpu(&driver, index, bytes, repeats)).collect()
    }
}

unsafe fn load(library: &Library) -> Result<Driver<'_>, libloading::Error> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        Ok(Driver {
            init: library.get(b"cuInit\0")?,
            count: library.get(b"cuDeviceGetCount\0")?,
            get: library.get(b"cuDeviceGet\0")?,
            name: library.get(b"cuDeviceGetName\0")?,
            address: library.get(b"cuDeviceGetPCIBusId\0")?,
            retain: library.get(b"cuDevicePrimaryCtxRetain\0")?,
            release: library.get(b"cuDevicePrimaryCtxRelease_v2\0")?,
            current: library.get(b"cuCtxSetCurrent\0")?,
            allocate: library.get(b"cuMemAlloc_v2\0")?,
            free: library.get(b"cuMemFree_v2\0")?,
            allocate_host: library.get(b"cuMemAllocHost_v2\0")?,
            free_host: library.get(b"cuMemFreeHost\0")?,
            to_device: library.get(b"cuMemcpyHtoD_v2\0")?,
            from_device: library.get(b"cuMemcpyDtoH_v2\0")?,
            synchronise: library.get(b"cuCtxSynchronize\0")?,
        })
    }
}

fn check(call: &str, status: Status) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("the CUDA driver refuses `{call}` (status {status})")) }
}

unsafe fn gpu(driver: &Driver<'_>, index: c_int, bytes: usize, repeats: usize) -> Result<Gpu, String> {
    // SAFETY: every pointer refers to a variable of the right type that outlives the call; allocations are freed below.
    unsafe {
        let mut device = 0;
        check("cuDeviceGet", (driver.get)(&raw mut device, index))?;
        let text = |call: &Symbol<'_, unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status>| {
            let mut buffer = [0 as c_char; 128];
            match call(buffer.as_mut_ptr(), buffer.len() as c_int - 1, device) {
                0 => CStr::from_ptr(buffer.as_ptr()).to_string_lossy().into_owned(),
                _ => String::new(),
            }
        };
        let (name, address) = (text(&driver.name), text(&driver.address).to_lowercase());
        let mut context = null_mut();
        check("cuDevicePrimaryCtxRetain", (driver.retain)(&raw mut context, device))?;
        let measured = copies(driver, context, bytes, repeats);
        (driver.current)(null_mut());
        (driver.release)(device);
        let [pinned_to, pinned_from, pageable_to, pageable_from] = measured?;
        Ok(Gpu { name, address, bytes: bytes as u64, pinned_to, pinned_from, pageable_to, pageable_from })
    }
}

unsafe fn copies(
    driver: &Driver<'_>,
    context: *mut c_void,
    bytes: usize,
    repeats: usize,
) -> Result<[Spread; 4], String> {
    // SAFETY: as in `gpu`.
    unsafe {
        check("cuCtxSetCurrent", (driver.current)(context))?;
        let (mut there, mut pinned) = (0, null_mut());
        check("cuMemAlloc", (driver.allocate)(&raw mut there, bytes))?;
        let got = check("cuMemAllocHost", (driver.allocate_host)(&raw mut pinned, bytes));
        let result = got.and_then(|()| {
            pinned.cast::<u8>().write_bytes(1, bytes);
            let mut plain = sys::Region::new(bytes).map_err(|error| error.to_string())?;
            let mut rates: [Vec<f64>; 4] = Default::default();
            // The first round is discarded: the driver creates its staging buffers in it.
            for round in 0..=repeats {
                let pageable = plain.bytes_mut().as_mut_ptr().cast();
                for (at, (memory, to)) in
                    [(pinned, true), (pinned, false), (pageable, true), (pageable, false)]
                        .into_iter()
                        .enumerate()
                {
                    let begin = sys::now();
                    match to {
                        true => check("cuMemcpyHtoD", (driver.to_device)(there, memory, bytes))?,
                        false => check("cuMemcpyDtoH", (driver.from_device)(memory, there, bytes))?,
                    }
                    check("cuCtxSynchronize", (driver.synchronise)())?;
                    let rate = bytes as f64 * 1e9 / (sys::now() - begin).max(1) as f64;
                    if round > 0 {
                        rates[at].push(rate);
                    }
                }
            }
            Ok(rates.map(|rates| spread(&rates)))
        });
        if !pinned.is_null() {
            (driver.free_host)(pinned);
        }
        (driver.free)(there);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_probe_measures_or_error_names_the_driver() {
        match gpus(1 << 20, 1) {
            Ok(found) => assert!(found.iter().all(|gpu| gpu.pinned_to.best > 0.0), "{found:?}"),
            Err(why) => assert!(why.contains("CUDA driver"), "{why}"),
        }
    }
}
