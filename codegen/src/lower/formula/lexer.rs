//! The tokens of a formula.
//!
//! In: the text of the key. Out: tokens with their ranges in it. Must not know operators.

use std::ops::Range;

/// The kind of a token, with its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// A letter that is not ASCII, or a word of ASCII letters and the digits behind them.
    Name(String),
    /// A number.
    Number(String),
    /// Words in quotes, without these.
    Words(String),
    /// Any other character.
    Sign(char),
    /// The end of a line.
    Break,
    /// The end of the text.
    End,
}

/// A token with its range.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub token: Token,
    /// Its bytes of the text.
    pub range: Range<usize>,
    /// Whether nothing stands between it and the token before.
    pub is_close: bool,
}

/// A mistake in a range of the text.
#[derive(Debug)]
pub(super) struct Mistake {
    pub range: Range<usize>,
    pub kind: MistakeKind,
}

/// The kind of a mistake.
#[derive(Debug)]
pub(super) enum MistakeKind {
    /// The notation of formulas has no such text, with the reason.
    Malformed(String),
    /// The signature has no such name.
    Unknown(String),
    /// A word that nothing defines.
    Undefined(String),
    /// A name of the signature without braces.
    Bare(String),
}

impl Mistake {
    pub fn malformed(range: Range<usize>, why: impl Into<String>) -> Mistake {
        Mistake { range, kind: MistakeKind::Malformed(why.into()) }
    }
}

/// Spellings of other notations, with those of this one.
const ELSEWHERE: &[(&str, &str)] = &[
    ("<=", "≤"),
    (">=", "≥"),
    ("!=", "≠"),
    ("==", "="),
    ("...", "…"),
    ("&&", "∧"),
    ("*", "⋅"),
    ("∗", "⋅"),
    ("∑", "Σ"),
    ("·", "⋅"),
    ("\\", "a letter or sign of Unicode"),
];

/// The tokens of a text, the last of which is its end.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, Mistake> {
    let mut tokens: Vec<Placed> = Vec::new();
    let mut at = 0;
    let mut is_close = false;
    // A line goes on inside parentheses.
    let mut depth = 0_usize;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_mark = tokens.last().is_some_and(|last| last.token == Token::Sign('^'));
        let elsewhere = ELSEWHERE.iter().find(|(other, _)| rest.starts_with(other));
        if let Some((other, here)) = elsewhere.filter(|(other, _)| !(is_mark && matches!(*other, "∗" | "*")))
        {
            let why = format!("`{other}` is written {}", quoted(here));
            return Err(Mistake::malformed(at..at + other.len(), why));
        }
        let (token, length) = match first {
            '\n' if depth == 0 => (Some(Token::Break), 1),
            c if c.is_whitespace() => (None, c.len_utf8()),
            '"' => words(rest, at)?,
            c if c.is_ascii_digit() => number(rest),
            c if c.is_ascii_alphabetic() => {
                let letters = length_of(rest, |c| c.is_ascii_alphabetic());
                let length = letters + length_of(&rest[letters..], |c| c.is_ascii_digit());
                (Some(Token::Name(rest[..length].to_owned())), length)
            }
            c if c.is_alphabetic() => (Some(Token::Name(c.to_string())), c.len_utf8()),
            '-' => (Some(Token::Sign('−')), 1),
            '*' => (Some(Token::Sign('∗')), 1),
            c => (Some(Token::Sign(c)), c.len_utf8()),
        };
        match first {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let is_blank = token.is_none();
        if let Some(token) = token {
            tokens.push(Placed { token, range: at..at + length, is_close });
        }
        is_close = !is_blank;
        at += length;
    }
    tokens.push(Placed { token: Token::End, range: text.len()..text.len(), is_close: false });
    Ok(tokens)
}

fn quoted(here: &str) -> String {
    if here.chars().count() == 1 { format!("`{here}`") } else { format!("as {here}") }
}

fn length_of(text: &str, holds: impl Fn(char) -> bool) -> usize {
    text.find(|c| !holds(c)).unwrap_or(text.len())
}

fn number(rest: &str) -> (Option<Token>, usize) {
    let whole = length_of(rest, |c| c.is_ascii_digit());
    let behind = &rest[whole..];
    let fraction = behind.strip_prefix('.').map_or(0, |digits| length_of(digits, |c| c.is_ascii_digit()));
    let length = if fraction > 0 { whole + 1 + fraction } else { whole };
    (Some(Token::Number(rest[..length].to_owned())), length)
}

fn words(rest: &str, at: usize) -> Result<(Option<Token>, usize), Mistake> {
    let end = rest[1..].find('"').filter(|end| !rest[1..=*end].contains('\n'));
    let end = end.ok_or_else(|| Mistake::malformed(at..at + 1, "a quote is not closed"))? + 1;
    let words = rest[1..end].trim();
    if words.is_empty() {
        return Err(Mistake::malformed(at..at + end + 1, "there are no words between the quotes"));
    }
    Ok((Some(Token::Words(words.to_owned())), end + 1))
}
