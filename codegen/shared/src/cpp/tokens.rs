//! The tokens of a source in C, C++ or CUDA, as far as the search for a definition needs them.
//!
//! In: text. Out: words, signs and literals with their places; no comments, and of directives only the conditional ones. Parts
//! behind `#if 0` are left out. Macros are not expanded.

use super::pieces::{self, Piece, comment_length, is_part, line_break, line_length, literal_length};

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
    while let Some((piece, length)) = pieces::first(&text[at..]) {
        let rest = &text[at..];
        let (token, length) = match piece {
            Piece::Sign('#') if begins_line => directive(rest),
            Piece::Word(word) | Piece::Number(word) => (Some(Token::Word(word)), length),
            Piece::Literal(..) => (Some(Token::Literal), length),
            Piece::Sign(sign) => (Some(Token::Sign(sign)), length),
            Piece::Comment | Piece::Blank => (None, length),
        };
        found.extend(token.map(|token| Placed { token, start: at }));
        begins_line = match piece {
            Piece::Blank if rest.starts_with('\\') => false,
            Piece::Blank => begins_line || rest.starts_with('\n'),
            Piece::Comment => begins_line,
            Piece::Sign('#') if begins_line => rest[..length].ends_with('\n'),
            _ => false,
        };
        at += length;
    }
    found
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
            Some('"') => length += literal_length(here, '"').0,
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
