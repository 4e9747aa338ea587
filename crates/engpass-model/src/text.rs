//! Characters that have no place in a name.

/// Whether a character is not shown, and can change how the text around it is shown.
///
/// These are controls, the separators of lines and paragraphs, and the controls of the bidirectional algorithm
/// (UAX #9, section 2), with which a name can look like another one.
pub fn is_hidden(c: char) -> bool {
    // U+202A to U+202E and U+2066 to U+2069: embeddings, overrides and isolates. The others are marks.
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_hidden_and_letters_are_not() {
        let bidi =
            "\u{61C}\u{200E}\u{200F}\u{202A}\u{202B}\u{202C}\u{202D}\u{202E}\u{2066}\u{2067}\u{2068}\u{2069}";
        assert!(bidi.chars().chain("\0\n\u{7F}\u{9B}\u{2028}\u{2029}".chars()).all(is_hidden));
        // Words of scripts from right to left are names as others are.
        assert!(!"a Ä א ع 例 =-".chars().any(is_hidden));
    }
}
