//! Text as HTML: escapes, identifiers of headings, names of files.
//!
//! In: text of specs, which may be made to harm. Out: text that no browser takes for markup.

use std::collections::{BTreeMap, BTreeSet};

/// Text with the five characters escaped that HTML gives a meaning.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape_into(&mut out, text);
    out
}

/// As [`escape`], at the end of a text.
pub fn escape_into(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Neither XML nor a terminal has a use for other control characters.
            letter if letter.is_control() && !matches!(letter, '\n' | '\t') => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
}

/// The identifier of a heading, as GitHub makes it: small letters, digits, hyphens.
pub fn anchor(text: &str) -> String {
    let kept = text.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    let anchor: String = kept.flat_map(char::to_lowercase).collect();
    if anchor.is_empty() { "section".to_owned() } else { anchor }
}

/// Identifiers of one page, each once.
#[derive(Default)]
pub struct Anchors(BTreeMap<String, usize>);

impl Anchors {
    /// The identifier of another heading: with a number if there is one of that text.
    pub fn add(&mut self, text: &str) -> String {
        let anchor = anchor(text);
        let count = self.0.entry(anchor.clone()).or_default();
        *count += 1;
        if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
    }
}

/// Names of files for names of operators or families, each once even where a file system ignores the case.
#[derive(Default)]
pub struct FileNames(BTreeSet<String>);

/// Names that Windows reserves for devices, whatever follows a dot.
const RESERVED: &[&str] = &["con", "prn", "aux", "nul"];

impl FileNames {
    /// The name of a file, without an ending: letters, digits, `.`, `_` and `-` of the name.
    pub fn add(&mut self, name: &str) -> String {
        let is_kept = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-');
        let mut file: String =
            name.chars().map(|letter| if is_kept(letter) { letter } else { '-' }).collect();
        let stem = file.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let is_port = stem.len() == 4 && (stem.starts_with("com") || stem.starts_with("lpt"));
        if RESERVED.contains(&stem.as_str()) || is_port || file.starts_with('.') || file.is_empty() {
            file.insert(0, '-');
        }
        let mut number = 1;
        let mut unique = file.clone();
        while !self.0.insert(unique.to_lowercase()) {
            number += 1;
            unique = format!("{file}-{number}");
        }
        unique
    }
}
