//! Paths of Rust functions, as a spec writes them: `linalg::mm`.

use std::ops::Range;

/// What is wrong with a path.
pub struct Problem {
    /// The bytes of the text to change.
    pub range: Range<usize>,
    /// What is there.
    pub label: &'static str,
}

/// Checks that a text is names separated by `::`, which the generated code puts behind a crate's path.
///
/// # Errors
/// The first thing that does not belong there.
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

/// Whether a text is an identifier of Rust and no keyword of it.
pub fn is_identifier(text: &str) -> bool {
    // `gen` is a keyword since edition 2024.
    text != "gen" && text != "_" && syn::parse_str::<syn::Ident>(text).is_ok_and(|ident| ident == text)
}

/// A range that a caret can stand under: nothing is shown at the character before it.
fn non_empty(range: Range<usize>, text: &str) -> Range<usize> {
    match range.is_empty() {
        true => range.start.saturating_sub(1)..range.end.max(1).min(text.len()),
        false => range,
    }
}

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
}
