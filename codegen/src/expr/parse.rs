//! Expression text to a syntax tree, with places for carets.

use std::ops::Range;

use syn::spanned::Spanned;

/// The bytes an expression or token takes in the text it was parsed from.
///
/// A one-line text only needs columns; a text of several lines needs the line starts too.
pub struct Places {
    line_starts: Vec<usize>,
    text: String,
}

impl Places {
    /// Prepares places for one text.
    pub fn new(text: &str) -> Places {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        Places { line_starts, text: text.to_owned() }
    }

    /// The bytes of a piece of syntax.
    pub fn of(&self, node: &impl Spanned) -> Range<usize> {
        let span = node.span();
        self.offset(span.start())..self.offset(span.end())
    }

    fn offset(&self, place: proc_macro2::LineColumn) -> usize {
        let start = self.line_starts.get(place.line.saturating_sub(1)).copied().unwrap_or(0);
        // Columns count characters.
        let line = &self.text[start.min(self.text.len())..];
        line.char_indices().nth(place.column).map_or(self.text.len(), |(offset, _)| start + offset)
    }
}

/// A text that is not an expression.
pub struct ParseError {
    /// What the parser says.
    pub message: String,
    /// Where.
    pub range: Range<usize>,
}

/// Parses one expression.
///
/// # Errors
/// If the text is not one Rust expression.
pub fn parse(text: &str, places: &Places) -> Result<syn::Expr, ParseError> {
    let depth = nesting(text);
    if depth > MAX_NESTING {
        return Err(ParseError {
            message: format!("the expression is nested {depth} deep, at most {MAX_NESTING} is allowed"),
            range: 0..text.len(),
        });
    }
    syn::parse_str::<syn::Expr>(text).map_err(|error| {
        let span = error.span();
        let range = places.offset(span.start())..places.offset(span.end());
        let range = if range.is_empty() { range.start..(range.start + 1).min(text.len()) } else { range };
        ParseError { message: error.to_string(), range }
    })
}

/// Deeper expressions would overflow the stack of the recursive stages.
const MAX_NESTING: usize = 64;

/// An upper bound of how deep the syntax tree gets: open brackets, and prefix operators in a row.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut prefixes) = (0usize, 0, 0usize);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                prefixes = 0;
            }
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                prefixes = 0;
            }
            b'-' | b'!' | b'*' | b'&' | b'|' => prefixes += 1,
            b' ' => {}
            _ => prefixes = 0,
        }
        deepest = deepest.max(depth + prefixes);
    }
    deepest
}
