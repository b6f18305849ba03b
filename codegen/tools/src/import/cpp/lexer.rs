//! C++ text to tokens; comments are treated as blanks.

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
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2).ok_or("a comment without end")?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = word_end(rest);
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        } else if first.is_ascii_digit() {
            let end = number_end(rest);
            tokens
                .push(Token::Number(rest[..end].trim_end_matches(['f', 'F', 'l', 'L', 'u', 'U']).to_owned()));
            end
        } else if first == '"' {
            let end = text_end(rest).ok_or("a text without end")?;
            tokens.push(Token::Text(rest[1..end].to_owned()));
            end + 1
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            tokens.push(Token::Symbol(symbol));
            symbol.len()
        } else {
            return Err(format!("`{first}` has no meaning in a formula"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn word_end(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// `1`, `1.5`, `1e-5`, `2L`
fn number_end(text: &str) -> usize {
    let mut before = ' ';
    text.find(|c: char| {
        let exponent = matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
        before = c;
        !(c.is_ascii_alphanumeric() || c == '.' || exponent)
    })
    .unwrap_or(text.len())
}

/// The position of the closing quote.
fn text_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices()
        .skip(1)
        .find(|(_, character)| {
            let closes = *character == '"' && !escaped;
            escaped = *character == '\\' && !escaped;
            closes
        })
        .map(|(offset, _)| offset)
}
