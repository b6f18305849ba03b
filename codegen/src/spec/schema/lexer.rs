//! Splits signature text into tokens with byte ranges. Blanks only separate tokens.

use std::ops::Range;

/// A token and its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub range: Range<usize>,
}

/// The kind of a token. Its text is in the signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    /// Letters, digits and underscores, not starting with a digit.
    Ident,
    /// `1`, `-2`, `0.5`, `1e-05`
    Number,
    /// A quoted string, whether closed or not.
    Str { closed: bool },
    /// `->`
    Arrow,
    /// `::`
    PathSep,
    /// Any other character.
    Char(char),
    /// After the last token.
    End,
}

/// Every token of `text`, an [`TokenKind::End`] last.
pub(super) fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let (kind, length) = token(rest, first);
        tokens.push(Token { kind, range: at..at + length });
        at += length;
    }
    tokens.push(Token { kind: TokenKind::End, range: text.len()..text.len() });
    tokens
}

/// The token at the start of `rest` and its length.
fn token(rest: &str, first: char) -> (TokenKind, usize) {
    match first {
        'a'..='z' | 'A'..='Z' | '_' => (TokenKind::Ident, word_length(rest)),
        '"' | '\'' => string(rest, first),
        '-' if rest.starts_with("->") => (TokenKind::Arrow, 2),
        ':' if rest.starts_with("::") => (TokenKind::PathSep, 2),
        '-' | '.' if number_follows(&rest[1..]) => (TokenKind::Number, number_length(rest)),
        '0'..='9' => (TokenKind::Number, number_length(rest)),
        other => (TokenKind::Char(other), other.len_utf8()),
    }
}

fn word_length(rest: &str) -> usize {
    rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

fn number_follows(rest: &str) -> bool {
    rest.strip_prefix('.').unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit())
}

/// A sign and all characters that could belong to a number, so that `1abc` is one malformed number.
fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut length = usize::from(bytes[0] == b'-');
    while let Some(&byte) = bytes.get(length) {
        let exponent_sign = matches!(byte, b'+' | b'-') && matches!(bytes[length - 1], b'e' | b'E');
        if !(byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_' || exponent_sign) {
            break;
        }
        length += 1;
    }
    length
}

/// A string up to its closing quote; a backslash escapes the next character.
fn string(rest: &str, quote: char) -> (TokenKind, usize) {
    let mut escaped = false;
    for (offset, c) in rest.char_indices().skip(1) {
        if c == quote && !escaped {
            return (TokenKind::Str { closed: true }, offset + 1);
        }
        escaped = c == '\\' && !escaped;
    }
    (TokenKind::Str { closed: false }, rest.len())
}

#[cfg(test)]
mod tests {
    use super::{TokenKind, lex};

    #[test]
    fn tokens_keep_their_bytes() {
        let text = r#"a::b(int[2]  x=[-2,.5], str s="a, \"b") -> 1e-05é"#;
        let words: Vec<&str> = lex(text).iter().map(|token| &text[token.range.clone()]).collect();
        assert_eq!(
            words,
            [
                "a",
                "::",
                "b",
                "(",
                "int",
                "[",
                "2",
                "]",
                "x",
                "=",
                "[",
                "-2",
                ",",
                ".5",
                "]",
                ",",
                "str",
                "s",
                "=",
                r#""a, \"b""#,
                ")",
                "->",
                "1e-05",
                "é",
                "",
            ]
        );
        assert_eq!(lex("'abc").first().map(|token| token.kind), Some(TokenKind::Str { closed: false }));
    }
}
