//! Colours of code in pages: comments, strings, numbers, keywords, calls and types as elements with classes.
//!
//! In: code, and the language that a block of Markdown names. Out: HTML, escaped. A language without a row in [`LANGUAGES`]
//! is escaped alone. The scanner knows tokens, not grammar.

use super::html::escape_into;

/// The tokens of a language.
struct Language {
    /// Its names in blocks of Markdown.
    names: &'static [&'static str],
    /// The starts of comments that end with the line.
    comments: &'static [&'static str],
    /// Whether `/* … */` is a comment.
    block_comments: bool,
    /// The characters that open and close strings.
    quotes: &'static str,
    /// Its keywords, separated by spaces.
    keywords: &'static str,
    /// Whether a word before a colon is a key.
    keys: bool,
    /// Whether words with a capital are types and words before a bracket are calls.
    calls: bool,
}

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust"],
        comments: &["//"],
        block_comments: true,
        quotes: "\"",
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop \
                   match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
        keys: false,
        calls: true,
    },
    Language {
        names: &["c", "cpp", "c++", "cuda"],
        comments: &["//"],
        block_comments: true,
        quotes: "\"'",
        keywords: "auto bool break case char class const constexpr continue default double else extern false float for \
                   if include inline int int64_t long namespace nullptr return size_t static struct switch template \
                   this true typename unsigned using void while __global__ __device__",
        keys: false,
        calls: true,
    },
    Language {
        names: &["python"],
        comments: &["#"],
        block_comments: false,
        quotes: "\"'",
        keywords: "and as assert class def del elif else except False finally for from if import in is lambda None not \
                   or pass raise return True try while with yield",
        keys: false,
        calls: true,
    },
    Language {
        names: &["yaml", "toml", "json"],
        comments: &["#"],
        block_comments: false,
        quotes: "\"'",
        keywords: "true false null",
        keys: true,
        calls: false,
    },
    Language {
        names: &["sh", "bash", "shell"],
        comments: &["#"],
        block_comments: false,
        quotes: "\"'",
        keywords: "cd do done else export fi for if in then while",
        keys: false,
        calls: false,
    },
];

/// Code as HTML, with colours if the language is known.
pub fn highlight(code: &str, language: &str) -> String {
    let mut out = String::with_capacity(code.len() * 2);
    match LANGUAGES.iter().find(|row| row.names.contains(&language)) {
        Some(language) => Scanner { code, place: 0, language, out: &mut out }.run(),
        None => escape_into(&mut out, code),
    }
    out
}

/// A position in code.
struct Scanner<'a> {
    code: &'a str,
    place: usize,
    language: &'a Language,
    out: &'a mut String,
}

impl Scanner<'_> {
    fn run(&mut self) {
        while let Some(first) = self.rest().chars().next() {
            let (class, length) = self.token(first);
            let text = &self.code[self.place..self.place + length];
            match class {
                "" => escape_into(self.out, text),
                class => {
                    self.out.push_str(&format!("<span class=\"{class}\">"));
                    escape_into(self.out, text);
                    self.out.push_str("</span>");
                }
            }
            self.place += length;
        }
    }

    fn rest(&self) -> &str {
        &self.code[self.place..]
    }

    /// The class of the token at the place, and its length in bytes, at least that of its first character.
    fn token(&self, first: char) -> (&'static str, usize) {
        let rest = self.rest();
        if self.starts_comment() {
            return ("hc", rest.find('\n').unwrap_or(rest.len()));
        }
        if self.language.block_comments && rest.starts_with("/*") {
            return ("hc", rest.find("*/").map_or(rest.len(), |end| end + 2));
        }
        if self.language.quotes.contains(first) {
            return ("hs", quoted(rest, first));
        }
        if first.is_ascii_digit() {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
            return ("hn", length.unwrap_or(rest.len()));
        }
        if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            return (self.word(&rest[..length], &rest[length..]), length);
        }
        ("", first.len_utf8())
    }

    /// A comment of a shell or of YAML begins a line or follows a space.
    fn starts_comment(&self) -> bool {
        let before = self.code[..self.place].chars().next_back();
        self.language.comments.iter().any(|start| {
            self.rest().starts_with(start) && (*start != "#" || before.is_none_or(char::is_whitespace))
        })
    }

    fn word(&self, word: &str, after: &str) -> &'static str {
        let language = self.language;
        if language.keys && after.trim_start_matches([' ', '"']).starts_with(':') {
            return "hk";
        }
        if language.keywords.split_whitespace().any(|keyword| keyword == word) {
            return "hk";
        }
        if !language.calls {
            return "";
        }
        match word.starts_with(char::is_uppercase) {
            true => "ht",
            false if after.starts_with(['(', '!']) && !after.starts_with("!=") => "hf",
            false => "",
        }
    }
}

/// The length of a string with its quotes; it ends with the line if nothing closes it.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (place, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return place,
            letter if letter == quote => return place + letter.len_utf8(),
            _ => {}
        }
    }
    text.len()
}
