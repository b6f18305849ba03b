//! Parser events into the tree.
//!
//! The events come from the parser inside `serde_yaml`, not from its `Deserialize` interface: its `Spanned` has no end
//! for lists and mappings, gives one position for a duplicate key where a message needs both, and stops at the first
//! mistake. The loop below does not recurse, so depth costs no stack, and every quantity that a hostile file could
//! multiply has a limit.

use std::collections::HashMap;

use serde_yaml::granit_parser::{self, Event, Parser};

use super::{Key, Node, NodeKind, Scalar, ScalarStyle, syntax};
use crate::diagnostics::{Diagnostics, SourceId, SourceMap, Span, catalogue};
use crate::spec::encoding;

/// Larger files are not parsed: the largest known spec has 0.6 MB.
pub const MAX_BYTES: usize = 32 << 20;
/// Maximal nesting of lists and mappings.
pub const MAX_DEPTH: usize = 64;
/// Values in a file, which bounds memory: 2,590 operators have about 40,000.
pub const MAX_NODES: usize = 2_000_000;
/// Bytes that aliases may copy: less than half of the memory that a file may take, since copies are not all of it.
pub const MAX_ALIAS_BYTES: usize = 8 << 20;
/// Mappings with more keys detect duplicates by hash.
const SCANNED_KEYS: usize = 16;

/// Parses a file into a tree. `None` if it is not usable YAML; the diagnostics have the reason.
pub fn parse(sources: &SourceMap, source: SourceId, diagnostics: &mut Diagnostics) -> Option<Node> {
    let text = sources.text(source);
    if text.len() > MAX_BYTES {
        diagnostics.push(catalogue::file_too_large(Span::new(source, 0..0), text.len(), MAX_BYTES));
        return None;
    }
    encoding::refuse_hidden(source, text, diagnostics);
    let options = granit_parser::options! {
        emit_unresolved_aliases: true,
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut builder = Builder::new(source, text);
    for event in Parser::new_from_str_with_options(text, options) {
        let step = match event {
            Ok((event, span)) => {
                let bytes = span.byte_range().unwrap_or(0..0);
                builder.event(event, Span::new(source, bytes), diagnostics)
            }
            Err(error) => Err(Box::new(syntax::explain(&error, source, text))),
        };
        if let Err(fatal) = step {
            diagnostics.push(*fatal);
            return None;
        }
    }
    if builder.root.is_none() {
        diagnostics.push(catalogue::file_empty(Span::new(source, 0..0)));
    }
    builder.root
}

/// An error that stops parsing.
type Fatal = Box<crate::diagnostics::Diagnostic>;

/// A list or mapping that is not closed yet.
struct Open {
    start: Span,
    /// Its last item where it is written; the value of an alias is elsewhere in the file.
    last: Span,
    flow: bool,
    anchor: usize,
    /// Levels inside it.
    height: usize,
    items: Items,
}

enum Items {
    Seq(Vec<Node>),
    Map { entries: Vec<(Key, Node)>, key: PendingKey, seen: HashMap<String, Span> },
}

/// The key of the next value.
enum PendingKey {
    None,
    Key(Key),
    /// Reported; its value is dropped.
    Bad,
}

/// An anchored value, and the cost of a copy of it.
struct Anchored {
    node: Node,
    height: usize,
    bytes: usize,
}

struct Builder<'a> {
    source: SourceId,
    text: &'a str,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    alias_bytes: usize,
}

impl<'a> Builder<'a> {
    fn new(source: SourceId, text: &'a str) -> Builder<'a> {
        let (open, anchors) = (Vec::new(), HashMap::new());
        Builder { source, text, open, root: None, anchors, nodes: 0, alias_bytes: 0 }
    }

    fn event(&mut self, event: Event, span: Span, diagnostics: &mut Diagnostics) -> Result<(), Fatal> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Box::new(catalogue::too_many_values(span, MAX_NODES)));
        }
        if let Event::Scalar(_, _, _, Some(_))
        | Event::SequenceStart(_, _, Some(_))
        | Event::MappingStart(_, _, Some(_)) = &event
        {
            diagnostics.push(catalogue::tag_not_supported(self.tag_before(span)));
        }
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                return Err(Box::new(catalogue::second_document(span)));
            }
            Event::Scalar(text, style, anchor, _) => {
                self.scalar(text.into(), style, anchor, span, diagnostics)?
            }
            Event::SequenceStart(style, anchor, _) => {
                self.start(span, is_flow(style), anchor, Items::Seq(Vec::new()))?;
            }
            Event::MappingStart(style, anchor, _) => {
                let items = Items::Map { entries: Vec::new(), key: PendingKey::None, seen: HashMap::new() };
                self.start(span, is_flow(style), anchor, items)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span, diagnostics)?,
            Event::Alias(id) => self.alias(id, span, diagnostics)?,
            Event::UnresolvedAlias(name) => {
                diagnostics.push(catalogue::alias_unknown(span, &name));
                self.value(Node { span, kind: NodeKind::Broken }, 0, 0, diagnostics)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, start: Span, flow: bool, anchor: usize, items: Items) -> Result<(), Fatal> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Box::new(catalogue::too_deep(start, MAX_DEPTH)));
        }
        self.open.push(Open { start, last: start, flow, anchor, height: 0, items });
        Ok(())
    }

    fn end(&mut self, end: Span, diagnostics: &mut Diagnostics) -> Result<(), Fatal> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let kind = match open.items {
            Items::Seq(items) => NodeKind::Seq(items),
            Items::Map { entries, .. } => NodeKind::Map(entries),
        };
        // The end event of a block is at the start of the next item; the block ends with its last item.
        let span = open.start.to(if open.flow { end } else { open.last });
        self.value(Node { span, kind }, open.anchor, open.height + 1, diagnostics)
    }

    fn scalar(
        &mut self,
        text: String,
        style: granit_parser::ScalarStyle,
        anchor: usize,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Fatal> {
        let style = match style {
            granit_parser::ScalarStyle::Plain => ScalarStyle::Plain,
            granit_parser::ScalarStyle::SingleQuoted => ScalarStyle::SingleQuoted,
            granit_parser::ScalarStyle::DoubleQuoted => ScalarStyle::DoubleQuoted,
            granit_parser::ScalarStyle::Literal => ScalarStyle::Literal,
            granit_parser::ScalarStyle::Folded => ScalarStyle::Folded,
        };
        if let Some(Open { items: Items::Map { key: pending @ PendingKey::None, .. }, .. }) =
            self.open.last_mut()
        {
            *pending = PendingKey::Key(Key { text, span });
            return self.key_read(diagnostics);
        }
        let span = match style {
            // The block ends with its last line that is not blank, not at the start of the next item.
            ScalarStyle::Literal | ScalarStyle::Folded => self.trimmed(span),
            _ => span,
        };
        let null =
            style == ScalarStyle::Plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL");
        let kind = if null { NodeKind::Null } else { NodeKind::Scalar(Scalar { text, style }) };
        self.value(Node { span, kind }, anchor, 0, diagnostics)
    }

    /// Reports a duplicate key, or one with a special meaning in YAML.
    fn key_read(&mut self, diagnostics: &mut Diagnostics) -> Result<(), Fatal> {
        let Some(Open { items: Items::Map { entries, key, seen }, .. }) = self.open.last_mut() else {
            return Ok(());
        };
        let PendingKey::Key(Key { text, span }) = key else { return Ok(()) };
        if entries.len() == SCANNED_KEYS {
            seen.extend(entries.iter().map(|(key, _)| (key.text.clone(), key.span)));
        }
        let first = match entries.len() {
            0..SCANNED_KEYS => entries.iter().find(|(key, _)| key.text == *text).map(|(key, _)| key.span),
            _ => seen.get(text).copied(),
        };
        if let Some(first) = first {
            diagnostics.push(catalogue::key_twice(*span, first, text));
            *key = PendingKey::Bad;
        } else if text == "<<" {
            diagnostics.push(catalogue::merge_key(*span));
            *key = PendingKey::Bad;
        } else if entries.len() >= SCANNED_KEYS {
            seen.insert(text.clone(), *span);
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, span: Span, diagnostics: &mut Diagnostics) -> Result<(), Fatal> {
        let Some(anchored) = self.anchors.get(&id) else {
            diagnostics.push(catalogue::alias_of_itself(span));
            return self.value(Node { span, kind: NodeKind::Broken }, 0, 0, diagnostics);
        };
        if self.open.len() + anchored.height > MAX_DEPTH {
            return Err(Box::new(catalogue::too_deep(span, MAX_DEPTH)));
        }
        self.alias_bytes += anchored.bytes;
        if self.alias_bytes > MAX_ALIAS_BYTES {
            return Err(Box::new(catalogue::aliases_too_large(span, MAX_ALIAS_BYTES)));
        }
        let (node, height) = (anchored.node.clone(), anchored.height);
        if let Some(Open { items: Items::Map { key: pending @ PendingKey::None, .. }, .. }) =
            self.open.last_mut()
            && let Some(text) = node.as_text()
        {
            *pending = PendingKey::Key(Key { text: text.to_owned(), span });
            return self.key_read(diagnostics);
        }
        self.value(node, 0, height, diagnostics)?;
        if let Some(open) = self.open.last_mut() {
            open.last = span;
        }
        Ok(())
    }

    /// The span without the blanks at its end.
    fn trimmed(&self, span: Span) -> Span {
        let written = self.text.get(span.range()).unwrap_or_default();
        Span::new(self.source, span.range().start..span.range().start + written.trim_end().len())
    }

    /// Adds a finished value to its parent.
    fn value(
        &mut self,
        node: Node,
        anchor: usize,
        height: usize,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), Fatal> {
        if anchor != 0 {
            let bytes = copied_bytes(&node);
            self.alias_bytes += bytes;
            if self.alias_bytes > MAX_ALIAS_BYTES {
                return Err(Box::new(catalogue::aliases_too_large(node.span, MAX_ALIAS_BYTES)));
            }
            self.anchors.insert(anchor, Anchored { node: node.clone(), height, bytes });
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.height = open.height.max(height);
        match &mut open.items {
            Items::Seq(items) => {
                open.last = node.span;
                items.push(node);
            }
            Items::Map { entries, key, .. } => match std::mem::replace(key, PendingKey::None) {
                PendingKey::Key(key) => {
                    open.last = if node.is_null() { key.span } else { node.span };
                    entries.push((key, node));
                }
                PendingKey::Bad => {}
                PendingKey::None => {
                    diagnostics.push(catalogue::key_not_text(node.span));
                    *key = PendingKey::Bad;
                }
            },
        }
        Ok(())
    }

    /// The tag before a value, on the same line or the lines above it.
    fn tag_before(&self, value: Span) -> Span {
        let before = self.text.get(..value.start as usize).unwrap_or_default();
        match before.rfind('!') {
            Some(mark) => {
                let start = before[..mark].rfind(|c: char| c.is_whitespace()).map_or(0, |at| at + 1);
                let length = before[start..].find(char::is_whitespace).unwrap_or(before.len() - start);
                Span::new(self.source, start..start + length)
            }
            None => value,
        }
    }
}

fn is_flow(style: granit_parser::StructureStyle) -> bool {
    matches!(style, granit_parser::StructureStyle::Flow)
}

/// The cost of a copy of a tree. Recursion is as deep as the tree, which is limited.
fn copied_bytes(node: &Node) -> usize {
    size_of::<Node>()
        + match &node.kind {
            NodeKind::Null | NodeKind::Broken => 0,
            NodeKind::Scalar(scalar) => scalar.text.len(),
            NodeKind::Seq(items) => items.iter().map(copied_bytes).sum(),
            NodeKind::Map(entries) => {
                entries.iter().map(|(key, node)| size_of::<Key>() + key.text.len() + copied_bytes(node)).sum()
            }
        }
}
