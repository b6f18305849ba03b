//! The place of a position in a spec: the keys that lead to it, and whether it is in a key or a value.
//!
//! In: text and an offset. Out: a [`Cursor`]. It is found by indentation alone, because a spec is no YAML while it is
//! typed. Must not know which keys exist.

use std::ops::Range;

use super::flow;
use super::lines::{Line, lines};

/// The part of a spec at a position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CursorPart {
    /// A key with its colon.
    Key,
    /// A word that may become a key, or an item of a list.
    Word,
    /// A value.
    Value,
}

/// A position in a text, with the keys around it.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The position, in bytes.
    pub offset: usize,
    /// The keys that lead to it, from the top of the file: `ops`, `derivatives`, `self`. That under the position is not
    /// among them.
    pub path: Vec<&'a str>,
    /// The part it is in.
    pub slot: CursorPart,
    /// The bytes of that key, word or value; of a value, up to its last line.
    pub range: Range<usize>,
    /// The entry of a list of the file that it is in.
    pub entry: Option<EntryText<'a>>,
}

/// The text of an entry of `ops:`, `functions:` or `declarations:`.
#[derive(Clone, Debug)]
pub struct EntryText<'a> {
    /// Its bytes.
    pub range: Range<usize>,
    /// Its keys.
    pub keys: Vec<&'a str>,
    /// Its signature, in one line, and the bytes in which it is written.
    pub func: Option<(String, Range<usize>)>,
}

impl<'a> Cursor<'a> {
    /// The place of an offset.
    pub fn at(text: &'a str, offset: usize) -> Cursor<'a> {
        let offset = text.floor_char_boundary(offset);
        let lines = lines(text);
        let number = lines.partition_point(|line| line.start <= offset).saturating_sub(1);
        let parents = parents(&lines, number, offset);
        let entry = parents.item.map(|first| EntryText::new(text, &lines, first));
        // The innermost line may be in the middle of a value that began above.
        let outer = parents.keys.iter().position(|&parent| lines[parent].value_goes_on(text));
        let keys = &parents.keys[..outer.map_or(parents.keys.len(), |outer| outer + 1)];
        let mut path: Vec<&str> = keys.iter().filter_map(|&parent| key_text(text, &lines[parent])).collect();
        let line = &lines[number];
        let (slot, range) = match (&line.key, outer) {
            (_, Some(outer)) => (CursorPart::Value, value_range(&lines, parents.keys[outer])),
            (Some((key, value)), None) => {
                let colon = key.end + text[key.end..*value].find(':').unwrap_or(0);
                if offset <= colon {
                    (CursorPart::Key, key.clone())
                } else {
                    path.extend(key_text(text, line));
                    (CursorPart::Value, value_range(&lines, number))
                }
            }
            (None, None) => {
                let start = (line.start + line.column).min(line.end);
                match text[start..line.end].starts_with(['{', '[', '"', '\'']) {
                    true => (CursorPart::Value, start..line.end),
                    false => (CursorPart::Word, start..line.end),
                }
            }
        };
        let mut cursor = Cursor { text, offset, path, slot, range, entry };
        cursor.enter_brackets();
        cursor
    }

    /// Follows the brackets of a value in flow style to the position.
    fn enter_brackets(&mut self) {
        let value = &self.text[self.range.clone()];
        if self.slot != CursorPart::Value || !value.starts_with(['{', '[']) || self.offset < self.range.start
        {
            return;
        }
        let inner = flow::descend(value, self.offset - self.range.start);
        self.path.extend(inner.path);
        self.slot = inner.slot;
        self.range = self.range.start + inner.range.start..self.range.start + inner.range.end;
    }

    /// The name around the position: letters, digits and underscores.
    pub fn word(&self) -> Range<usize> {
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        let before = self.text[..self.offset].trim_end_matches(is_part).len();
        let after = &self.text[self.offset..];
        before..self.offset + after.len() - after.trim_start_matches(is_part).len()
    }

    /// The part of the name before the position.
    pub fn prefix(&self) -> Range<usize> {
        self.word().start..self.offset
    }

    /// The list of the file with the entry, `ops` or another, and the keys inside the entry.
    pub fn in_entry(&self) -> Option<(&'a str, &[&'a str])> {
        self.entry.as_ref()?;
        self.path.split_first().map(|(list, keys)| (*list, keys))
    }

    /// Whether it is at the name of another file of the spec.
    pub fn is_of_file(&self) -> bool {
        matches!(self.path[..], ["include"] | ["features", _])
    }

    /// Whether it is in an entry of `functions:`.
    pub fn is_function(&self) -> bool {
        self.path.first() == Some(&"functions")
    }

    /// The name of the entry's scalar function.
    pub fn function_name(&self) -> Option<String> {
        let (func, _) = self.entry.as_ref()?.func.as_ref()?;
        Some(func.split('(').next()?.trim().to_owned())
    }
}

impl<'a> EntryText<'a> {
    fn new(text: &'a str, lines: &[Line], first: usize) -> EntryText<'a> {
        let head = &lines[first];
        let dash = head.dash.unwrap_or(0);
        let ends = |line: &Line| !line.blank && (line.dash.unwrap_or(line.column) <= dash);
        let last = lines[first + 1..].iter().position(ends).map_or(lines.len(), |count| first + 1 + count);
        let inside = &lines[first..last];
        let own = |line: &&Line| !line.blank && line.column == head.column;
        let content = &text[head.start + head.column.min(head.end - head.start)..];
        if content.starts_with('{') {
            return EntryText::in_brackets(text, head.start + head.column, head.start + dash);
        }
        let keys = inside.iter().filter(own).filter_map(|line| key_text(text, line)).collect();
        let is_func = |line: &Line| key_text(text, line) == Some("func");
        let func = inside.iter().position(|line| own(&line) && is_func(line)).map(|index| {
            let range = value_range(lines, first + index);
            let words: Vec<&str> = text[range.clone()].split_whitespace().collect();
            (words.join(" ").trim_matches(['"', '\'']).to_owned(), range)
        });
        let end = inside.last().map_or(head.end, |line| line.end);
        EntryText { range: head.start + dash..end, keys, func }
    }

    /// `- {func: exp(x), doc: …}`
    fn in_brackets(text: &'a str, start: usize, first: usize) -> EntryText<'a> {
        // Such entries are short; the next one ends it, should its bracket be missing.
        let length = text[start..].find("\n-").unwrap_or(text.len() - start);
        let entries = flow::entries(&text[start..start + length]);
        let func = entries.iter().find(|(key, _)| *key == "func").map(|(_, value)| {
            let written = &text[start + value.start..start + value.end];
            let blanks = written.len() - written.trim_start_matches([' ', '"', '\'']).len();
            let func = written.trim().trim_matches(['"', '\'']).to_owned();
            let begin = start + value.start + blanks;
            (func.clone(), begin..begin + func.len())
        });
        let keys = entries.into_iter().map(|(key, _)| key).collect();
        EntryText { range: first..start + length, keys, func }
    }
}

/// The lines that lead to a position.
struct Parents {
    /// The lines of the keys around it, outermost first.
    keys: Vec<usize>,
    /// The first line of the outermost list item around it.
    item: Option<usize>,
}

/// The parent that is looked for above a line.
enum Wanted {
    /// The one of a mapping with keys at a column.
    Mapping(usize),
    /// The one of a list with marks at a column.
    List(usize),
}

fn parents(lines: &[Line], number: usize, offset: usize) -> Parents {
    let line = &lines[number];
    let mut found = Parents { keys: Vec::new(), item: None };
    let mut wanted = match line.dash {
        Some(dash) if offset > line.start + dash => {
            found.item = Some(number);
            Wanted::List(dash)
        }
        _ if line.blank => Wanted::Mapping(offset - line.start),
        _ => Wanted::Mapping(line.column),
    };
    for (above, line) in lines[..number].iter().enumerate().rev().filter(|(_, line)| !line.blank) {
        let is_parent = match wanted {
            Wanted::List(dash) => line.column <= dash && line.dash.is_none_or(|own| own < dash),
            Wanted::Mapping(column) => line.column < column,
        };
        // The first key of a mapping may stand beside the mark of its item.
        let begins_item = matches!(wanted, Wanted::Mapping(column) if line.column == column);
        if is_parent && line.key.is_some() {
            found.keys.push(above);
        }
        if is_parent && line.key.is_some() || begins_item {
            match line.dash {
                Some(dash) => {
                    found.item = Some(above);
                    wanted = Wanted::List(dash);
                }
                None => wanted = Wanted::Mapping(line.column),
            }
        }
    }
    found.keys.reverse();
    // Items of other lists, such as `include`, are no entries.
    found
}

/// The key of a line, without quotes.
fn key_text<'a>(text: &'a str, line: &Line) -> Option<&'a str> {
    line.key.as_ref().map(|(key, _)| text[key.clone()].trim_matches(['"', '\'']))
}

/// The bytes of the value of a line's key: to the end of the last line that is deeper than the key.
fn value_range(lines: &[Line], number: usize) -> Range<usize> {
    let line = &lines[number];
    let start = line.key.as_ref().map_or(line.end, |(_, value)| *value).min(line.end);
    let deeper = lines[number + 1..].iter().take_while(|below| below.blank || below.column > line.column);
    let end = deeper.filter(|below| !below.blank).last().map_or(line.end, |below| below.end);
    start..end.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of `|` in a text.
    fn at(marked: &str) -> (String, CursorPart, String) {
        let offset = marked.find('|').expect("the text has a mark");
        let text = format!("{}{}", &marked[..offset], &marked[offset + 1..]);
        let cursor = Cursor::at(&text, offset);
        (cursor.path.join("/"), cursor.slot, text[cursor.range.clone()].to_owned())
    }

    #[track_caller]
    fn assert_at(marked: &str, path: &str, slot: CursorPart, part: &str) {
        assert_eq!(at(marked), (path.to_owned(), slot, part.to_owned()), "{marked}");
    }

    #[test]
    fn keys_words_and_values_of_entries() {
        let head = "edition: 1\n\nops:\n- func: f(Tensor x) -> Tensor\n";
        assert_at(&format!("{head}  do|"), "ops", CursorPart::Word, "do");
        assert_at(&format!("{head}  |\n  doc: D"), "ops", CursorPart::Word, "");
        assert_at(&format!("{head}  do|c: D"), "ops", CursorPart::Key, "doc");
        assert_at(&format!("{head}  doc: D|"), "ops/doc", CursorPart::Value, "D");
        assert_at(&format!("{head}  doc:\n    se|lf: D"), "ops/doc", CursorPart::Key, "self");
        assert_at(&format!("{head}  doc:\n    self: D|"), "ops/doc/self", CursorPart::Value, "D");
        assert_at(&format!("{head}  variants:\n  - in|"), "ops/variants", CursorPart::Word, "in");
        assert_at("edi|", "", CursorPart::Word, "edi");
        assert_at("ops:\n- fu|", "ops", CursorPart::Word, "fu");
        assert_at("include:\n- ops/a|", "include", CursorPart::Word, "ops/a");
    }

    #[test]
    fn blocks_and_brackets() {
        let head = "ops:\n- func: f(Tensor x) -> Tensor\n";
        let block =
            "  derivatives:\n    x: >\n      {\n        let a = x;\n        a + gr|\n      }\n  doc: D";
        let (path, slot, value) = at(&format!("{head}{block}"));
        assert_eq!((&*path, slot), ("ops/derivatives/x", CursorPart::Value));
        assert!(value.ends_with('}'), "{value}");
        assert_at(
            &format!("{head}  dispatch: {{CPU: a::b|}}"),
            "ops/dispatch/CPU",
            CursorPart::Value,
            "a::b",
        );
        assert_at(&format!("{head}  dispatch: {{CP|"), "ops/dispatch", CursorPart::Word, "CP");
        assert_at(&format!("{head}  variants: [a, in|]"), "ops/variants", CursorPart::Value, "in");
        assert_at(
            &format!("{head}  samples:\n  - {{x: \"spr|ead(2)\"}}"),
            "ops/samples/x",
            CursorPart::Value,
            "spread(2)",
        );
        assert_at(&format!("{head}  samples: [{{|}}]"), "ops/samples", CursorPart::Word, "");
    }

    #[test]
    fn an_entry_has_its_keys_and_its_signature() {
        let text = "ops:\n- func: f(Tensor x)\n    -> Tensor\n  doc: D\n  \n\n- func: g\n";
        let entry = Cursor::at(text, text.find("  \n").unwrap() + 2).entry.unwrap();
        assert_eq!(entry.keys, ["func", "doc"]);
        assert_eq!(entry.func.unwrap().0, "f(Tensor x) -> Tensor");
        assert!(text[entry.range].starts_with("- func: f"));
    }

    #[test]
    fn an_entry_in_brackets_has_them_too() {
        let text =
            "functions:\n- {func: \"f(x, y)\", doc: \"a, b: c\", derivative: {x: y, y: [x}\n- {func: g(x)}\n";
        let entry = Cursor::at(text, text.find("doc").unwrap()).entry.unwrap();
        assert_eq!(entry.keys, ["func", "doc", "derivative"]);
        let (func, range) = entry.func.unwrap();
        assert_eq!((func.as_str(), &text[range]), ("f(x, y)", "f(x, y)"));
    }

    #[test]
    fn no_text_is_too_odd() {
        let text = "ops:\n- func: {é: [\"a\n - - :\n\t: b\n}: x\n  '\n-";
        (0..=text.len() + 3).for_each(|offset| _ = Cursor::at(text, offset));
    }
}
