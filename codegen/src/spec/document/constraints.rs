//! The words of the key `attributes`, and words of other systems with the same meaning.
//!
//! In: nothing. Out: tables for checks, the JSON schema and advice.

/// The constraints of `attributes`.
pub const CONSTRAINTS: [&str; 9] =
    ["min", "max", "above", "below", "one_of", "multiple_of", "enum", "len", "min_len"];

/// Names of constraints in other systems, for "did you mean".
pub const CONSTRAINT_SYNONYMS: &[(&str, &str)] = &[
    ("minimum", "min"),
    ("at_least", "min"),
    ("ge", "min"),
    ("maximum", "max"),
    ("at_most", "max"),
    ("le", "max"),
    ("gt", "above"),
    ("exclusive_min", "above"),
    ("lt", "below"),
    ("exclusive_max", "below"),
    ("choices", "one_of"),
    ("in", "one_of"),
    ("values", "one_of"),
    ("length", "len"),
    ("size", "len"),
    ("names", "enum"),
    ("named", "enum"),
];

/// The constraint with the meaning of a word.
pub fn constraint_synonym(word: &str) -> Option<&'static str> {
    CONSTRAINT_SYNONYMS.iter().find(|(other, _)| *other == word).map(|(_, meant)| *meant)
}
