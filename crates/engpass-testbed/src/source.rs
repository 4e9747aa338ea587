//! The text of a testbed file.

use engpass_model::unit::wording::grouped;

use crate::diagnostic::{Diagnostic, Diagnostics};

/// The largest text that is read, in bytes.
pub const MAX_TEXT: usize = 16 << 20;
/// Largest number of separators (line ends, commas, brackets and the like) in a text. It bounds the memory of the parser: some hundred bytes for each value.
pub(crate) const MAX_SIGNS: usize = 1 << 21;

/// A text and its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path or name of the file.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

impl Source {
    /// Decodes the bytes of a file.
    ///
    /// # Errors
    /// If there are more than [`MAX_TEXT`] bytes, or they are not UTF-8.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<Self, Diagnostics> {
        let mut source = Self { name: name.into(), text: String::new() };
        if let Some(found) = too_large(bytes.len()) {
            return Err(Diagnostics::new(&source, found));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                source.text = text.into();
                Ok(source)
            }
            Err(error) => {
                let byte = bytes[error.valid_up_to()];
                let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
                let message =
                    format!("the file is not UTF-8 text: byte 0x{byte:02x} in line {line} is invalid");
                let found = Diagnostic::error("not-utf8", message)
                    .help("a testbed is a TOML file, saved as UTF-8; is this the right file?");
                Err(Diagnostics::new(&source, found))
            }
        }
    }

    /// Returns the name of the file without folder and extension.
    pub(crate) fn stem(&self) -> &str {
        let file = self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name);
        match file.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ if file.is_empty() => "testbed",
            _ => file,
        }
    }
}

/// Returns an error if reading the text would take too much memory. The estimate counts line ends, commas, brackets and the like, about two for each value.
pub(crate) fn too_many_values(text: &str) -> Option<Diagnostic> {
    let signs = text.bytes().filter(|byte| b"\n,=[{.".contains(byte)).count();
    (signs > MAX_SIGNS).then(|| {
        let (about, most) = (grouped(signs as u64 / 2), grouped(MAX_SIGNS as u64 / 2));
        let message =
            format!("the text has about {about} lines or values, but a testbed may have at most {most}");
        Diagnostic::error("too-large", message)
            .help("is this the right file? A testbed file describes a network, it holds no data")
    })
}

/// Returns an error if a text of this length is too large.
pub(crate) fn too_large(bytes: usize) -> Option<Diagnostic> {
    (bytes > MAX_TEXT).then(|| {
        let message = format!("the text has {bytes} bytes, but a testbed may have at most {MAX_TEXT}");
        Diagnostic::error("too-large", message)
            .help("is this the right file? A testbed file describes a network, it holds no data")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stem_is_the_file_name_without_extension() {
        for (name, stem) in
            [("a/b/kyoto.toml", "kyoto"), ("x", "x"), ("", "testbed"), (".toml", ".toml"), ("a.b.c", "a.b")]
        {
            assert_eq!(Source { name: name.into(), text: String::new() }.stem(), stem);
        }
    }
}
