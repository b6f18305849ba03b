//! C++ text to tokens; comments are treated as blanks.

use opsmith_core::cpp::pieces::{self, Piece};

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// A name or keyword.
    Word(String),
    /// A number without its suffix.
    Number(String),
    /// The text between quotes, with unchanged escapes.
    Text(String),
    /// Punctuation.
    Symbol(&'static str),
}

impl Token {
    /// The token as it was written, quotes left out.
    pub fn text(&self) -> &str {
        match self {
            Token::Word(text) | Token::Number(text) | Token::Text(text) => text,
            Token::Symbol(symbol) => symbol,
        }
    }
}

/// Longer ones first.
const SYMBOLS: [&str; 31] = [
    "::", "->", "||", "&&", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", "<", ">", ",", ".", "?",
    ":", "+", "-", "*", "/", "%", "!", "&", "|", "^", "=", ";",
];

/// Splits a formula.
pub(super) fn lex(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((piece, length)) = pieces::first(rest) {
        let written = &rest[..length];
        let length = match piece {
            Piece::Blank => length,
            Piece::Comment if written.starts_with("//") || written.len() >= 4 && written.ends_with("*/") => {
                length
            }
            Piece::Comment => return Err("a comment without end".to_owned()),
            Piece::Word(word) => {
                tokens.push(Token::Word(plain(word)?));
                length
            }
            Piece::Number(number) => {
                let number = plain(number)?;
                tokens
                    .push(Token::Number(number.trim_end_matches(['f', 'F', 'l', 'L', 'u', 'U']).to_owned()));
                length
            }
            Piece::Literal(text, true) if text.starts_with('"') => {
                tokens.push(Token::Text(text[1..length - 1].to_owned()));
                length
            }
            Piece::Literal(text, false) if text.starts_with('"') => {
                return Err("a text without end".to_owned());
            }
            Piece::Literal(..) | Piece::Sign(_) => {
                let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) else {
                    return Err(meaningless(rest.chars().next().unwrap_or_default()));
                };
                tokens.push(Token::Symbol(symbol));
                symbol.len()
            }
        };
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// A word or number of plain letters, digits, points and signs of exponents.
fn plain(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '+' | '-');
    match text.chars().find(|c| !is_plain(*c)) {
        None => Ok(text.to_owned()),
        Some(other) => Err(meaningless(other)),
    }
}

fn meaningless(character: char) -> String {
    format!("`{character}` has no meaning in a formula")
}
