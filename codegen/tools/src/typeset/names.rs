//! Names in formulas: Greek letters, subscripts, upright words.
//!
//! In: a name of the spec. Out: its formula. A name of one letter is slanted, a word upright, as MathML has both by default.

use super::mathml::{Level, Math, escape, subscript};

/// Names of letters, and the letters.
const GREEK: &[(&str, &str)] = &[
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("eps", "ε"),
    ("epsilon", "ε"),
    ("eta", "η"),
    ("theta", "θ"),
    ("lambd", "λ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("omega", "ω"),
];

/// The name of an argument, a result or a binding: `x`, `x_1`, `x1`, `alpha`, `grad_output`.
pub(super) fn name(text: &str) -> Math {
    match split(text) {
        Some((base, index)) => subscript(letter(base), Math::atom(part(index))),
        None => letter(text),
    }
}

/// A name that is a letter followed by a subscript, or a word followed by a number.
fn split(text: &str) -> Option<(&str, &str)> {
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (base, index) = match text.rsplit_once('_') {
        Some((base, index)) if !index.is_empty() => (base, index),
        _ if digits > 0 => text.split_at(text.len() - digits),
        _ => return None,
    };
    let is_number = index.chars().all(|c| c.is_ascii_digit());
    let is_letter = base.chars().count() == 1 || GREEK.iter().any(|(name, _)| *name == base);
    let is_name = !base.is_empty() && base.chars().next().is_some_and(char::is_alphabetic);
    (is_name && (is_number || is_letter) && !base.ends_with('_')).then_some((base, index))
}

fn letter(text: &str) -> Math {
    let math = Math::atom(part(text));
    if glyph(text).chars().count() == 1 { math.compact() } else { math }
}

fn glyph(text: &str) -> &str {
    GREEK.iter().find(|(name, _)| *name == text).map_or(text, |(_, letter)| letter)
}

fn part(text: &str) -> String {
    match text.chars().all(|c| c.is_ascii_digit()) && !text.is_empty() {
        true => format!("<mn>{text}</mn>"),
        false => format!("<mi>{}</mi>", escape(glyph(text))),
    }
}

/// A name that is upright, whatever its length: of a function, or a mark.
pub(super) fn upright(text: &str) -> Math {
    let mark = if text.chars().count() == 1 { " mathvariant=\"normal\"" } else { "" };
    Math::new(format!("<mi{mark}>{}</mi>", escape(text)), Level::Atom)
}

/// The name of a function: `log2` has its number as a subscript.
pub(super) fn function(text: &str) -> Math {
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (base, index) = text.split_at(text.len() - digits);
    match digits > 0 && !base.is_empty() && !base.ends_with('_') {
        true => subscript(upright(base), Math::atom(format!("<mn>{index}</mn>"))),
        false => upright(text),
    }
}
