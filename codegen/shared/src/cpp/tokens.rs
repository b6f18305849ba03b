//! The tokens of a source in C, C++ or CUDA, as far as the search for a definition needs them.
//!
//! In: text. Out: words, signs and literals with their places; no comments, and of directives only the conditional ones. Parts
//! behind `#if 0` are left out. Macros are not expanded.

/// The kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// A name, keyword or number. A name that goes on behind an escaped line break has that in it.
    Word(&'a str),
    /// A string or character.
    Literal,
    /// Any other character.
    Sign(char),
    /// `#if` or one of its kind.
    If,
    /// `#else` or one of its kind.
    Else,
    /// `#endif`
    EndIf,
}

/// A token with the byte where it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed<'a> {
    pub token: Token<'a>,
    pub start: usize,
}

/// The tokens of a text, which need not be complete.
pub(super) fn tokens(text: &str) -> Vec<Placed<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    // Whether nothing but blanks and comments stand before on the line.
    let mut begins_line = true;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let comment = comment_length(rest);
        let (token, length) = match first {
            _ if comment > 0 => (None, comment),
            '\n' => (None, 1),
            '#' if begins_line => directive(rest),
            '\\' if line_break(&rest[1..]) > 0 => (None, 1 + line_break(&rest[1..])),
            '"' | '\'' => (Some(Token::Literal), literal_length(rest, first)),
            c if c.is_ascii_digit() => {
                let length = number_length(rest);
                (Some(Token::Word(&rest[..length])), length)
            }
            c if is_part(c) => word(rest),
            c if c.is_whitespace() => (None, c.len_utf8()),
            c => (Some(Token::Sign(c)), c.len_utf8()),
        };
        found.extend(token.map(|token| Placed { token, start: at }));
        begins_line = match first {
            '\n' => true,
            '#' if begins_line => rest[..length].ends_with('\n'),
            c => begins_line && (c.is_whitespace() || comment > 0),
        };
        at += length;
    }
    found
}

/// Whether a character is one of a name.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The length of a line break at the begin of a text, or 0.
fn line_break(rest: &str) -> usize {
    if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) }
}

/// The length of a comment at the begin of a text, or 0.
fn comment_length(rest: &str) -> usize {
    if rest.starts_with("//") {
        return line_length(rest);
    }
    let inside = rest.strip_prefix("/*");
    inside.map_or(0, |inside| inside.find("*/").map_or(rest.len(), |end| end + 4))
}

/// The length of a line up to its break, which goes on behind an escaped one.
fn line_length(rest: &str) -> usize {
    let is_end = |at: &usize| {
        let before = rest[..*at].strip_suffix('\r').unwrap_or(&rest[..*at]);
        !before.ends_with('\\')
    };
    rest.match_indices('\n').map(|(at, _)| at).find(is_end).unwrap_or(rest.len())
}

/// A directive with its lines.
fn directive(rest: &str) -> (Option<Token<'_>>, usize) {
    let mut length = 0;
    // A comment inside may have line breaks.
    while length < rest.len() {
        let here = &rest[length..];
        let comment = comment_length(here);
        let escape = here.strip_prefix('\\').map_or(0, line_break);
        match here.chars().next() {
            _ if comment > 0 => length += comment,
            _ if escape > 0 => length += 1 + escape,
            Some('\n') | None => break,
            Some('"') => length += literal_length(here, '"'),
            Some(c) => length += c.len_utf8(),
        }
    }
    let content = rest[1..length].trim_start();
    let name = &content[..content.find(|c| !is_part(c)).unwrap_or(content.len())];
    let condition = content[name.len()..].trim();
    match name {
        "if" if matches!(condition, "0" | "false" | "(0)") => (None, length + dead_length(&rest[length..])),
        "if" | "ifdef" | "ifndef" => (Some(Token::If), length),
        "else" | "elif" | "elifdef" | "elifndef" => (Some(Token::Else), length),
        "endif" => (Some(Token::EndIf), length),
        _ => (None, length),
    }
}

/// The length of the part that a condition leaves out, with the line of the directive that ends it.
fn dead_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        let line = &rest[at..at + line_length(&rest[at..])];
        at += line.len();
        let name = line.trim_start().strip_prefix('#').map(str::trim_start).unwrap_or_default();
        if name.starts_with("if") {
            depth += 1;
        } else if depth == 0 && (name.starts_with("el") || name.starts_with("endif")) {
            return at;
        } else if name.starts_with("endif") {
            depth -= 1;
        }
        at += usize::from(at < rest.len());
    }
    at
}

/// A name, or a raw string with its prefix.
fn word(rest: &str) -> (Option<Token<'_>>, usize) {
    let part = |text: &str| text.find(|c| !is_part(c)).unwrap_or(text.len());
    let mut length = part(rest);
    if rest[length..].starts_with('"') && matches!(&rest[..length], "R" | "LR" | "uR" | "UR" | "u8R") {
        return (Some(Token::Literal), length + raw_length(&rest[length..]));
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
    (Some(Token::Word(&rest[..length])), length)
}

/// The length of a string or character; one that is open ends with its line.
fn literal_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\r' if escaped => {}
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return at,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of `"delimiter(text)delimiter"`.
fn raw_length(rest: &str) -> usize {
    let Some((delimiter, _)) = rest[1..].split_once('(') else { return literal_length(rest, '"') };
    let close = format!("){delimiter}\"");
    rest.find(&close).map_or(rest.len(), |at| at + close.len())
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
