//! Names between braces, in the texts of the keys `formula` and `notation`.
//!
//! In: text. Out: the parts between braces, and the ranges of names that stand there alone. Must not know signatures:
//! a formula also groups with braces, `_{i}`, and only a signature tells the two apart.

use std::ops::Range;

/// The text from the begin of `rest`, which follows a brace, to the first brace that closes.
///
/// `inside("self}^T")` is `self`.
pub fn inside(rest: &str) -> Option<&str> {
    rest.split_once('}').map(|(inside, _)| inside)
}

/// The bytes of every name that stands alone between braces: of `{self}_{i, {n}}` those of `self` and `n`. Where words stand
/// in quotes, as in formulas, these have no names.
pub fn names(text: &str, has_words: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut in_words = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if has_words => in_words = !in_words,
            '{' if !in_words => found.extend(name(text, at + 1)),
            _ => {}
        }
    }
    found
}

/// The name alone between a brace that ends at `start` and the next that closes.
fn name(text: &str, start: usize) -> Option<Range<usize>> {
    let part = inside(&text[start..])?;
    let name = part.trim();
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let begin = start + part.len() - part.trim_start().len();
    (!name.is_empty() && name.chars().all(is_name)).then(|| begin..begin + name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_alone() {
        let of = |text: &'static str, has_words| -> Vec<&str> {
            names(text, has_words).into_iter().map(|range| &text[range]).collect()
        };
        assert_eq!(of("y_i = exp({self}_i) / Σ_j exp({ other }_{j})", true), ["self", "other", "j"]);
        assert_eq!(of("x_{i, {n}}^{{p} − 1} {a b} {} {x", true), ["n", "p"]);
        assert_eq!(of("y = \"all of {self}\" {self}", true), ["self"]);
        assert_eq!(of("\" {self}", false), ["self"]);
    }
}
