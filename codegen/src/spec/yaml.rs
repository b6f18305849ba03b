//! YAML to a tree with a span for every node and key.
//!
//! In: the text of one file. Out: a [`Node`], or diagnostics. Scalars stay text, exactly as written: the meaning of
//! `no`, `1.10` or `0x1F` is decided by the reader of a key. Must not know which keys exist.

mod align;
mod build;
mod syntax;

use std::ops::Range;

use crate::diagnostics::{SourceId, Span};

pub use build::{MAX_BYTES, parse};

/// A value and its span.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// The value's bytes in the file, quotes included.
    pub span: Span,
    /// The value.
    pub kind: NodeKind,
}

/// The value of a [`Node`].
#[derive(Clone, PartialEq, Debug)]
pub enum NodeKind {
    /// Nothing, `~` or `null`.
    Null,
    /// Text.
    Scalar(Scalar),
    /// A list.
    Seq(Vec<Node>),
    /// A mapping in file order. Keys are distinct.
    Map(Vec<(Key, Node)>),
    /// A value whose mistake has been reported.
    Broken,
}

/// The text of a scalar.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scalar {
    /// The text; for a quoted, folded or literal scalar, the decoded text.
    pub text: String,
    /// Whether it was written plain, quoted or as a block.
    pub style: ScalarStyle,
}

/// The notation of a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarStyle {
    /// Without quotes.
    Plain,
    /// In `'` quotes.
    SingleQuoted,
    /// In `"` quotes, with escapes.
    DoubleQuoted,
    /// A block after `|`.
    Literal,
    /// A block after `>`.
    Folded,
}

/// A key of a mapping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// The text.
    pub text: String,
    /// Its bytes in the file, quotes included.
    pub span: Span,
}

impl Node {
    /// The text of a scalar.
    pub fn as_text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Scalar(scalar) => Some(&scalar.text),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn as_seq(&self) -> Option<&[Node]> {
        match &self.kind {
            NodeKind::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a mapping.
    pub fn as_map(&self) -> Option<&[(Key, Node)]> {
        match &self.kind {
            NodeKind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Whether the node is null.
    pub fn is_null(&self) -> bool {
        matches!(self.kind, NodeKind::Null)
    }

    /// The span in the file of the bytes `range` of a scalar's *value*, for carets inside signatures and expressions.
    /// `source_text` is the text of the file. The whole node if it is not a scalar.
    ///
    /// In `doc: 'it''s'` the value is `it's`. Its bytes 3..4, the `s`, are bytes 10..11 of the file.
    pub fn span_within(&self, range: Range<usize>, source_text: &str) -> Span {
        let NodeKind::Scalar(scalar) = &self.kind else { return self.span };
        let whole = self.span.range();
        let Some(written) = source_text.get(whole.clone()) else { return self.span };
        let line_start = source_text[..whole.start].rfind('\n').map_or(0, |newline| newline + 1);
        match align::source_range(scalar, written, whole.start - line_start, range) {
            Some(part) => Span::new(self.span.source, whole.start + part.start..whole.start + part.end),
            None => self.span,
        }
    }

    /// The file of the node.
    pub fn source(&self) -> SourceId {
        self.span.source
    }
}
