//! Expression text to a syntax tree, with byte ranges for carets.
//!
//! In: text of any origin. Out: a tree that is shallow enough for recursion in every stage, or the error in the text.

use std::ops::Range;

use syn::spanned::Spanned;

/// Byte ranges of expressions and tokens in the parsed text.
pub struct Places<'t> {
    line_starts: Vec<usize>,
    text: &'t str,
    /// Whether every character is a byte.
    is_ascii: bool,
}

impl<'t> Places<'t> {
    /// Prepares the byte ranges of one text.
    pub fn new(text: &'t str) -> Places<'t> {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        Places { line_starts, text, is_ascii: text.is_ascii() }
    }

    /// The bytes of a piece of syntax.
    pub fn of(&self, node: &impl Spanned) -> Range<usize> {
        let span = node.span();
        self.offset(span.start())..self.offset(span.end())
    }

    fn offset(&self, place: proc_macro2::LineColumn) -> usize {
        let start = self.line_starts.get(place.line.saturating_sub(1)).copied().unwrap_or(0);
        if self.is_ascii {
            return (start + place.column).min(self.text.len());
        }
        // Columns count characters.
        let line = &self.text[start.min(self.text.len())..];
        line.char_indices().nth(place.column).map_or(self.text.len(), |(offset, _)| start + offset)
    }
}

/// The reason why a text is not an expression.
pub enum ParseError {
    /// It would overflow the stack of later stages; the text names the excess.
    TooDeep(String),
    /// A bracket without its pair.
    Bracket(Range<usize>, char),
    /// Any other error.
    Syntax {
        /// The parser's message.
        message: String,
        /// The probable intention.
        hint: Option<&'static str>,
        /// The erroneous bytes.
        range: Range<usize>,
    },
}

/// Parses one expression.
///
/// # Errors
/// If the text is not one Rust expression, or is too deep for later stages.
pub fn parse(text: &str, places: &Places<'_>) -> Result<syn::Expr, ParseError> {
    let shape = Shape::of(text);
    if let Some((offset, bracket)) = shape.unmatched {
        return Err(ParseError::Bracket(offset..offset + bracket.len_utf8(), bracket));
    }
    if let Some(offset) = shape.open_text {
        let message = "this text is never closed".to_owned();
        return Err(ParseError::Syntax {
            message,
            hint: Some("add the closing `\"`"),
            range: offset..offset + 1,
        });
    }
    let limits = [
        (shape.nesting, MAX_NESTING, "brackets, signs and branches inside each other"),
        (shape.parts, MAX_PARTS, "parts in a row"),
        (text.len(), MAX_BYTES, "bytes"),
    ];
    if let Some((_, limit, what)) = limits.into_iter().find(|(found, limit, _)| found > limit) {
        return Err(ParseError::TooDeep(format!("{limit} {what}")));
    }
    syn::parse_str::<syn::Expr>(text).map_err(|error| {
        let message = error.to_string();
        let span = error.span();
        let range = places.offset(span.start())..places.offset(span.end());
        let range = match () {
            // The parser gives no position for the end of its input.
            () if message.starts_with("unexpected end of input") => {
                text.trim_end().len()..text.trim_end().len()
            }
            () if range.is_empty() => range.start..next_boundary(text, range.start),
            () => range,
        };
        let hint = FOREIGN.iter().find(|(spelling, _)| text.contains(spelling)).map(|(_, hint)| *hint);
        ParseError::Syntax { message, hint, range }
    })
}

/// The end of the character at `start`.
fn next_boundary(text: &str, start: usize) -> usize {
    text[start..].chars().next().map_or(start, |character| start + character.len_utf8())
}

/// Notations of other languages, with their equivalents here.
const FOREIGN: &[(&str, &str)] = &[
    ("->", "methods are called with `.`, as in `self.dim()`"),
    ("?", "a choice is written `if condition { a } else { b }`"),
    ("**", "there is no power operator; call the operator or function for it"),
    (" and ", "write `a && b`"),
    (" or ", "write `a || b`"),
    ("not ", "write `!a`"),
    (" if ", "a choice is written `if condition { a } else { b }`"),
    ("'", "text stands in `\"` quotes"),
];

/// Maximal number of nested or chained parts of an expression.
const MAX_PARTS: usize = 256;
/// Deeper nesting would overflow the stack of the parser.
const MAX_NESTING: usize = 64;
/// Longer than any formula.
const MAX_BYTES: usize = 32 << 10;

/// Words that precede an expression, each one level deeper in the tree.
const PREFIX_WORDS: [&str; 12] =
    ["if", "match", "return", "break", "move", "async", "yield", "loop", "while", "for", "unsafe", "static"];

/// Properties of a text that are known without parsing.
#[derive(Default)]
struct Shape {
    /// An upper bound of the nesting depth of brackets and prefixes.
    nesting: usize,
    /// An upper bound of the tree's depth due to chains of operators and methods.
    parts: usize,
    unmatched: Option<(usize, char)>,
    open_text: Option<usize>,
}

/// An open bracket, with the parts in it since the last comma or semicolon.
struct Level {
    bracket: (usize, char),
    parts: usize,
    prefixes: usize,
}

impl Shape {
    fn of(text: &str) -> Shape {
        let mut shape = Shape::default();
        let mut levels = vec![Level { bracket: (0, ' '), parts: 0, prefixes: 0 }];
        let (mut parts, mut prefixes) = (0, 0);
        // A sign after an operand is a binary operator, not a prefix.
        let mut after_operand = false;
        let mut rest = text.char_indices().peekable();
        while let Some((offset, character)) = rest.next() {
            match character {
                '"' => {
                    let mut closed = false;
                    while let Some((_, inside)) = rest.next() {
                        match inside {
                            '\\' => _ = rest.next(),
                            '"' => {
                                closed = true;
                                break;
                            }
                            _ => {}
                        }
                    }
                    if !closed {
                        shape.open_text = Some(offset);
                        return shape;
                    }
                    after_operand = true;
                }
                '(' | '[' | '{' => {
                    // A call or an index extends the chain by one part.
                    if let Some(level) = levels.last_mut() {
                        level.parts += 1;
                        parts += 1;
                    }
                    levels.push(Level { bracket: (offset, character), parts: 0, prefixes: 0 });
                    after_operand = false;
                }
                ')' | ']' | '}' => {
                    let open = match character {
                        ')' => '(',
                        ']' => '[',
                        _ => '{',
                    };
                    match levels.last() {
                        Some(level) if level.bracket.1 == open && levels.len() > 1 => {
                            parts -= level.parts;
                            prefixes -= level.prefixes;
                            levels.pop();
                            after_operand = true;
                        }
                        Some(level) if levels.len() > 1 => {
                            shape.unmatched = Some(level.bracket);
                            return shape;
                        }
                        _ => {
                            shape.unmatched = Some((offset, character));
                            return shape;
                        }
                    }
                }
                ',' | ';' => {
                    if let Some(level) = levels.last_mut() {
                        parts -= std::mem::take(&mut level.parts);
                        prefixes -= std::mem::take(&mut level.prefixes);
                    }
                    after_operand = false;
                }
                character if character.is_whitespace() => continue,
                _ => {
                    let word = word_at(text, offset);
                    (1..word.chars().count()).for_each(|_| _ = rest.next());
                    let is_sign = matches!(character, '-' | '!' | '*' | '&' | '|') && !after_operand;
                    let is_prefix = is_sign || PREFIX_WORDS.contains(&word);
                    after_operand = !is_prefix && character.is_alphanumeric();
                    if let Some(level) = levels.last_mut() {
                        level.parts += 1;
                        parts += 1;
                        level.prefixes += usize::from(is_prefix);
                        prefixes += usize::from(is_prefix);
                    }
                }
            }
            shape.parts = shape.parts.max(parts + levels.len());
            shape.nesting = shape.nesting.max(levels.len() - 1 + prefixes);
        }
        if levels.len() > 1 {
            shape.unmatched = levels.last().map(|level| level.bracket);
        }
        shape
    }
}

/// The word or symbol that starts at an offset.
fn word_at(text: &str, offset: usize) -> &str {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let rest = &text[offset..];
    match rest.find(|character| !is_word(character)) {
        Some(0) => &rest[..next_boundary(rest, 0)],
        Some(end) => &rest[..end],
        None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn parsed(text: &str) -> Result<(), &'static str> {
        match parse(text, &Places::new(text)) {
            Ok(_) => Ok(()),
            Err(ParseError::TooDeep(_)) => Err("too deep"),
            Err(ParseError::Bracket(..)) => Err("bracket"),
            Err(ParseError::Syntax { .. }) => Err("syntax"),
        }
    }

    #[test]
    fn long_formulas_are_fine_and_endless_ones_refused() {
        let sum = |count: usize| format!("a{}", " + b * c".repeat(count));
        assert_eq!(parsed(&sum(60)), Ok(()));
        assert_eq!(parsed(&format!("({})", "f(a, b), ".repeat(1000))), Ok(()));
        let endless = [
            sum(10_000),
            "(".repeat(100) + "a" + &")".repeat(100),
            "-".repeat(5000) + "a",
            "!".repeat(5000) + "a",
            "&".repeat(5000) + "a",
            "return ".repeat(5000),
            format!("a{}", ".t()".repeat(5000)),
            format!("a{}", "[0]".repeat(5000)),
            format!("a{}", "()".repeat(5000)),
            "if a {} else ".repeat(5000) + "{}",
            "|a| ".repeat(5000) + "a",
            format!("\"{}\"", "x".repeat(1 << 20)),
        ];
        for text in endless {
            assert_eq!(parsed(&text), Err("too deep"), "{}", &text[..40]);
        }
    }

    #[test]
    fn brackets_are_matched_outside_text() {
        assert_eq!(parsed("f(\"(\", [a])"), Ok(()));
        assert_eq!(parsed("f(a"), Err("bracket"));
        assert_eq!(parsed("f(a]"), Err("bracket"));
        assert_eq!(parsed("f a)"), Err("bracket"));
        assert_eq!(parsed("f(\"a)"), Err("syntax"));
    }
}
