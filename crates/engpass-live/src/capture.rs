//! The file of a capture, which stays readable when a write fails.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Bytes collected before they are written.
const GATHER: usize = 256 << 10;

/// A file to which whole blocks are written. Each write appears in full or not at all: a partial write, as on a full disk, is removed again.
#[derive(Debug)]
pub struct CaptureFile {
    file: File,
    gathered: Vec<u8>,
    /// Length of the file in bytes up to the last complete write.
    whole: u64,
}

impl CaptureFile {
    /// Creates the file, or replaces an existing one.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        // Captured traffic is private, so only the owner may read the file.
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        Ok(Self { file, gathered: Vec::with_capacity(GATHER), whole: 0 })
    }

    fn put(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.gathered);
        if written.is_ok() {
            self.whole += self.gathered.len() as u64;
        } else {
            // Removes a partial write. This fails for devices and pipes, which cannot be truncated.
            let _ = self.file.set_len(self.whole);
        }
        self.gathered.clear();
        written
    }
}

impl Write for CaptureFile {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        if self.gathered.len() + block.len() > GATHER {
            self.put()?;
        }
        self.gathered.extend_from_slice(block);
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.put()
    }
}

impl Drop for CaptureFile {
    /// Writes the collected bytes, so that an interrupted run keeps all that it has captured.
    fn drop(&mut self) {
        let _ = self.put();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capture_file_is_complete_after_drop() {
        let path = std::env::temp_dir().join(format!("engpass-capture-{}", std::process::id()));
        let mut file = CaptureFile::create(&path).unwrap();
        for _ in 0..1000 {
            file.write_all(&[7; 999]).unwrap();
        }
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), vec![7; 999_000]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn capture_file_reports_a_full_disk() {
        let mut file = CaptureFile::create(Path::new("/dev/full")).unwrap();
        file.write_all(&[1; 100]).unwrap();
        assert_eq!(file.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
