//! Splits an untrusted stream into lines of limited length.

use std::io::{ErrorKind, Read};

/// Longest line, in bytes.
const LONGEST: usize = 1 << 20;

/// A line, or a notice that one was too long.
pub(crate) enum Line {
    Text(Vec<u8>),
    TooLong,
}

/// Splits its input into lines.
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    skipping: bool,
    over: bool,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), skipping: false, over: false }
    }

    /// Returns the next line without its line end; `None` at the end of the input.
    pub(crate) fn next(&mut self) -> Option<Line> {
        let mut searched = 0;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=searched + at).collect();
                line.pop();
                searched = 0;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                return Some(Line::Text(line));
            }
            if self.over {
                return None;
            }
            searched = self.buffer.len();
            if searched > LONGEST {
                self.buffer.clear();
                searched = 0;
                if !std::mem::replace(&mut self.skipping, true) {
                    return Some(Line::TooLong);
                }
            }
            let mut chunk = [0; 8192];
            match self.input.read(&mut chunk) {
                // A last line without a line end was cut off, so it is dropped.
                Ok(0) => self.over = true,
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.over = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Option<String>> {
        let mut lines = Lines::new(text);
        std::iter::from_fn(|| lines.next())
            .map(|line| match line {
                Line::Text(bytes) => Some(String::from_utf8(bytes).expect("the test's text is UTF-8")),
                Line::TooLong => None,
            })
            .collect()
    }

    #[test]
    fn only_complete_lines_are_read() {
        assert_eq!(lines(b"a\n\nbc\ncut off"), [Some("a".into()), Some(String::new()), Some("bc".into())]);
        assert!(lines(b"").is_empty());
    }

    #[test]
    fn line_beyond_the_limit_is_skipped() {
        let mut text = vec![b'x'; 3 * LONGEST];
        text.extend_from_slice(b"\nnext\n");
        assert_eq!(lines(&text), [None, Some("next".into())]);
    }
}
