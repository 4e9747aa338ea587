//! Disk transfers that bypass the page cache (`O_DIRECT`), on file systems that support them.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::sample_stats::{Spread, spread};
use super::sys;

/// Throughput of an unnamed file that is written and read past the page cache, one request at a time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Block {
    /// Directory of the file.
    pub directory: String,
    /// Device of the file system, by its kernel name.
    pub device: String,
    /// Size of a request in bytes.
    pub request: u64,
    /// Bytes per second from memory to the device.
    pub write: Spread,
    /// Bytes per second from the device to memory.
    pub read: Spread,
}

const REQUEST: usize = 1 << 20;
/// Magic numbers of the file systems tmpfs and ramfs, which have no device.
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Measures transfers of `bytes` bytes in this directory.
///
/// # Errors
/// Returns the reason why nothing could be measured.
pub(super) fn block(directory: &Path, bytes: u64, repeats: usize) -> Result<Block, String> {
    let at = directory.display();
    let file = sys::direct_file(directory).map_err(|error| {
        format!("`{at}` does not support an unnamed file that bypasses the page cache ({error})")
    })?;
    let kind = sys::file_system(&file).map_err(|error| error.to_string())?;
    if IN_MEMORY.contains(&kind) {
        return Err(format!("`{at}` is a file system in memory, without a block device"));
    }
    let mut buffer = sys::Region::new(REQUEST).map_err(|error| error.to_string())?;
    let mut pass = |write: bool| -> std::io::Result<f64> {
        let begin = sys::now();
        for at in (0..bytes).step_by(REQUEST) {
            match write {
                true => sys::write_at(&file, buffer.bytes(), at)?,
                false => sys::read_at(&file, buffer.bytes_mut(), at)?,
            };
        }
        if write {
            sys::flush(&file)?;
        }
        Ok(bytes as f64 * 1e9 / (sys::now() - begin).max(1) as f64)
    };
    let (mut write, mut read) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        write.push(pass(true).map_err(|error| format!("`{at}`: {error}"))?);
        read.push(pass(false).map_err(|error| format!("`{at}`: {error}"))?);
    }
    Ok(Block {
        directory: at.to_string(),
        device: device(directory),
        request: REQUEST as u64,
        write: spread(&write),
        read: spread(&read),
    })
}

/// Returns the kernel's name of the device that holds a directory.
fn device(directory: &Path) -> String {
    let number = fs::metadata(directory).map(|about| about.st_dev()).unwrap_or(0);
    let (major, minor) = (libc::major(number), libc::minor(number));
    let link = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"));
    let name = link.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| format!("{major}:{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_probe_measures_or_error_names_the_directory() {
        for directory in [std::env::temp_dir().as_path(), Path::new("/dev/shm"), Path::new("/proc")] {
            let before = fs::read_dir(directory).map(Iterator::count);
            match block(directory, 2 << 20, 1) {
                Ok(found) => assert!(found.write.best > 0.0 && found.read.best > 0.0, "{found:?}"),
                Err(why) => assert!(why.contains(&directory.display().to_string()), "{why}"),
            }
            if directory.ends_with("shm") {
                assert_eq!(fs::read_dir(directory).map(Iterator::count).ok(), before.ok());
            }
        }
    }
}
