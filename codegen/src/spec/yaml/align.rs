//! From a byte of a scalar's value to the byte of the file it came from.
//!
//! Value and source are walked side by side: escapes are several bytes in the source and one character in the value,
//! and a line break with its indentation is folded into a blank, or into line breaks. If the two do not match, the
//! caller falls back to the whole scalar.

use std::ops::Range;

use super::{Scalar, ScalarStyle};

/// The bytes of `written`, the scalar's source text, from which `range` of its value came. `column` is the number of
/// bytes before it on its line.
pub(super) fn source_range(
    scalar: &Scalar,
    written: &str,
    column: usize,
    range: Range<usize>,
) -> Option<Range<usize>> {
    let end = range.end.min(scalar.text.len()).max(range.start);
    if let Some(quote) = as_written(scalar, written, end) {
        return Some(range.start + quote..end + quote);
    }
    let mut walk = Walk::new(scalar, written, column);
    // An empty range at the end uses the end of the character before `range.start`.
    let mut last_end = None;
    let mut start = None;
    while let Step::Pair(value, source) = walk.next_char()? {
        if value.start >= end && start.is_some() {
            break;
        }
        if value.start <= range.start && range.start < value.end {
            start = Some(source.start);
            if range.start == end {
                return Some(source.start..source.start);
            }
        }
        last_end = Some(source.end);
    }
    let last_end = last_end.unwrap_or_else(|| walk.first_byte());
    Some(start.unwrap_or(last_end)..last_end)
}

/// The bytes before the value in the source, if all up to `end` is written as it is meant, as in most scalars.
fn as_written(scalar: &Scalar, written: &str, end: usize) -> Option<usize> {
    let (quote, escape) = match scalar.style {
        ScalarStyle::Plain => (0, None),
        ScalarStyle::SingleQuoted => (1, Some('\'')),
        ScalarStyle::DoubleQuoted => (1, Some('\\')),
        ScalarStyle::Literal | ScalarStyle::Folded => return None,
    };
    let (value, source) = (scalar.text.get(..end)?, written.get(quote..quote + end)?);
    let is_same =
        value == source && !value.contains('\n') && escape.is_none_or(|escape| !value.contains(escape));
    is_same.then_some(quote)
}

/// Corresponding positions in the value and in the source.
struct Walk<'a> {
    style: ScalarStyle,
    value: &'a str,
    source: &'a str,
    value_at: usize,
    source_at: usize,
    /// Blanks before each line of a block.
    indent: usize,
}

/// A step along the value and the source.
enum Step {
    /// A character: its bytes in the value and in the source.
    Pair(Range<usize>, Range<usize>),
    /// The end of one of them.
    End,
}

impl<'a> Walk<'a> {
    fn new(scalar: &'a Scalar, source: &'a str, column: usize) -> Walk<'a> {
        let style = scalar.style;
        let mut walk = Walk { style, value: &scalar.text, source, value_at: 0, source_at: 0, indent: 0 };
        match style {
            ScalarStyle::Plain => {}
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => walk.source_at = 1,
            ScalarStyle::Literal | ScalarStyle::Folded => walk.enter_block(column),
        }
        walk
    }

    /// Where the value's text begins.
    fn first_byte(&self) -> usize {
        match self.style {
            ScalarStyle::Plain => 0,
            _ => self.source_at.min(self.source.len()),
        }
    }

    /// The span of a block begins with its first line that is not blank, after the indentation: the column there is the
    /// indentation, and empty lines of the value before it are not in the span.
    fn enter_block(&mut self, column: usize) {
        self.indent = column;
        self.value_at = self.value.len() - self.value.trim_start_matches('\n').len();
    }

    fn skip_indent(&mut self) {
        let rest = &self.source[self.source_at..];
        let blanks = rest.len() - rest.trim_start_matches(' ').len();
        self.source_at += blanks.min(self.indent);
    }

    /// The next character; `None` if value and source differ.
    fn next_char(&mut self) -> Option<Step> {
        let Some(wanted) = self.value[self.value_at..].chars().next() else { return Some(Step::End) };
        let value = self.value_at..self.value_at + wanted.len_utf8();
        let start = self.source_at;
        let rest = self.source.get(start..)?;
        // The line breaks that end a block are not part of its span.
        let Some(found) = rest.chars().next() else { return Some(Step::End) };
        let quoted_escape = match self.style {
            ScalarStyle::DoubleQuoted if found == '\\' => Some(escape_length(rest)),
            ScalarStyle::SingleQuoted if rest.starts_with("''") => Some(2),
            _ => None,
        };
        if let Some(length) = quoted_escape {
            if length == 0 {
                self.skip_escaped_break();
                return self.next_char();
            }
            self.source_at += length;
            self.value_at = value.end;
            return Some(Step::Pair(value, start..self.source_at));
        }
        let gap = self.gap_length(rest);
        if gap > 0 {
            return Some(self.line_break(value, start, gap));
        }
        if found != wanted {
            return None;
        }
        self.source_at += found.len_utf8();
        self.value_at = value.end;
        Some(Step::Pair(value, start..self.source_at))
    }

    /// The bytes of a line break that starts here, with the blanks before it that folding drops.
    fn gap_length(&self, rest: &str) -> usize {
        let block = matches!(self.style, ScalarStyle::Literal | ScalarStyle::Folded);
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        // A longer search would take quadratic time in a long run of blanks.
        let blanks = if block { 0 } else { rest.bytes().take(1024).take_while(is_blank).count() };
        match &rest.as_bytes()[blanks..] {
            [b'\n', ..] => blanks + 1,
            [b'\r', b'\n', ..] => blanks + 2,
            _ => 0,
        }
    }

    /// Goes over line breaks and indentation. In the value they are one blank, or line breaks.
    fn line_break(&mut self, value: Range<usize>, start: usize, gap: usize) -> Step {
        let source = start..start + gap;
        self.source_at = source.end;
        self.value_at = value.end;
        match self.style {
            ScalarStyle::Literal => self.skip_indent(),
            ScalarStyle::Folded => {
                self.skip_indent();
                // The first line break of a paragraph is dropped, each further one is kept.
                while self.gap_length(&self.source[self.source_at..]) > 0 && !self.value_breaks_here() {
                    self.source_at += self.gap_length(&self.source[self.source_at..]);
                    self.skip_indent();
                }
            }
            _ => loop {
                let rest = &self.source[self.source_at..];
                let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
                self.source_at += blanks;
                let more = self.gap_length(&self.source[self.source_at..]);
                if more == 0 {
                    break;
                }
                self.source_at += more;
                // Of n + 1 line breaks the value keeps n; the first one was `value` already.
                if self.value_breaks_here() {
                    self.value_at += 1;
                }
            },
        }
        Step::Pair(value, source)
    }

    fn value_breaks_here(&self) -> bool {
        self.value[self.value_at..].starts_with('\n')
    }

    /// `\` at the end of a line: the line break and the next line's indentation are no text.
    fn skip_escaped_break(&mut self) {
        let rest = &self.source[self.source_at + 1..];
        self.source_at += 1 + (rest.len() - rest.trim_start_matches(['\r', '\n', ' ', '\t']).len());
    }
}

/// The bytes of an escape in double quotes; 0 for an escaped line break.
fn escape_length(rest: &str) -> usize {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\n' | '\r') | None => 0,
        Some('x') => 4,
        Some('U') => 10,
        Some('u') => {
            // A pair of surrogates is one character.
            let code = rest.get(2..6).and_then(|hex| u32::from_str_radix(hex, 16).ok());
            if code.is_some_and(|code| (0xd800..0xdc00).contains(&code)) { 12 } else { 6 }
        }
        Some(other) => 1 + other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use crate::diagnostics::{Diagnostics, SourceMap};

    /// The source text from which `word` of the value of `key:` came.
    fn written(yaml: &str, word: &str) -> String {
        let mut sources = SourceMap::new();
        let source = sources.add("a.yaml", yaml);
        let root = parse(&sources, source, &mut Diagnostics::new());
        let entries = root.as_ref().and_then(|root| root.as_map()).expect("a mapping");
        let node = &entries[0].1;
        let value = node.as_text().expect("a scalar");
        let start = value.find(word).expect("the word is in the value");
        let span = node.span_within(start..start + word.len(), sources.text(source));
        let at = sources.file(source).line_column(span.start as usize);
        format!("{}:{} {}", at.0, at.1, sources.slice(span))
    }

    #[test]
    fn plain_and_quoted() {
        assert_eq!(written("key: f(a, bad) -> c\n", "bad"), "1:11 bad");
        assert_eq!(written("key: 'it''s bad'\n", "bad"), "1:13 bad");
        assert_eq!(written("key: 'it''s bad'\n", "'s"), "1:9 ''s");
        assert_eq!(written(r#"key: "a\n\x41\u00e9\"\U0001F600 bad""#, "bad"), "1:33 bad");
        assert_eq!(written(r#"key: "\ud83d\ude00bad""#, "bad"), "1:19 bad");
        assert_eq!(written("key: \"é bad\"\r\n", "bad"), "1:9 bad");
    }

    #[test]
    fn over_several_lines() {
        assert_eq!(written("key: one two\n  three bad\n", "bad"), "2:9 bad");
        assert_eq!(written("key: one  \r\n  two\r\n\r\n  three\r\n  bad\r\n", "bad"), "5:3 bad");
        assert_eq!(written("key: 'one\n\n\n  two\n  bad'\n", "bad"), "5:3 bad");
        assert_eq!(written("key: \"one\\\n   two\n   bad\"\n", "bad"), "3:4 bad");
        assert_eq!(written("key: one\n  two\n", "one two"), "1:6 one\n  two");
    }

    #[test]
    fn blocks() {
        assert_eq!(written("key: |\n  one\n\n    two\n  bad\n", "bad"), "5:3 bad");
        assert_eq!(written("key: |2-\n    one\n  bad\n", "bad"), "3:3 bad");
        assert_eq!(written("key: >\n  one\n  two\n\n  three bad\n", "bad"), "5:9 bad");
        assert_eq!(written("key: >-\n  one\n\n    more\n    lines\n\n  bad\n", "bad"), "7:3 bad");
        assert_eq!(written("key: >\n\n  one\n\n\n  bad\n", "bad"), "6:3 bad");
        assert_eq!(written("key: |\r\n  one\r\n  bad\r\n", "bad"), "3:3 bad");
    }
}
