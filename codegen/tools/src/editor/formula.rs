//! Formulas in a spec: which keys have them, and the names in their text.
//!
//! In: the keys that lead to a value, or its text. Out: the kind of expression, and the names with their surroundings. The
//! text is split into words and not parsed, because it is no expression while it is typed.

use std::ops::Range;

use opsmith_codegen::expr::check::Mode;

/// The kind of expression under a key of an entry; `None` if its values are no expressions.
pub(super) fn mode(list: &str, keys: &[&str]) -> Option<Mode> {
    let mode = match (list, *keys.first()?) {
        ("ops", "shape" | "run_shape" | "run_sizes" | "length") => Mode::Shape,
        ("ops", "dtype" | "compute") => Mode::DType,
        ("ops", "check" | "present") => Mode::Check,
        ("ops", "pointwise") => Mode::Pointwise,
        ("ops", "derivatives") => Mode::Derivative,
        ("ops", "forward") => Mode::Forward,
        ("ops", "decompose") => Mode::Decompose,
        ("functions", "derivative" | "wirtinger") => Mode::FunctionDerivative,
        _ => return None,
    };
    Some(mode)
}

/// Whether expressions of a kind call operators.
pub(super) fn calls_operators(mode: Mode) -> bool {
    matches!(mode, Mode::Derivative | Mode::Forward | Mode::Decompose)
}

/// Whether expressions of a kind call scalar functions alone.
pub(super) fn calls_functions(mode: Mode) -> bool {
    mode.is_elementwise()
}

/// A name in a formula.
#[derive(Clone, Debug)]
pub(super) struct Name {
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// Whether it follows a point: `x.name`.
    pub after_point: bool,
    /// Whether it is part of a path: `a::name`.
    pub in_path: bool,
    /// Whether brackets with arguments follow.
    pub is_called: bool,
    /// Whether it names an argument of a call: `f(x, name = 1)`.
    pub names_argument: bool,
    /// Whether `let` binds it.
    pub is_bound: bool,
}

/// The names of a text, without those in strings and comments.
pub(super) fn names(text: &str) -> Vec<Name> {
    let mut names = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        if letter == '"' {
            at += 1 + string_length(&rest[1..]);
        } else if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if letter.is_alphabetic() || letter == '_' {
            let end = at + rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
            names.push(name(text, at..end));
            at = end;
        } else if letter.is_ascii_digit() {
            // `1e5` has no name in it.
            at += rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
        } else {
            at += letter.len_utf8();
        }
    }
    names
}

/// The name at some bytes of a text.
pub(super) fn name(text: &str, range: Range<usize>) -> Name {
    let before = text[..range.start].trim_end();
    let after = text[range.end..].trim_start();
    let assigns = after.starts_with('=') && !after.starts_with("==");
    Name {
        after_point: before.ends_with('.'),
        in_path: before.ends_with("::") || after.starts_with("::"),
        is_called: after.starts_with('('),
        names_argument: assigns && before.ends_with([',', '(']),
        is_bound: before.ends_with("let") && !before[..before.len() - 3].ends_with(is_part),
        range,
    }
}

fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The length of a string after its opening quote, with the closing one.
fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_surroundings() {
        let text = "let a = f(x.size(0), dim = b::c(1e5), \"d\"); // e\na == y";
        let words: Vec<&str> = names(text).iter().map(|name| &text[name.range.clone()]).collect();
        assert_eq!(words, ["let", "a", "f", "x", "size", "dim", "b", "c", "a", "y"]);
        let of = |word: &str| names(text).into_iter().find(|name| &text[name.range.clone()] == word).unwrap();
        assert!(of("a").is_bound && !of("a").names_argument);
        assert!(of("f").is_called && !of("f").after_point);
        assert!(of("size").after_point && of("size").is_called);
        assert!(of("dim").names_argument);
        assert!(of("b").in_path && of("c").in_path);
    }
}
