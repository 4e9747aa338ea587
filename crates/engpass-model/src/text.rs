//! Characters that are not allowed in names.

/// Whether a character is invisible and may change how the surrounding text is displayed.
///
/// These are control characters, line and paragraph separators, and bidirectional controls (UAX #9, section 2). Bidirectional controls can
/// make one name look like another.
pub fn is_hidden(c: char) -> bool {
    // U+202A to U+202E and U+2066 to U+2069 are embeddings, overrides and isolates. The other bidirectional controls are marks.
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_hidden_and_letters_are_not() {
        let bidi =
            "\u{61C}\u{200E}\u{200F}\u{202A}\u{202B}\u{202C}\u{202D}\u{202E}\u{2066}\u{2067}\u{2068}\u{2069}";
        assert!(bidi.chars().chain("\0\n\u{7F}\u{9B}\u{2028}\u{2029}".chars()).all(is_hidden));
        // Words in right-to-left scripts are valid names.
        assert!(!"a Ä א ع 例 =-".chars().any(is_hidden));
    }
}
