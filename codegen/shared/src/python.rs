//! Names in Python.
//!
//! In: a name of a spec. Out: one that Python takes. Stubs, documents and the module itself have it from here.

/// Words that Python reserves, which arguments and functions cannot have as names.
const RESERVED: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// A name as Python can have it: a reserved word gets an underscore. So does each name that is one with underscores behind it, so
/// that `lambda_`, the in-place form of `lambda`, has a name of its own.
pub fn python_name(name: &str) -> String {
    match RESERVED.contains(&name.trim_end_matches('_')) {
        true => format!("{name}_"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_language_get_an_underscore_and_stay_apart() {
        assert_eq!(
            ["lambda", "lambda_", "print", "islands"].map(python_name),
            ["lambda_", "lambda__", "print", "islands"]
        );
    }
}
