//! A file as lists and mappings whose items can carry comments, with names of anchors and aliases.
//!
//! In: text that is usable YAML. Out: the tree, and the comments in file order, which [`super::attach`] attaches to the
//! tree.

use serde_yaml::granit_parser::{self, Event, Parser, ScalarStyle as Style, StructureStyle};

use opsmith_codegen::spec::yaml::ScalarStyle;

/// A comment of the file.
#[derive(Clone, Debug)]
pub(super) struct Comment {
    /// With its `#`, without blanks at the end.
    pub text: String,
    /// Its first byte.
    pub start: usize,
}

/// A line of its own above an item.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Trivia {
    /// A comment with its `#`.
    Comment(String),
    /// One or more blank lines.
    Blank,
}

/// An item of a list, or a key of a mapping with its value.
#[derive(Debug)]
pub(super) struct Item {
    /// The lines above.
    pub leading: Vec<Trivia>,
    /// The key, in a mapping.
    pub key: Option<Value>,
    /// The value.
    pub value: Value,
    /// The comment at the end of the line; of a block value, of its first line.
    pub trailing: Option<String>,
}

/// A value.
#[derive(Debug)]
pub(super) struct Value {
    /// Its anchor's name.
    pub anchor: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// Its first byte.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
}

/// The kind of a value.
#[derive(Debug)]
pub(super) enum Kind {
    /// Nothing.
    Null,
    /// Text.
    Scalar(String, ScalarStyle),
    /// Another name of an anchored value.
    Alias(String),
    /// A list.
    Seq(List),
    /// A mapping.
    Map(List),
}

/// The items of a list or mapping.
#[derive(Debug)]
pub(super) struct List {
    /// The items.
    pub items: Vec<Item>,
    /// The lines after the last one.
    pub footer: Vec<Trivia>,
    /// Whether it was written in brackets.
    pub flow: bool,
}

impl Item {
    /// The first byte of the key or of the value.
    pub fn start(&self) -> usize {
        self.key.as_ref().unwrap_or(&self.value).start
    }
}

impl Value {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(text, _) => Some(text),
            _ => None,
        }
    }
}

/// Reads the tree and the comments.
pub(super) fn read(text: &str) -> Result<(Value, Vec<Comment>), String> {
    let options = granit_parser::options! {
        emit_comments: true,
        emit_anchor_events: true,
        max_buffered_comment_events: usize::MAX,
    };
    let mut builder = Builder { open: Vec::new(), root: None, anchor: None, names: Vec::new() };
    let mut comments = Vec::new();
    let mut events = Parser::new_from_str_with_options(text, options).peekable();
    while let Some(event) = events.next() {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let range = span.byte_range().unwrap_or(0..0);
        // An anchor's event follows that of its node.
        if let Some(Ok((Event::Anchor(id, name), _))) = events.peek() {
            builder.anchor = Some(name.to_string());
            builder.names.push((*id, name.to_string()));
        }
        match event {
            Event::Comment(comment, _) => {
                let comment = Comment { text: format!("#{}", comment.trim_end()), start: range.start };
                comments.push(comment);
            }
            Event::Scalar(value, style, _, _) => builder.scalar(&value, style, range),
            Event::Alias(id) => {
                let name = builder.names.iter().rev().find(|(known, _)| *known == id);
                let name = name.map(|(_, name)| name.clone()).unwrap_or_default();
                builder.value(Value {
                    anchor: None,
                    kind: Kind::Alias(name),
                    start: range.start,
                    end: range.end,
                });
            }
            Event::SequenceStart(style, ..) => builder.start(false, style, range.start),
            Event::MappingStart(style, ..) => builder.start(true, style, range.start),
            Event::SequenceEnd | Event::MappingEnd => builder.end(range.end),
            _ => {}
        }
    }
    comments.sort_by_key(|comment| comment.start);
    builder.root.map(|root| (root, comments)).ok_or_else(|| "the file is empty".to_owned())
}

/// A list or mapping that is not closed yet.
struct Open {
    is_map: bool,
    list: List,
    key: Option<Value>,
    anchor: Option<String>,
    start: usize,
}

struct Builder {
    open: Vec<Open>,
    root: Option<Value>,
    anchor: Option<String>,
    names: Vec<(usize, String)>,
}

impl Builder {
    fn start(&mut self, is_map: bool, style: StructureStyle, start: usize) {
        let flow = matches!(style, StructureStyle::Flow);
        let list = List { items: Vec::new(), footer: Vec::new(), flow };
        let anchor = self.anchor.take();
        self.open.push(Open { is_map, list, key: None, anchor, start });
    }

    fn end(&mut self, end: usize) {
        let Some(open) = self.open.pop() else { return };
        let last = open.list.items.last().map_or(open.start, |item| item.value.end);
        // The end event of a block is at the start of the next item.
        let end = if open.list.flow { end } else { last };
        let first = open.list.items.first().map_or(open.start, Item::start);
        let start = if open.list.flow { open.start } else { first };
        let kind = if open.is_map { Kind::Map(open.list) } else { Kind::Seq(open.list) };
        self.value(Value { anchor: open.anchor, kind, start, end });
    }

    fn scalar(&mut self, text: &str, style: Style, range: std::ops::Range<usize>) {
        let style = match style {
            Style::Plain => ScalarStyle::Plain,
            Style::SingleQuoted => ScalarStyle::SingleQuoted,
            Style::DoubleQuoted => ScalarStyle::DoubleQuoted,
            Style::Literal => ScalarStyle::Literal,
            Style::Folded => ScalarStyle::Folded,
        };
        let null = style == ScalarStyle::Plain && matches!(text, "" | "~" | "null" | "Null" | "NULL");
        let kind = if null { Kind::Null } else { Kind::Scalar(text.to_owned(), style) };
        let anchor = self.anchor.take();
        let mut value = Value { anchor, kind, start: range.start, end: range.end };
        if text.is_empty() && style == ScalarStyle::Plain {
            // An empty value has no position; use the end of its key.
            let key = self.open.last().and_then(|open| open.key.as_ref());
            (value.start, value.end) = key.map_or((range.start, range.start), |key| (key.end, key.end));
        }
        self.value(value);
    }

    /// Adds a finished value to its parent.
    fn value(&mut self, value: Value) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(value);
            return;
        };
        match (open.is_map, open.key.take()) {
            (true, None) => open.key = Some(value),
            (_, key) => open.list.items.push(Item { leading: Vec::new(), key, value, trailing: None }),
        }
    }
}
