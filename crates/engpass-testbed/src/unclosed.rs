//! Finds brackets that a file opens and never closes.

use std::ops::Range;

/// A bracket that is never closed.
pub(crate) struct Unclosed {
    /// Position of the bracket in the text.
    pub(crate) span: Range<usize>,
    /// The character that closes it.
    pub(crate) end: char,
    /// The header of the next table, and the number of its line, if one follows: the bracket must be closed before it.
    pub(crate) before: Option<(String, usize)>,
}

/// Returns the first `{` or `[` that is still open where the next table begins, or at the end of the file. Brackets in strings and comments do not count.
pub(crate) fn find(text: &str) -> Option<Unclosed> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut position = 0;
    // Whether only spaces precede the position in its line.
    let mut at_begin = true;
    while let Some(next) = text[position..].chars().next() {
        let was_at_begin = at_begin;
        at_begin = next == '\n' || (at_begin && next.is_whitespace());
        if next == '['
            && was_at_begin
            && let Some(header) = header(&text[position..])
        {
            if let Some(&bracket) = open.last() {
                let line = text[..position].matches('\n').count() + 1;
                return Some(unclosed(bracket, Some((header.into(), line))));
            }
            position += header.len();
            continue;
        }
        match next {
            '{' => open.push((position, '}')),
            '[' => open.push((position, ']')),
            '}' | ']' if open.last().is_some_and(|(_, end)| *end == next) => {
                open.pop();
            }
            '#' => {
                position += text[position..].find('\n').unwrap_or(text.len() - position);
                continue;
            }
            '"' | '\'' => {
                position += string(&text[position..], next);
                continue;
            }
            _ => {}
        }
        position += next.len_utf8();
    }
    open.last().map(|&bracket| unclosed(bracket, None))
}

fn unclosed((position, end): (usize, char), before: Option<(String, usize)>) -> Unclosed {
    Unclosed { span: position..position + 1, end, before }
}

/// Returns the header of a table at the beginning of `text`, such as `[link.access]`: a bracket with dotted keys, alone in its line.
fn header(text: &str) -> Option<&str> {
    let line = text.lines().next()?;
    let end = line.rfind(']')?;
    let (header, rest) = line.split_at(end + 1);
    let keys = header.strip_prefix('[')?.trim_start_matches('[').trim_end_matches(']');
    let is_key = |c: char| c.is_alphanumeric() || "-_.\"' /".contains(c);
    let rest = rest.trim_start();
    let alone = rest.is_empty() || rest.starts_with('#');
    // A list in a list holds values, not keys: text in quotes, or numbers.
    let named = keys.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (alone && named && keys.chars().all(is_key)).then_some(header)
}

/// Returns the length of the string at the beginning of `text`. A string of one line ends with the line at the latest.
fn string(text: &str, quote: char) -> usize {
    let three = [quote; 3].iter().collect::<String>();
    let (quotes, lines) =
        if text.starts_with(&three) { (three.as_str(), true) } else { (&three[..1], false) };
    let mut position = quotes.len();
    while let Some(next) = text[position..].chars().next() {
        if text[position..].starts_with(quotes) {
            return position + quotes.len();
        }
        if next == '\n' && !lines {
            return position;
        }
        position += next.len_utf8();
        if next == '\\' && quote == '"' {
            position += text[position..].chars().next().map_or(0, char::len_utf8);
        }
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unclosed_bracket_is_found_before_the_next_table() {
        let text = "[host.a]\ntcp = { profile = \"linux-6\" # }\n[host.b]\n";
        let found = find(text).expect("the text has an unclosed bracket");
        assert_eq!((found.span, found.end, found.before), (15..16, '}', Some(("[host.b]".into(), 3))));
        let found = find("ends = [\"a\", \"b\"\n").expect("the text has an unclosed bracket");
        assert_eq!((found.span, found.end, found.before), (7..8, ']', None));
    }

    #[test]
    fn a_million_open_brackets_take_no_time() {
        let text = "[".repeat(1 << 20);
        assert_eq!(find(&text).map(|found| found.span), Some(text.len() - 1..text.len()));
    }

    #[test]
    fn closed_brackets_and_strings_are_not_reported() {
        for text in [
            "[host.a]\nx = { y = [1, [2]] }\n",
            "x = [\n  [\"a\"],\n  [1]\n]\n[link.b]\n",
            "x = \"{\"\ny = '['\nz = \"\\\"{\"\n[host.a]\n",
            "x = \"\"\"\n{\n[host.a]\n\"\"\"\n[host.b]\n",
            "  [host.a]\n\t[host.b]\n",
            "[[a]]\n[\"b c\".d]\n",
        ] {
            assert!(find(text).is_none(), "{text}");
        }
    }
}
