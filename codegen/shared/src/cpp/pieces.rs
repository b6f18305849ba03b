//! Text of C, C++ or CUDA in pieces: comments, words, numbers, literals, signs.
//!
//! In: text, which need not be complete. Out: its first piece. The one lexer of these languages: the search for definitions, the
//! check of kernel files and the import of formulas are above it. Must not know directives, nor any meaning of a word.

/// A piece of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    /// A comment; one that is open ends with the text.
    Comment,
    /// A blank, a line break, or an escaped line break.
    Blank,
    /// A name or keyword. A name that goes on behind an escaped line break has that in it.
    Word(&'a str),
    /// A number with its suffix, and with quotes between its digits: `1'000`.
    Number(&'a str),
    /// A string or character with its quotes, raw ones with their prefix; whether it is closed.
    Literal(&'a str, bool),
    /// Any other character.
    Sign(char),
}

/// The first piece of a text, and its length in bytes; `None` at the end.
///
/// Of `sum += 1'000; // all` it is `Word("sum")`, with length 3.
pub fn first(text: &str) -> Option<(Piece<'_>, usize)> {
    let first = text.chars().next()?;
    let comment = comment_length(text);
    let escaped_break = text.strip_prefix('\\').map_or(0, line_break);
    Some(match first {
        _ if comment > 0 => (Piece::Comment, comment),
        '\\' if escaped_break > 0 => (Piece::Blank, 1 + escaped_break),
        '"' | '\'' => literal(text, 0, literal_length(text, first)),
        c if c.is_ascii_digit() => {
            let length = number_length(text);
            (Piece::Number(&text[..length]), length)
        }
        c if is_part(c) => word(text),
        c if c.is_whitespace() => (Piece::Blank, c.len_utf8()),
        c => (Piece::Sign(c), c.len_utf8()),
    })
}

/// Whether a character is one of a name.
pub(super) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The length of a line break at the begin of a text, or 0.
pub(super) fn line_break(rest: &str) -> usize {
    if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) }
}

/// The length of a comment at the begin of a text, or 0.
pub(super) fn comment_length(rest: &str) -> usize {
    if rest.starts_with("//") {
        return line_length(rest);
    }
    let inside = rest.strip_prefix("/*");
    inside.map_or(0, |inside| inside.find("*/").map_or(rest.len(), |end| end + 4))
}

/// The length of a line up to its break, which goes on behind an escaped one.
pub(super) fn line_length(rest: &str) -> usize {
    let is_end = |at: &usize| {
        let before = rest[..*at].strip_suffix('\r').unwrap_or(&rest[..*at]);
        !before.ends_with('\\')
    };
    rest.match_indices('\n').map(|(at, _)| at).find(is_end).unwrap_or(rest.len())
}

/// A literal that begins behind a prefix, from its length without that and whether it is closed.
fn literal(text: &str, prefix: usize, (length, closed): (usize, bool)) -> (Piece<'_>, usize) {
    let length = prefix + length;
    (Piece::Literal(&text[..length], closed), length)
}

/// A name, or a raw string with its prefix.
fn word(rest: &str) -> (Piece<'_>, usize) {
    let part = |text: &str| text.find(|c| !is_part(c)).unwrap_or(text.len());
    let mut length = part(rest);
    if rest[length..].starts_with('"') && matches!(&rest[..length], "R" | "LR" | "uR" | "UR" | "u8R") {
        return literal(rest, length, raw_length(&rest[length..]));
    }
    // A name goes on behind an escaped line break.
    while let Some(after) = rest[length..].strip_prefix('\\') {
        let newline = line_break(after);
        let more = part(&after[newline..]);
        if newline == 0 || more == 0 {
            break;
        }
        length += 1 + newline + more;
    }
    (Piece::Word(&rest[..length]), length)
}

/// The length of a string or character, and whether it is closed; one that is open ends with its line.
pub(super) fn literal_length(rest: &str, quote: char) -> (usize, bool) {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\r' if escaped => {}
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return (at, false),
            c if c == quote => return (at + 1, true),
            _ => {}
        }
    }
    (rest.len(), false)
}

/// The length of `"delimiter(text)delimiter"`, and whether it is closed.
fn raw_length(rest: &str) -> (usize, bool) {
    let Some((delimiter, _)) = rest[1..].split_once('(') else { return literal_length(rest, '"') };
    let close = format!("){delimiter}\"");
    rest.find(&close).map_or((rest.len(), false), |at| (at + close.len(), true))
}

/// The length of a number, with quotes between its digits: `1'000`.
fn number_length(rest: &str) -> usize {
    let mut last = '0';
    for (at, c) in rest.char_indices() {
        let next = rest[at + c.len_utf8()..].chars().next();
        let is_sign = matches!(c, '+' | '-') && matches!(last, 'e' | 'E' | 'p' | 'P');
        let is_quote = c == '\'' && next.is_some_and(is_part);
        if !(is_part(c) || c == '.' || is_sign || is_quote) {
            return at;
        }
        last = c;
    }
    rest.len()
}
