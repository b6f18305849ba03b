//! Expressions and formulas in a spec: the names in their text.
//!
//! In: a text. Out: the names with their surroundings. The text is split into words and not parsed, because it is no
//! expression while it is typed.

use std::ops::Range;

use opsmith_codegen::analysis::flops;
use opsmith_codegen::expr::check::{self, Mode};
use opsmith_codegen::model::Op;

use super::cursor::Cursor;

/// Whether expressions of a kind call operators.
pub(super) fn calls_operators(mode: Mode) -> bool {
    matches!(mode, Mode::Derivative | Mode::Forward | Mode::Decompose)
}

/// Whether expressions of a kind call scalar functions alone.
pub(super) fn calls_functions(mode: Mode) -> bool {
    mode.is_elementwise()
}

/// The names besides arguments that expressions of a kind may read: results, gradients, tangents.
pub(super) fn further_names(mode: Mode, op: &Op) -> Vec<String> {
    let mut names = check::names(mode, &op.args, &op.outputs);
    match mode {
        Mode::Operations => names.extend(flops::results(op).map(|(_, name, _)| name)),
        Mode::Shape | Mode::DType => {
            names.extend(op.outputs.iter().filter_map(|output| output.name.clone()));
        }
        _ => {}
    }
    names.retain(|name| op.arg_index(name).is_none());
    names
}

/// The braces around a word of a formula.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct BracesAround {
    /// Whether one opens before it.
    pub open: bool,
    /// Whether one closes behind it.
    pub close: bool,
    /// Whether the one before it follows `_` or `^`, and so may begin a group.
    pub may_group: bool,
    /// Whether the word stands between quotes, where formulas have plain words.
    pub in_words: bool,
}

/// The braces around the word at a position.
pub(super) fn braces_around(cursor: &Cursor<'_>) -> BracesAround {
    let word = cursor.word();
    let start = cursor.range.start.min(word.start);
    let before = cursor.text[start..word.start].trim_end();
    let group = before.strip_suffix('{').map(str::trim_end);
    BracesAround {
        open: group.is_some(),
        close: cursor.text[word.end..].trim_start().starts_with('}'),
        may_group: group.is_some_and(|before| before.ends_with(['_', '^'])),
        in_words: in_words(&cursor.text[..start], &cursor.text[start..word.start]),
    }
}

/// Whether a scalar of YAML, written so far, has an open quote of its text; `before` is all in front of it.
fn in_words(before: &str, written: &str) -> bool {
    // In brackets, the quote that opens is in front.
    let is_escaped = before.ends_with('"') || written.starts_with('"') && !before.ends_with('\'');
    let is_block = written.starts_with('|');
    let written = if is_escaped { written.strip_prefix('"').unwrap_or(written) } else { written };
    let (mut open, mut escaped) = (false, false);
    for letter in written.chars() {
        match (letter, escaped) {
            ('"', true) => open = !open,
            ('"', false) => open = !open && !is_escaped,
            ('n', true) => open = false,
            ('\n', false) if is_block => open = false,
            _ => {}
        }
        escaped = is_escaped && letter == '\\' && !escaped;
    }
    open
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

    #[test]
    fn braces_are_found_in_every_style() {
        for (value, expected) in [
            ("y = {se^lf}_i", "open close"),
            ("y = {se^", "open"),
            ("y = { self^ }", "open close"),
            ("y_{^", "open may_group"),
            ("y_{^i}", "open close may_group"),
            ("y = se^lf", ""),
            ("y = \"a {se^lf}\"", "open close in_words"),
            ("y = \"a\" {se^lf}", "open close"),
            ("\"y = \\\"a {se^lf}\\\"\"", "open close in_words"),
            ("\"y = \\\"a\\\" {se^lf}\"", "open close"),
            ("\"{se^lf}\"", "open close"),
            ("'y = \"a {se^lf}\"'", "open close in_words"),
            ("'\"a\" {se^lf}'", "open close"),
            ("|\n    y = \"a\n    y = {se^lf}", "open close"),
            ("|-\n    y = \"a\" + {se^lf}", "open close"),
            (">\n    y = \"a\n    b {se^lf}\"", "open close in_words"),
        ] {
            for (head, tail) in
                [("ops:\n- func: f(Tensor self)\n  formula: ", ""), ("ops:\n- {formula: ", "}")]
            {
                if value.starts_with(['|', '>', 'y']) && !tail.is_empty() {
                    continue;
                }
                let marked = format!("{head}{value}{tail}");
                let text = marked.replacen('^', "", 1);
                let around = braces_around(&Cursor::at(&text, marked.find('^').expect("a mark")));
                let facts = [
                    (around.open, "open"),
                    (around.close, "close"),
                    (around.may_group, "may_group"),
                    (around.in_words, "in_words"),
                ];
                let found: Vec<&str> =
                    facts.into_iter().filter(|(holds, _)| *holds).map(|(_, name)| name).collect();
                assert_eq!(found.join(" "), expected, "{marked}");
            }
        }
    }
}
