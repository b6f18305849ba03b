//! Paths of Rust functions in a spec: `linalg::mm`.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

/// An error in a path.
pub struct Problem {
    /// The bytes of the text to change.
    pub range: Range<usize>,
    /// A label for them.
    pub label: &'static str,
}

/// Checks that a text is a list of names separated by `::`; generated code appends it to a crate's path.
///
/// # Errors
/// The first invalid part.
pub fn check(text: &str) -> Result<(), Problem> {
    let mut start = 0;
    for segment in text.split("::") {
        let range = start..start + segment.len();
        start = range.end + 2;
        let problem = |label| Err(Problem { range: non_empty(range.clone(), text), label });
        match segment {
            "" => return problem("a name is missing here"),
            "crate" | "self" | "super" | "Self" => {
                return problem("the path starts inside the crate already");
            }
            _ if segment.contains(char::is_whitespace) => return problem("contains a space"),
            _ if segment.contains(['<', '>']) => {
                return problem("the element type is added by the generator");
            }
            _ if segment.contains(['(', ')']) => return problem("the arguments are added by the generator"),
            _ if !is_identifier(segment) => return problem("not a name in Rust"),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a text is a Rust identifier and not a keyword.
pub fn is_identifier(text: &str) -> bool {
    let mut letters = text.bytes();
    let starts = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
    match text.is_ascii() {
        true => {
            starts
                && text != "_"
                && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
                && (text.len() > LONGEST_KEYWORD || !KEYWORD_SET.contains(text))
        }
        false => syn::parse_str::<syn::Ident>(text).is_ok_and(|ident| ident == text),
    }
}

/// A range with at least one character, since a caret needs one.
fn non_empty(range: Range<usize>, text: &str) -> Range<usize> {
    match range.is_empty() {
        true => range.start.saturating_sub(1)..range.end.max(1).min(text.len()),
        false => range,
    }
}

/// The keywords of Rust, those of later editions included.
const KEYWORDS: &str = "\
    Self abstract as async await become box break const continue crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self \
    static struct super trait true try type typeof unsafe unsized use virtual where while yield";

/// The same, to be found quickly.
static KEYWORD_SET: LazyLock<HashSet<&str>> = LazyLock::new(|| KEYWORDS.split(' ').collect());

/// The longest of them.
const LONGEST_KEYWORD: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for good in ["mm", "linalg::mm", "a::b::c_1"] {
            assert!(check(good).is_ok(), "{good}");
        }
        let bad = [
            ("", 0..0),
            ("linalg:mm", 0..9),
            ("linalg::", 7..8),
            ("::mm", 0..1),
            ("linalg.mm", 0..9),
            ("a::mm::<f32>", 7..12),
            ("a::mm (x)", 3..9),
            ("crate::mm", 0..5),
            ("a::type", 3..7),
            ("a::gen", 3..6),
            ("a::_", 3..4),
        ];
        for (text, range) in bad {
            let found = check(text).err().map(|problem| problem.range);
            assert_eq!(found, Some(range), "{text}");
        }
    }

    #[test]
    fn keywords_are_those_of_the_parser() {
        assert_eq!(KEYWORDS.split(' ').map(str::len).max(), Some(LONGEST_KEYWORD));
        for word in KEYWORDS.split(' ') {
            assert!(word == "gen" || syn::parse_str::<syn::Ident>(word).is_err(), "{word}");
            assert!(!is_identifier(word), "{word}");
        }
        for word in ["a", "_a", "A1", "union", "auto", "default", "raw", "macro_rules", "é", "safe"] {
            assert!(is_identifier(word) && syn::parse_str::<syn::Ident>(word).is_ok(), "{word}");
        }
        for word in ["", "_", "1a", "a-b", "a b", "r#a", "a.b", "€"] {
            assert!(!is_identifier(word), "{word}");
        }
    }
}
