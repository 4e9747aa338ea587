//! A temporary folder for tests, deleted on drop.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(super) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder with these files, given by path and text.
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("engpass-probe-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder can be created");
        for (name, text) in files {
            let file = path.join(name);
            std::fs::create_dir_all(file.parent().expect("the file has a parent folder"))
                .expect("the folder can be created");
            std::fs::write(file, text).expect("a file can be written");
        }
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("the folder can be removed");
    }
}
