//! The functions of a file in Rust, found in its text.
//!
//! In: text. Out: the line of each public declaration, and of each name among the arguments of macros that are called outside
//! of other items. Comments and strings are no code. Must not know kernels.

use std::collections::HashMap;

/// The functions of a file, each with its line, from 0.
#[derive(Default)]
pub(super) struct Functions {
    /// Of public declarations; of several of one name, the first.
    pub declared: HashMap<String, usize>,
    /// Of names that macros may make functions of.
    pub made: HashMap<String, usize>,
}

impl Functions {
    pub fn of(text: &str) -> Functions {
        let code = code_of(text);
        let mut functions = Functions::default();
        for (number, line) in code.lines().enumerate() {
            if let Some(name) = declared_function(line) {
                functions.declared.entry(name.to_owned()).or_insert(number);
            }
        }
        let (mut number, mut depth) = (0, 0_usize);
        // The depth outside of the macro call that goes on.
        let mut call: Option<usize> = None;
        let mut at = 0;
        while let Some(first) = code[at..].chars().next() {
            let rest = &code[at..];
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            match first {
                '\n' => number += 1,
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => {
                    depth = depth.saturating_sub(1);
                    call = call.filter(|outside| *outside < depth);
                }
                c if is_part(c) && call.is_some() => {
                    functions.made.entry(rest[..length].to_owned()).or_insert(number);
                }
                c if is_part(c) && depth == 0 && calls_macro(&code[..at], &rest[length..]) => call = Some(0),
                _ => {}
            }
            at += length.max(first.len_utf8());
        }
        functions
    }
}

/// Whether a word between two texts is the name of a macro that is called in a line of its own: `name!(`, `path::name! {`.
fn calls_macro(before: &str, after: &str) -> bool {
    let Some(after) = after.strip_prefix('!') else { return false };
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    after.trim_start().starts_with(['(', '[', '{']) && line.chars().all(|c| is_part(c) || c == ':')
}

/// The function that a line declares to others.
fn declared_function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (_, rest) = line.split_once("fn ").filter(|_| line.starts_with("pub"))?;
    let end = rest.find(|c: char| !is_part(c))?;
    rest[end..].starts_with(['(', '<']).then(|| &rest[..end])
}

/// The documentation of the function that a line declares, from 1, and the names of its parameters.
pub(super) fn documentation(text: &str, line: usize) -> Option<(String, Vec<String>)> {
    let start = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let (above, code) = text.split_at(start);
    declared_function(code.lines().next()?)?;
    let is_above = |line: &&str| line.trim_start().starts_with("///") || line.trim_start().starts_with("#[");
    let mut lines: Vec<&str> = above.lines().rev().take_while(is_above).collect();
    lines.reverse();
    let lines = lines.into_iter().filter_map(|line| line.trim_start().strip_prefix("///"));
    let lines: Vec<&str> = lines.map(str::trim).collect();
    let (_, parameters) = code.split_once('(')?;
    let mut depth = 0_usize;
    let end = parameters.find(|c| {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' if depth == 0 => return true,
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    })?;
    let mut depth = 0_usize;
    let parts = parameters[..end].split(|c| {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    let names = parts.filter_map(|part| part.split_once(':')).map(|(name, _)| name.trim());
    Some((lines.join("\n"), names.map(|name| name.trim_matches('_').to_owned()).collect()))
}

/// Whether a character is one of a name.
pub(super) fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text with blanks for comments, strings and characters; lines stay.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if is_part(first) { 0 } else { skipped_length(rest) };
        if length > 0 {
            let skipped = &rest[..length];
            code.extend(skipped.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            at += length;
        } else if is_part(first) {
            let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
            code.push_str(word);
            at += word.len();
            if matches!(word, "r" | "br" | "cr") {
                let raw = raw_length(&text[at..]);
                code.extend(text[at..at + raw].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
                at += raw;
            }
        } else {
            code.push(first);
            at += first.len_utf8();
        }
    }
    code
}

/// The length of a comment, string or character at the begin of a text, or 0.
fn skipped_length(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return comment_length(rest);
    }
    let mut letters = rest.char_indices().skip(1);
    match rest.chars().next() {
        Some('"') => {
            let mut escaped = false;
            let end = letters.find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |(at, _)| at + 1)
        }
        // A character, or the name of a lifetime.
        Some('\'') => match (letters.next(), letters.next()) {
            (Some((_, '\\')), Some((after, c))) => {
                let from = after + c.len_utf8();
                rest[from..].find('\'').map_or(0, |end| from + end + 1)
            }
            (Some(_), Some((at, '\''))) => at + 1,
            _ => 0,
        },
        _ => 0,
    }
}

/// The length of a block comment, in which others may stand.
fn comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of a raw string behind its `r`, or 0.
fn raw_length(rest: &str) -> usize {
    let marks = rest.len() - rest.trim_start_matches('#').len();
    if !rest[marks..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", &rest[..marks]);
    let content = marks + 1;
    rest[content..].find(&close).map_or(rest.len(), |at| content + at + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `f`, from 1: of its declaration and of a macro call that may make it.
    fn lines(text: &str) -> (Option<usize>, Option<usize>) {
        let functions = Functions::of(text);
        let line = |found: &HashMap<String, usize>| found.get("f").map(|line| line + 1);
        (line(&functions.declared), line(&functions.made))
    }

    #[test]
    fn functions_are_declared() {
        for (text, line) in [
            ("fn f() {}\npub fn f() {}", Some(2)),
            ("pub(crate) unsafe fn f<T>() {}", Some(1)),
            ("mod m {\n    pub const fn f() {}\n}", Some(2)),
            ("// pub fn f() {}\n/* /* */\npub fn f() {}\n*/\npub fn f() {}", Some(5)),
            ("const A: &str = \"\npub fn f() {}\n\\\"\npub fn f() {}\";", None),
            ("const A: &str = r##\"\npub fn f() {}\"#\npub fn f() {}\n\"##;\npub fn f() {}", Some(5)),
            ("const A: char = '\"'; const B: u8 = b'\\'';\npub fn f<'a>(x: &'a str) {}", Some(2)),
            ("pub fn f_() {}\npub fn g(f: u8) {}", None),
        ] {
            assert_eq!(lines(text), (line, None), "{text}");
        }
    }

    #[test]
    fn macros_make_functions() {
        for (text, line) in [
            ("kernels!(g, f);", Some(1)),
            ("kernels! {\n    g => 1;\n    f => {\n    }\n}\n", Some(3)),
            ("crate::of::kernels![\n    f\n];", Some(2)),
            ("#[cfg(unix)]\nkernels!(a(b), {c}, f);", Some(2)),
            ("kernels!(g);\nof!(h);\nkernels!(\n    // f\n    f\n);", Some(5)),
            ("macro_rules! kernels {\n    ($f:ident) => { f!(f) };\n}", None),
            ("kernels!(g);\nfn g() { f() }", None),
            ("#![allow(f)]\nfn g(x: bool) -> ! {\n    f(!x);\nof!(f);\n}", None),
            ("// see kernels!(f)\nfn g() {}", None),
            ("//! see kernels!\n//! (f)", None),
            ("const A: &str = \"\nkernels!(f)\n\";", None),
            ("const A: bool = g != (f);\nconst B: u8 = size!(f);", None),
            ("kernels!(\"f\", 'f', fx);", None),
            ("kernels!", None),
            ("kernels!(", None),
        ] {
            assert_eq!(lines(text), (None, line), "{text}");
        }
    }

    #[test]
    fn every_part_of_a_text_is_read() {
        let text = "/* ä /* */ ö */ 'ß' '\\u{e9}' b'\\'' 'é é!(r#\"ü\"# é, \"\\ñ\") // ï\npub fn é<'é>()}])a::é! {r\"";
        let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for start in &bounds {
            for end in bounds.iter().filter(|end| *end >= start) {
                _ = Functions::of(&text[*start..*end]);
            }
        }
    }
}
