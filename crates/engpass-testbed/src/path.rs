//! Dotted keys: `traffic.stream.message`, `link."to the lab".delay`.

use engpass_model::text::is_hidden;

/// Splits a dotted TOML key. Quoted parts may contain any characters.
///
/// # Errors
/// A sentence about the invalid part.
pub fn parse(text: &str) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let (part, after) = part(rest)?;
        parts.push(part);
        rest = after.trim_start();
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None if rest.is_empty() => return Ok(parts),
            None => return Err(format!("`{}` does not follow a dot", first_word(rest))),
        }
    }
}

/// Parses the first part and returns it with the rest of the text.
fn part(text: &str) -> Result<(String, &str), String> {
    match text.chars().next() {
        Some('\'') => {
            let (inside, after) = text[1..].split_once('\'').ok_or("a quote is not closed")?;
            Ok((inside.into(), after))
        }
        Some('"') => {
            let mut escaped = false;
            let end = text.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            let end = end.ok_or("a quote is not closed")?.0 + 1;
            match toml::de::DeValue::parse(&text[..end])
                .ok()
                .and_then(|value| value.get_ref().as_str().map(String::from))
            {
                Some(inside) => Ok((inside, &text[end..])),
                None => Err(format!("`{}` is not a quoted key", &text[..end])),
            }
        }
        _ => {
            let end = text
                .find(|c: char| c == '.' || c.is_whitespace() || c == '"' || c == '\'')
                .unwrap_or(text.len());
            if end == 0 { Err("a name is missing".into()) } else { Ok((text[..end].into(), &text[end..])) }
        }
    }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("")
}

/// Formats a path as a dotted TOML key.
pub fn join(parts: &[impl AsRef<str>]) -> String {
    parts.iter().map(|part| quoted(part.as_ref())).collect::<Vec<_>>().join(".")
}

/// Formats one part of a TOML key, without quotes if possible.
pub(crate) fn quoted(part: &str) -> String {
    let bare = !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { part.into() } else { serde_json::Value::from(part).to_string() }
}

/// Returns a dotted key with quotes around the parts that need them; `None` if it is valid as it is, or if quotes do not make it valid.
pub(crate) fn with_quotes(text: &str) -> Option<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let start = rest.trim_start();
        let after = if start.starts_with(['"', '\'']) {
            let (inside, after) = part(start).ok()?;
            parts.push(inside);
            after.trim_start()
        } else {
            let end = start.find('.').unwrap_or(start.len());
            let name = start[..end].trim_end();
            if name.is_empty() || name.contains(|c: char| "\"'=[]{}#,".contains(c) || is_hidden(c)) {
                return None;
            }
            parts.push(name.to_string());
            &start[end..]
        };
        if after.is_empty() {
            let quoted = join(&parts);
            return (quoted != text.trim()).then_some(quoted);
        }
        rest = after.strip_prefix('.')?;
    }
}

/// Returns the known word that is most similar to `word`; `None` if none is similar.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Words this long are not typing errors, and a comparison takes quadratic time.
    if word.len() > 100 {
        return None;
    }
    let lower = word.to_lowercase();
    // The limit bounds the time for files with many names.
    known
        .into_iter()
        .take(2000)
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            let longer = lower.chars().count().max(candidate.chars().count());
            // A name of one character is similar to no other one.
            *distance <= (longer / 3).max(1) && *distance < longer
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns "did you mean `x`? known: `x`, `y`"; without a similar word, only the list.
pub(crate) fn suggestion(word: &str, what: &str, known: &[&str]) -> Option<String> {
    const MOST: usize = 40;
    let list = known.iter().take(MOST).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let more = if known.len() > MOST { format!(" and {} more", known.len() - MOST) } else { String::new() };
    match (nearest(word, known.iter().copied()), known) {
        (_, []) => None,
        (Some(near), [_]) => Some(format!("did you mean `{near}`?")),
        (Some(near), _) => Some(format!("did you mean `{near}`? {what}: {list}{more}")),
        (None, _) => Some(format!("{what}: {list}{more}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotted_keys_are_parsed_and_joined() {
        let ok = |text: &str| parse(text).unwrap();
        assert_eq!(ok("traffic.stream.message"), ["traffic", "stream", "message"]);
        assert_eq!(ok(r#"link."to the. lab" . 'x"y'.rate"#), ["link", "to the. lab", "x\"y", "rate"]);
        assert_eq!(ok(r#""a\"b".c"#), ["a\"b", "c"]);
        for bad in ["", ".", "a.", ".a", "a b", "a..b", "'a", "\"a", "\"a\\\"", "\"\\q\"", "a\"b\""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(join(&["link", "to lab", "x"]), "link.\"to lab\".x");
        assert_eq!(parse(&join(&["a\"\n\\", "é"])).unwrap(), ["a\"\n\\", "é"]);
    }

    #[test]
    fn nearest_suggests_only_similar_names() {
        assert_eq!(nearest("mesage", ["from", "message"]), Some("message"));
        assert_eq!(nearest("strem", ["stream", "interference"]), Some("stream"));
        assert_eq!(nearest("colour", ["from", "message"]), None);
    }
}
