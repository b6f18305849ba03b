//! The lines of a spec as an editor sees them: indentation, marks of list items, keys.
//!
//! In: text, which need not be YAML while it is typed. Out: a [`Line`] each. Must not know which keys exist.

use std::ops::Range;

/// One line. Offsets are bytes of the whole text, columns bytes of the line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The first byte.
    pub start: usize,
    /// The end, without the line break.
    pub end: usize,
    /// The column of its first word, after the marks of list items.
    pub column: usize,
    /// The column of the innermost mark of a list item.
    pub dash: Option<usize>,
    /// The key, and the start of its value.
    pub key: Option<(Range<usize>, usize)>,
    /// Whether it has nothing but blanks or a comment.
    pub blank: bool,
}

impl Line {
    /// The line between two offsets.
    pub fn new(text: &str, start: usize, end: usize) -> Line {
        let line = &text[start..end];
        let mut column = line.len() - line.trim_start_matches(' ').len();
        let mut dash = None;
        while line[column..].starts_with("- ") || &line[column..] == "-" {
            dash = Some(column);
            let after = &line[column + 1..];
            column += 1 + after.len() - after.trim_start_matches(' ').len();
        }
        let rest = &line[column..];
        let blank = rest.is_empty() && dash.is_none() || rest.starts_with('#');
        let key = key_length(rest).filter(|_| !blank).map(|(length, colon)| {
            let value = &rest[colon + 1..];
            let blanks = value.len() - value.trim_start_matches(' ').len();
            let key = start + column..start + column + length;
            (key, start + column + colon + 1 + blanks)
        });
        Line { start, end, column, dash, key, blank }
    }

    /// Whether the value of the line's key goes on in deeper lines: as a block, as quoted or plain text, or as an open
    /// bracket.
    pub fn value_goes_on(&self, text: &str) -> bool {
        let Some((_, value)) = &self.key else { return false };
        let value = text[*value..self.end].trim();
        !value.is_empty() && !value.starts_with(['#', '&'])
    }
}

/// The lengths of a line's key, quotes included, and of all before the colon.
fn key_length(rest: &str) -> Option<(usize, usize)> {
    if let Some(quote @ ('"' | '\'')) = rest.chars().next() {
        let close = rest[1..].find(quote)? + 2;
        return rest[close..].starts_with(':').then_some((close, close));
    }
    let colon = rest.match_indices(':').map(|(at, _)| at);
    let colon = colon.into_iter().find(|at| rest[at + 1..].is_empty() || rest[at + 1..].starts_with(' '))?;
    let key = rest[..colon].trim_end();
    let plain = |letter: char| letter.is_alphanumeric() || "_-.,: *".contains(letter);
    (key.chars().all(plain) && !key.is_empty()).then_some((key.len(), colon))
}

/// All lines.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut start = 0;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let end = start + line.strip_suffix('\r').unwrap_or(line).len();
        lines.push(Line::new(text, start, end));
        start += line.len() + 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_marks() {
        let key = |text: &'static str| {
            let line = Line::new(text, 0, text.len());
            (line.column, line.dash, line.key.map(|(key, value)| (&text[key], &text[value..])))
        };
        assert_eq!(key("  doc: A: b"), (2, None, Some(("doc", "A: b"))));
        assert_eq!(
            key("- func: f(Tensor x) -> Tensor"),
            (2, Some(0), Some(("func", "f(Tensor x) -> Tensor")))
        );
        assert_eq!(key("    x, y: |"), (4, None, Some(("x, y", "|"))));
        assert_eq!(key("  - - a"), (6, Some(4), None));
        assert_eq!(key("  - {self: \"spread(2)\"}"), (4, Some(2), None));
        assert_eq!(key("  \"*\": x"), (2, None, Some(("\"*\"", "x"))));
        assert_eq!(key("-"), (1, Some(0), None));
        assert!(Line::new("  # doc: x", 0, 10).blank);
    }
}
