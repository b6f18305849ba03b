//! Expression text to a syntax tree, with byte ranges for carets.
//!
//! In: text of any origin. Out: a tree that is shallow enough for recursion in every stage, or the error in the text. Files
//! in Rust that a spec names are read here too, for the same reason.
//! Every stage that wants the tree of a text of a spec asks here: the depth is known before the parser recurses.

use std::ops::Range;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree, token_stream};
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
    if text.len() > MAX_BYTES {
        return Err(ParseError::TooDeep(format!("{MAX_BYTES} bytes")));
    }
    unclosed(text)?;
    let syntax = |error: &syn::Error| syntax_error(text, places, error);
    let tokens = text.parse::<TokenStream>().map_err(|error| syntax(&error.into()))?;
    let shape = Shape::of(tokens.clone(), EXPRESSION);
    let limits = [
        (shape.nesting, EXPRESSION.nesting, "brackets, signs and branches inside each other"),
        (shape.parts, EXPRESSION.parts, "parts in a row"),
    ];
    if let Some((_, limit, what)) = limits.into_iter().find(|(found, limit, _)| found > limit) {
        return Err(ParseError::TooDeep(format!("{limit} {what}")));
    }
    syn::parse2::<syn::Expr>(tokens).map_err(|error| syntax(&error))
}

/// The tree of a text whose mistakes another stage reports; `None` if it has one.
pub fn tree(text: &str) -> Option<syn::Expr> {
    parse(text, &Places::new(text)).ok()
}

/// The tree of a file in Rust that a spec names; `None` if it has mistakes, or is too deep for recursion.
pub fn file(text: &str) -> Option<syn::File> {
    let tokens = text.strip_prefix('\u{feff}').unwrap_or(text).parse::<TokenStream>().ok()?;
    let shape = Shape::of(tokens.clone(), FILE);
    if shape.nesting > FILE.nesting || shape.parts > FILE.parts {
        return None;
    }
    syn::parse2::<syn::File>(tokens).ok()
}

fn syntax_error(text: &str, places: &Places<'_>, error: &syn::Error) -> ParseError {
    let message = error.to_string();
    let span = error.span();
    let range = places.offset(span.start())..places.offset(span.end());
    let range = match () {
        // The parser gives no position for the end of its input.
        () if message.starts_with("unexpected end of input") => text.trim_end().len()..text.trim_end().len(),
        () if range.is_empty() => range.start..next_boundary(text, range.start),
        () => range,
    };
    let hint = FOREIGN.iter().find(|(spelling, _)| text.contains(spelling)).map(|(_, hint)| *hint);
    ParseError::Syntax { message, hint, range }
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

/// The deepest trees that recursion may meet.
const EXPRESSION: Shape = Shape { nesting: 64, parts: 256 };
/// Programs are deeper than formulas, and only the parser recurses over all of one.
const FILE: Shape = Shape { nesting: 128, parts: 2048 };
/// Longer than any formula.
const MAX_BYTES: usize = 32 << 10;

/// Words that precede an expression, each one level deeper in the tree.
const PREFIX_WORDS: [&str; 12] =
    ["if", "match", "return", "break", "move", "async", "yield", "loop", "while", "for", "unsafe", "static"];
/// Words that are no operand, so that a sign after one is a prefix.
const OTHER_WORDS: [&str; 9] = ["as", "let", "mut", "ref", "in", "else", "const", "dyn", "impl"];
/// Symbols that precede an operand, each one level deeper in the tree.
const PREFIX_SIGNS: [char; 7] = ['-', '!', '*', '&', '|', '.', '<'];

/// Refuses a bracket without its pair, at its span, and a text that is never closed.
fn unclosed(text: &str) -> Result<(), ParseError> {
    let bracket = |(offset, bracket): (usize, char)| {
        Err(ParseError::Bracket(offset..offset + bracket.len_utf8(), bracket))
    };
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut rest = text.char_indices();
    while let Some((offset, character)) = rest.next() {
        match character {
            '"' if !skip_text(&mut rest) => {
                return Err(ParseError::Syntax {
                    message: "this text is never closed".to_owned(),
                    hint: Some("add the closing `\"`"),
                    range: offset..offset + 1,
                });
            }
            '(' | '[' | '{' => open.push((offset, character)),
            ')' | ']' | '}' => {
                let pair = match character {
                    ')' => '(',
                    ']' => '[',
                    _ => '{',
                };
                match open.pop() {
                    Some((_, found)) if found == pair => {}
                    Some(found) => return bracket(found),
                    None => return bracket((offset, character)),
                }
            }
            _ => {}
        }
    }
    open.pop().map_or(Ok(()), bracket)
}

/// Skips the rest of a text in quotes; false if it has no end.
fn skip_text(rest: &mut std::str::CharIndices<'_>) -> bool {
    while let Some((_, inside)) = rest.next() {
        match inside {
            '\\' => _ = rest.next(),
            '"' => return true,
            _ => {}
        }
    }
    false
}

/// How deep the tree of some tokens can be, known without parsing them.
#[derive(Clone, Copy, Default)]
struct Shape {
    /// An upper bound of the nesting depth of brackets and prefixes.
    nesting: usize,
    /// An upper bound of the tree's depth due to chains of operators and methods.
    parts: usize,
}

/// The rest of the tokens in a bracket, with the parts since its last comma or semicolon.
struct Level {
    rest: token_stream::IntoIter,
    parts: usize,
    prefixes: usize,
    /// Angle brackets that are open, or signs of comparison.
    angles: usize,
    /// Whether the parameters of a closure are open.
    in_params: bool,
    /// The last sign, if it touches the next one.
    before: Option<char>,
    /// Whether braces have just closed.
    after_braces: bool,
}

impl Level {
    fn new(tokens: TokenStream) -> Level {
        Level {
            rest: tokens.into_iter(),
            parts: 0,
            prefixes: 0,
            angles: 0,
            in_params: false,
            before: None,
            after_braces: false,
        }
    }

    /// Whether an item of a list or a statement ends here. A comma between arguments of types or parameters of a closure
    /// ends nothing: the next tokens stand inside.
    fn ends(&mut self, token: &TokenTree, after_operand: bool) -> bool {
        let before = self.before.take();
        let after_braces = std::mem::take(&mut self.after_braces);
        let sign = match token {
            TokenTree::Punct(sign) => sign,
            // The first word of the next statement or item.
            TokenTree::Ident(word) => {
                return after_braces && !["else", "as", "in"].iter().any(|other| word == other);
            }
            TokenTree::Group(group) => {
                self.after_braces = group.delimiter() == Delimiter::Brace;
                return false;
            }
            TokenTree::Literal(_) => return false,
        };
        self.before = Some(sign.as_char()).filter(|_| sign.spacing() == Spacing::Joint);
        match sign.as_char() {
            '<' => self.angles += 1,
            // Arrows close nothing.
            '>' if matches!(before, Some('-' | '=')) => {}
            '>' => self.angles = self.angles.saturating_sub(1),
            '#' if after_braces => return true,
            '|' => self.in_params = !self.in_params && !after_operand,
            ';' => (self.angles, self.in_params) = (0, false),
            _ => {}
        }
        sign.as_char() == ';' || (sign.as_char() == ',' && self.angles == 0 && !self.in_params)
    }
}

impl Shape {
    /// Counts tokens rather than characters, so that no comment or quote hides a bracket; up to `most`.
    fn of(tokens: TokenStream, most: Shape) -> Shape {
        let mut shape = Shape::default();
        let mut levels = vec![Level::new(tokens)];
        let (mut parts, mut prefixes) = (0, 0);
        // A sign after an operand is a binary operator, not a prefix.
        let mut after_operand = false;
        while let Some(level) = levels.last_mut() {
            let Some(token) = level.rest.next() else {
                parts -= level.parts;
                prefixes -= level.prefixes;
                levels.pop();
                after_operand = true;
                continue;
            };
            if level.ends(&token, after_operand) {
                parts -= std::mem::take(&mut level.parts);
                prefixes -= std::mem::take(&mut level.prefixes);
                after_operand = false;
            }
            let is_prefix = is_prefix(&token, after_operand);
            after_operand = match &token {
                TokenTree::Ident(word) => !is_prefix && OTHER_WORDS.iter().all(|other| word != other),
                TokenTree::Literal(_) => true,
                TokenTree::Group(_) | TokenTree::Punct(_) => false,
            };
            // A call or an index extends the chain by one part as well.
            level.parts += 1;
            parts += 1;
            level.prefixes += usize::from(is_prefix);
            prefixes += usize::from(is_prefix);
            if let TokenTree::Group(group) = token {
                levels.push(Level::new(group.stream()));
            }
            shape.parts = shape.parts.max(parts + levels.len());
            shape.nesting = shape.nesting.max(levels.len() - 1 + prefixes);
            if shape.nesting > most.nesting || shape.parts > most.parts {
                break;
            }
        }
        shape
    }
}

/// Whether the rest of the expression stands inside the expression that a token begins.
fn is_prefix(token: &TokenTree, after_operand: bool) -> bool {
    match token {
        TokenTree::Ident(word) => PREFIX_WORDS.iter().any(|prefix| word == prefix),
        // An assignment and a bound pattern hold all that follows; `==` and `<=` do not.
        TokenTree::Punct(sign) if after_operand => {
            sign.as_char() == '@' || (sign.as_char() == '=' && sign.spacing() == Spacing::Alone)
        }
        TokenTree::Punct(sign) => PREFIX_SIGNS.contains(&sign.as_char()),
        TokenTree::Group(_) | TokenTree::Literal(_) => false,
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
        assert_eq!(parsed(&format!("({})", "a > b, |a, b| a | b, ".repeat(1000))), Ok(()));
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
            "|a, b| ".repeat(1000) + "a",
            format!("{}a{}", "f::<a, ".repeat(1000), ">".repeat(1000)),
            format!("a as {}a{}", "A<a, ".repeat(1000), ">".repeat(1000)),
            format!("a{}", " as fn(a) -> A<a, a>".repeat(1000)),
            format!("a as {}a", "fn(a) -> ".repeat(1000)),
            format!("{}a{}", "f::<fn() -> a, ".repeat(1000), ">".repeat(1000)),
            format!("a as {}a", "&'a ".repeat(1000)),
            format!("'\"' + {}a{} + '\"'", "(".repeat(1000), ")".repeat(1000)),
            format!("\"{}\"", "x".repeat(1 << 20)),
        ];
        for text in endless {
            assert_eq!(parsed(&text), Err("too deep"), "{}", &text[..40]);
        }
    }

    #[test]
    fn files_are_as_deep_as_programs() {
        let body = |text: String| file(&format!("pub fn f() {{ {text} }}")).is_some();
        assert!(body("if a { b(); } if c { d() } else { e() } match x { A => {} B => {} }\n".repeat(1000)));
        assert!(body("(".repeat(100) + "a" + &")".repeat(100)));
        for deepest in [".f()".repeat(600), " + b".repeat(1000), " as fn() -> A".repeat(250)] {
            assert!(body(format!("a{deepest}")), "{}", &deepest[..20]);
        }
        for deepest in ["!", "|a, b| ", "if a {} else ", "a = ", "return "] {
            assert!(body(deepest.repeat(120) + "{}"), "{deepest}");
        }
        assert!(file(&"#[a] pub fn f() -> A<B, C> {}\nimpl A {}\n".repeat(1000)).is_some());
        let endless = [
            "(".repeat(20_000) + "a" + &")".repeat(20_000),
            "!".repeat(20_000) + "a",
            format!("a{}", ".f()".repeat(20_000)),
            "if a {} else ".repeat(20_000) + "{}",
            "|a, b| ".repeat(20_000) + "a",
        ];
        for text in endless {
            assert!(!body(text.clone()), "{}", &text[..40]);
            assert!(file(&format!("const A: B = {text};")).is_none(), "{}", &text[..40]);
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
