//! Whether a text from a profile is the value of an attribute.

use opsmith_core::DType;

/// Names in the values of attributes that a profiler writes.
const NAMES: [&str; 23] = [
    "Value",
    "Bool",
    "Int",
    "Float",
    "Scalar",
    "Str",
    "Ints",
    "Floats",
    "Bools",
    "Scalars",
    "DType",
    "Device",
    "Complex",
    "Complex64",
    "CPU",
    "new",
    "vec",
    "to_owned",
    "true",
    "false",
    "f64",
    "NAN",
    "INFINITY",
];

/// Whether a text is a value as a profiler writes it: a file may be another's, and its texts become a program.
pub(super) fn is_value(text: &str) -> bool {
    let is_name = |word: &str| {
        NAMES.contains(&word)
            || word == "NEG_INFINITY"
            || DType::ALL.iter().any(|dtype| dtype.ident() == word)
            || word.starts_with(|first: char| first.is_ascii_digit())
    };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => {
                let mut escaped = false;
                let end = rest.char_indices().skip(1).find(|(_, letter)| {
                    let ends = *letter == '"' && !escaped;
                    escaped = *letter == '\\' && !escaped;
                    ends
                });
                let Some((end, _)) = end else { return false };
                end + 1
            }
            '(' | ')' | '[' | ']' | ',' | ':' | '.' | '!' | '-' | ' ' => 1,
            letter if letter == '_' || letter.is_ascii_alphanumeric() => {
                let is_part = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
                let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
                if !is_name(&rest[..end]) {
                    return false;
                }
                end
            }
            _ => return false,
        };
        rest = &rest[length..];
    }
    true
}
