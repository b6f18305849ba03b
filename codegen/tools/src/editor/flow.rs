//! Values in brackets: `{CPU: linalg::mm}`, `[functional, out]`.
//!
//! In: a value that begins with a bracket, whose end may be missing, and an offset. Out: the keys that lead to it.

use std::ops::Range;

use super::cursor::CursorPart;

/// The place of an offset inside brackets.
pub(super) struct Inner<'a> {
    /// The keys that lead to it.
    pub path: Vec<&'a str>,
    /// The part it is in.
    pub slot: CursorPart,
    /// The bytes of that part.
    pub range: Range<usize>,
}

/// An open bracket.
struct Open<'a> {
    is_map: bool,
    key: Option<&'a str>,
    /// The start of the current key or item.
    start: usize,
}

/// Follows the brackets to an offset.
pub(super) fn descend(value: &str, offset: usize) -> Inner<'_> {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, letter) in value.char_indices().take_while(|(at, _)| *at < offset) {
        if let Some(end) = quote {
            (quote, escaped) = inside_quotes(end, &value[at..], escaped);
            continue;
        }
        let next = at + letter.len_utf8();
        let begins = open.last().is_none_or(|bracket| value[bracket.start..at].trim().is_empty());
        match (letter, open.last_mut()) {
            ('"' | '\'', _) if begins => quote = Some(letter),
            ('{' | '[', _) if begins => open.push(Open { is_map: letter == '{', key: None, start: next }),
            ('}' | ']', _) => _ = open.pop(),
            (',', Some(bracket)) => (bracket.key, bracket.start) = (None, next),
            (':', Some(bracket)) if bracket.is_map && bracket.key.is_none() && ends_key(value, next) => {
                bracket.key = Some(unquoted(&value[bracket.start..at]));
                bracket.start = next;
            }
            _ => {}
        }
    }
    let path = open.iter().filter_map(|bracket| bracket.key).collect();
    let Some(innermost) = open.last() else {
        return Inner { path, slot: CursorPart::Value, range: 0..value.len() };
    };
    let (range, has_colon) = part(value, innermost.start, offset, quote);
    let slot = match innermost.is_map && innermost.key.is_none() {
        true if has_colon => CursorPart::Key,
        true => CursorPart::Word,
        false => CursorPart::Value,
    };
    Inner { path, slot, range }
}

/// The keys of a mapping in brackets, each with the bytes of its value; as far as it goes.
pub(super) fn entries(value: &str) -> Vec<(&str, Range<usize>)> {
    let mut found: Vec<(&str, Range<usize>)> = Vec::new();
    let (mut depth, mut quote, mut start, mut has_key) = (0_usize, None, 0, false);
    let mut escaped = false;
    for (at, letter) in value.char_indices() {
        let next = at + letter.len_utf8();
        let begins = value[start..at].trim().is_empty();
        match (quote, letter) {
            (Some(end), _) => (quote, escaped) = inside_quotes(end, &value[at..], escaped),
            (None, '"' | '\'') if begins => quote = Some(letter),
            (None, '{' | '[') if begins || depth > 1 => {
                depth += 1;
                if depth == 1 {
                    start = next;
                }
            }
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            (None, ':') if depth == 1 && !has_key && ends_key(value, next) => {
                found.push((unquoted(&value[start..at]), next..value.len()));
                (start, has_key) = (next, true);
            }
            _ => {}
        }
        let ends = letter == ',' && depth == 1 && quote.is_none() || depth == 0;
        if ends
            && has_key
            && let Some((_, range)) = found.last_mut()
        {
            *range = range.start..at;
            (start, has_key) = (next, false);
        } else if ends {
            start = next;
        }
    }
    found
}

/// The state behind the first letter of `rest`, which is inside quotes: the quote that ends them, unless this one did, and
/// whether the next letter is escaped.
fn inside_quotes(end: char, rest: &str, escaped: bool) -> (Option<char>, bool) {
    match end {
        _ if escaped => (Some(end), false),
        '"' if rest.starts_with('\\') => (Some(end), true),
        '\'' if rest.starts_with("''") => (Some(end), true),
        _ => ((!rest.starts_with(end)).then_some(end), false),
    }
}

fn ends_key(value: &str, next: usize) -> bool {
    value[next..].is_empty() || value[next..].starts_with([' ', '\n'])
}

fn unquoted(key: &str) -> &str {
    key.trim().trim_matches(['"', '\''])
}

/// The bytes of the part that began at `start`, without quotes, and whether a colon follows it.
fn part(value: &str, start: usize, offset: usize, quote: Option<char>) -> (Range<usize>, bool) {
    let ends = |letter: char| match quote {
        Some(quote) => letter == quote,
        None => matches!(letter, ',' | '}' | ']' | '\n' | ':'),
    };
    let mut end = value.len();
    for (at, letter) in value[offset..].char_indices() {
        let colon_inside = letter == ':' && !ends_key(value, offset + at + 1);
        if ends(letter) && !colon_inside {
            end = offset + at;
            break;
        }
    }
    let written = &value[start..end.max(start)];
    let blanks = written.len() - written.trim_start_matches([' ', '\n']).len();
    let first = start + blanks + usize::from(written[blanks..].starts_with(['"', '\'']));
    let last = start + written.trim_end_matches([' ', '\n', '"', '\'']).len();
    (first..last.max(first), value[end..].starts_with(':'))
}
