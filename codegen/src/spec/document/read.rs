//! Walks a file's tree and checks keys and kinds of values against the key tables.

use super::keys::{self, DECLARATION_KEYS, FILE_KEYS, FUNCTION_KEYS, KeyName, KeySpec, OP_KEYS, ValueKind};
use super::{Document, Entry, OfArguments, RawFunction, RawOp, Text};
use crate::diagnostics::{Diagnostics, SourceMap, Span, catalogue, nearest};
use crate::spec::yaml::{Key, Node, NodeKind, ScalarStyle};

/// The only version of the spec language so far.
const EDITION: u32 = 1;

/// The sources, and the mistakes so far.
pub(super) struct Reader<'a> {
    pub(super) sources: &'a SourceMap,
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl Reader<'_> {
    pub(super) fn document(&mut self, root: &Node) -> Option<Document> {
        let Some(entries) = root.as_map() else {
            let is_list = root.as_seq().is_some();
            self.diagnostics.push(catalogue::file_not_mapping(start_of(root), is_list));
            return None;
        };
        let mut document = Document {
            edition: EDITION,
            include: Vec::new(),
            features: Vec::new(),
            of_arguments: OfArguments::default(),
            namespaces: Vec::new(),
            unlike: Vec::new(),
            ops: Vec::new(),
            functions: Vec::new(),
        };
        // A misspelt `edition` is reported as an unknown key.
        if !entries.iter().any(|(key, _)| key.text == "edition" || nearest(&key.text, ["edition"]).is_some())
        {
            self.diagnostics.push(catalogue::edition_missing(start_of(root)));
        }
        for entry in self.entries(FILE_KEYS, "spec", entries) {
            match entry.spec.key {
                KeyName::Edition => self.edition(&entry.value),
                KeyName::Include => document.include = texts(&entry.value),
                KeyName::Features => document.features = text_lists(&entry.value),
                KeyName::ArgumentAliases => document.of_arguments.aliases = text_lists(&entry.value),
                KeyName::Descriptions => document.of_arguments.descriptions = text_map(&entry.value),
                KeyName::Namespaces => document.namespaces = text_map(&entry.value),
                KeyName::Unlike => document.unlike = text_map(&entry.value),
                KeyName::Ops => {
                    for (span, func, entries, complete) in self.list(OP_KEYS, "operator", &entry) {
                        document.ops.push(RawOp { span, func, entries, complete, declared: false });
                    }
                }
                KeyName::Declarations => {
                    for (span, func, entries, complete) in self.list(DECLARATION_KEYS, "declaration", &entry)
                    {
                        document.ops.push(RawOp { span, func, entries, complete, declared: true });
                    }
                }
                KeyName::Functions => {
                    for (span, func, entries, complete) in self.list(FUNCTION_KEYS, "function", &entry) {
                        document.functions.push(RawFunction { span, func, entries, complete });
                    }
                }
                _ => {}
            }
        }
        Some(document)
    }

    fn edition(&mut self, value: &Node) {
        let text = value.as_text().unwrap_or_default();
        if text.parse() != Ok(EDITION) {
            self.diagnostics.push(catalogue::edition_unknown(value.span, text, EDITION));
        }
    }

    /// The entries of `ops:` or `functions:`, those with a signature, and whether every key was read.
    fn list(
        &mut self,
        table: &'static [KeySpec],
        noun: &'static str,
        list: &Entry,
    ) -> Vec<(Span, Text, Vec<Entry>, bool)> {
        let Some(items) = list.value.as_seq() else {
            self.diagnostics.push(catalogue::entries_not_list(list.key.span, &list.key.text));
            return Vec::new();
        };
        let mut read = Vec::with_capacity(items.len());
        for item in items {
            if self.diagnostics.is_full() {
                break;
            }
            if matches!(item.kind, NodeKind::Broken) {
                continue;
            }
            let Some(pairs) = item.as_map() else {
                let written = item.as_text().map(str::to_owned);
                let found = kind_of(item);
                self.diagnostics.push(catalogue::entry_not_mapping(
                    start_of(item),
                    noun,
                    found,
                    written.as_deref(),
                ));
                continue;
            };
            let errors = self.diagnostics.error_count();
            if is_flow(self.sources.slice(item.span)) {
                self.split_items(item);
            }
            if self.diagnostics.error_count() > errors {
                continue;
            }
            let entries = self.entries(table, noun, pairs);
            let func = entries.iter().find(|entry| entry.spec.key == KeyName::Func);
            match func.map(|entry| Text { node: entry.value.clone() }) {
                Some(func) => {
                    let complete = entries.len() == pairs.len();
                    read.push((item.span, func, entries, complete));
                }
                // An invalid `func` has been reported.
                None if pairs.iter().any(|(key, _)| key.text == "func") => {}
                None => {
                    let first = pairs.first().map_or(item.span, |(key, _)| key.span);
                    let misspelt = pairs.iter().find(|(key, _)| nearest(&key.text, ["func"]).is_some());
                    let place = misspelt.map_or(first, |(key, _)| key.span);
                    // The unknown key itself has been reported with the suggestion.
                    if misspelt.is_none() {
                        self.diagnostics.push(catalogue::func_missing(place, noun));
                    }
                }
            }
        }
        read
    }

    /// The pairs whose key is in `table` and whose value has the right kind.
    fn entries(
        &mut self,
        table: &'static [KeySpec],
        noun: &'static str,
        pairs: &[(Key, Node)],
    ) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            if self.diagnostics.is_full() {
                break;
            }
            let Some(spec) = keys::find(table, &key.text) else {
                let names: Vec<&str> = table.iter().map(|row| row.name).collect();
                self.diagnostics.push(catalogue::key_unknown(
                    key.span,
                    &key.text,
                    noun,
                    keys::synonym(&key.text, &names),
                    &names,
                ));
                continue;
            };
            if self.value(spec, key, value) {
                entries.push(Entry { spec, key: key.clone(), value: value.clone() });
            }
        }
        entries
    }

    /// Whether a value has the kind its key wants; reports it if not.
    fn value(&mut self, spec: &'static KeySpec, key: &Key, value: &Node) -> bool {
        // The items of a list of entries are checked one by one.
        if spec.kind != ValueKind::Entries && has_broken(value) {
            return false;
        }
        if value.is_null() {
            self.diagnostics.push(catalogue::value_missing(key.span, &spec.shown()));
            return false;
        }
        let errors = self.diagnostics.len();
        self.split_items(value);
        match spec.kind {
            ValueKind::Text => self.text(spec, key, value),
            ValueKind::Flag => self.flag(spec, value),
            ValueKind::TextList => match value.as_seq() {
                Some(items) => items.iter().for_each(|item| self.item(spec, item)),
                None => self.text(spec, key, value),
            },
            ValueKind::TextMap => match value.as_map() {
                Some(entries) => entries.iter().for_each(|(key, item)| match item.is_null() {
                    true => self.diagnostics.push(catalogue::map_value_missing(
                        key.span,
                        &key.text,
                        &spec.shown(),
                    )),
                    false => self.item(spec, item),
                }),
                None => self.diagnostics.push(catalogue::value_not_mapping(
                    value.span,
                    &spec.shown(),
                    kind_of(value),
                )),
            },
            ValueKind::TextListMap => match value.as_map() {
                Some(entries) => entries.iter().for_each(|(key, item)| match item.as_seq() {
                    _ if item.is_null() => {
                        self.diagnostics.push(catalogue::map_value_missing(
                            key.span,
                            &key.text,
                            &spec.shown(),
                        ));
                    }
                    Some(items) => items.iter().for_each(|item| self.item(spec, item)),
                    None => self.item(spec, item),
                }),
                None => self.diagnostics.push(catalogue::value_not_mapping(
                    value.span,
                    &spec.shown(),
                    kind_of(value),
                )),
            },
            ValueKind::Entries | ValueKind::Any => {}
        }
        self.diagnostics.len() == errors
    }

    fn text(&mut self, spec: &'static KeySpec, key: &Key, value: &Node) {
        if value.as_text().is_none() {
            let written = self.sources.slice(value.span);
            let flow = is_flow(written) && !written.contains('\n');
            let place = if flow { value.span } else { key.span };
            let written = flow.then_some(written);
            self.diagnostics.push(catalogue::value_not_text(place, &spec.shown(), kind_of(value), written));
        } else if value.as_text().is_some_and(|text| text.trim().is_empty()) {
            self.diagnostics.push(catalogue::value_missing(value.span, &spec.shown()));
        }
    }

    fn flag(&mut self, spec: &'static KeySpec, value: &Node) {
        match value.as_text() {
            Some(text) if keys::flag_value(text).is_some() => {}
            text => self.diagnostics.push(catalogue::value_not_flag(value.span, &spec.shown(), text)),
        }
    }

    /// An item of a list or mapping of texts.
    fn item(&mut self, spec: &'static KeySpec, item: &Node) {
        if item.as_text().is_none() {
            self.diagnostics.push(catalogue::item_not_text(start_of(item), &spec.shown(), kind_of(item)));
        }
    }

    /// Finds `[f(a, b)]`, which YAML splits at the comma into `f(a` and `b)`.
    fn split_items(&mut self, value: &Node) {
        let children: Vec<&Node> = match &value.kind {
            NodeKind::Seq(items) => items.iter().collect(),
            NodeKind::Map(entries) => entries.iter().map(|(_, node)| node).collect(),
            NodeKind::Null | NodeKind::Scalar(_) | NodeKind::Broken => return,
        };
        let written = self.sources.slice(value.span);
        if !is_flow(written) {
            children.into_iter().for_each(|child| self.split_items(child));
            return;
        }
        // In braces the second half becomes a key without a value.
        let pieces: Vec<(Span, i32)> = match &value.kind {
            NodeKind::Map(entries) => {
                let pieces = entries.iter().flat_map(|(key, node)| {
                    [(key.span, open_brackets(&key.text)), (node.span, plain_open_brackets(node))]
                });
                pieces.collect()
            }
            _ => children.iter().map(|child| (child.span, plain_open_brackets(child))).collect(),
        };
        for (index, (start, open)) in pieces.iter().enumerate().filter(|(_, (_, open))| *open > 0) {
            let mut open = *open;
            for (end, more) in &pieces[index + 1..] {
                open += more;
                if open <= 0 {
                    self.diagnostics
                        .push(catalogue::item_split(start.to(*end), self.sources.slice(start.to(*end))));
                    return;
                }
            }
        }
    }
}

/// The entries of a mapping from names to texts.
pub(super) fn text_map(value: &Node) -> Vec<(Key, Text)> {
    let entries = value.as_map().unwrap_or_default();
    entries.iter().map(|(key, node)| (key.clone(), Text { node: node.clone() })).collect()
}

/// The texts of a list; one text counts as a list of one.
pub(super) fn texts(value: &Node) -> Vec<Text> {
    let nodes = value.as_seq().unwrap_or(std::slice::from_ref(value));
    nodes.iter().map(|node| Text { node: node.clone() }).collect()
}

/// The entries of a mapping from names to texts or lists of them.
pub(super) fn text_lists(value: &Node) -> Vec<(Key, Vec<Text>)> {
    let entries = value.as_map().unwrap_or_default();
    entries.iter().map(|(key, value)| (key.clone(), texts(value))).collect()
}

/// The start of a list or mapping: underlining all of it would fill pages.
fn start_of(node: &Node) -> Span {
    match &node.kind {
        NodeKind::Seq(items) => items.first().map_or(node.span, start_of),
        NodeKind::Map(entries) => entries.first().map_or(node.span, |(key, _)| key.span),
        NodeKind::Null | NodeKind::Scalar(_) | NodeKind::Broken => node.span,
    }
}

fn kind_of(node: &Node) -> &'static str {
    match node.kind {
        NodeKind::Null | NodeKind::Broken => "nothing",
        NodeKind::Scalar(_) => "text",
        NodeKind::Seq(_) => "a list",
        NodeKind::Map(_) => "a mapping",
    }
}

/// Whether a mistake inside has been reported already.
fn has_broken(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Broken => true,
        NodeKind::Seq(items) => items.iter().any(has_broken),
        NodeKind::Map(entries) => entries.iter().any(|(_, node)| has_broken(node)),
        NodeKind::Null | NodeKind::Scalar(_) => false,
    }
}

fn is_flow(written: &str) -> bool {
    written.starts_with(['[', '{'])
}

/// The number of brackets that an unquoted text opens minus those it closes.
fn plain_open_brackets(node: &Node) -> i32 {
    match &node.kind {
        NodeKind::Scalar(scalar) if scalar.style == ScalarStyle::Plain => open_brackets(&scalar.text),
        _ => 0,
    }
}

fn open_brackets(text: &str) -> i32 {
    text.bytes().fold(0, |open, byte| match byte {
        b'(' => open + 1,
        b')' => open - 1,
        _ => open,
    })
}
