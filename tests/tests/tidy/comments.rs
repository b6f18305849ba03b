//! Comments of Rust sources: a thing is named by its noun.

use super::assert_none;
use super::sizes::written;

/// Words behind a "what" that stands in place of a noun.
const NEXT: [&str; 9] = ["is", "it", "a", "an", "the", "they", "of", "has", "was"];

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    Some(line.trim_start().strip_prefix("//")?.trim_start_matches(['/', '!']))
}

/// Whether a sentence of a comment begins with "What", or a clause has the word in place of a noun.
fn has_relative_what(comment: &str) -> bool {
    let words: Vec<&str> = comment.split_whitespace().map(|word| word.trim_start_matches('(')).collect();
    let is_clause = |pair: &[&str]| {
        let next = pair[1].trim_end_matches(|c: char| !c.is_alphanumeric());
        pair[0].eq_ignore_ascii_case("what") && NEXT.iter().any(|word| next.eq_ignore_ascii_case(word))
    };
    words.contains(&"What") || words.windows(2).any(is_clause)
}

#[test]
fn comments_name_things_by_nouns() {
    let mut offenders = Vec::new();
    for (file, text) in written() {
        for (number, line) in text.lines().enumerate() {
            if comment(line).is_some_and(has_relative_what) {
                offenders.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert_none(offenders, "a comment has \"what\" where a noun exists; name the thing with a noun");
}

#[test]
fn the_search_for_a_relative_what_finds_it() {
    let found = |line: &str| comment(line).is_some_and(has_relative_what);
    for offender in ["/// What emitters read.", "    // In: what the spec has.", "//! Sizes (what they are)."]
    {
        assert!(found(offender), "{offender}");
    }
    for fine in ["/// The size.", "/// `what` is a name.", "// Whatever it is.", "let a = 1; // what it is"] {
        assert!(!found(fine), "{fine}");
    }
}
