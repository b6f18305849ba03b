//! From the tree of a file to entries with known keys and values of the right kind.
//!
//! In: a [`Node`]. Out: a [`Document`] and every mistake of the file. The keys are in the tables [`keys::OP_KEYS`] and
//! [`keys::FUNCTION_KEYS`]; the meaning of values is decided later.

pub mod constraints;
pub mod keys;
mod read;

use std::sync::Arc;

use super::schema::Schema;
use super::yaml::{Key, Node};
use crate::diagnostics::{Diagnostics, SourceMap, Span};

pub use keys::{KeyName, KeySpec, ValueKind};

/// A document with its library and the context of the files that include it.
pub struct Loaded {
    /// The entries, shared with the memory of an earlier run.
    pub document: Arc<Document>,
    /// The number in the configuration of the parent library that it belongs to, if any.
    pub parent: Option<usize>,
    /// The facts of arguments of the files that include this one.
    pub inherited: OfArguments,
}

impl Loaded {
    /// The facts of arguments of this file and those that include it.
    pub fn all_of_arguments(&self) -> OfArguments {
        self.document.of_arguments.before(&self.inherited)
    }
}

/// One spec file.
#[derive(Clone, Debug)]
pub struct Document {
    /// The language version, `edition: 1`.
    pub edition: u32,
    /// Other files to read, relative to this one.
    pub include: Vec<Text>,
    /// Cargo features, each with files among these: a build without any feature of a file does not read it.
    pub features: Vec<(Key, Vec<Text>)>,
    /// Facts of arguments, for every operator with such an argument, here and in included files.
    pub of_arguments: OfArguments,
    /// Prefixes of names in other libraries, each with the prefix that such names have here.
    pub namespaces: Vec<(Key, Text)>,
    /// Names in other libraries with a different meaning here, each with advice.
    pub unlike: Vec<(Key, Text)>,
    /// The operators, and the declarations of functions that are called like operators.
    pub ops: Vec<RawOp>,
    /// The scalar functions that pointwise expressions may call.
    pub functions: Vec<RawFunction>,
}

/// Facts of arguments that hold for every operator with an argument of that name.
#[derive(Clone, Debug, Default)]
pub struct OfArguments {
    /// Other names in calls by name.
    pub aliases: Vec<(Key, Vec<Text>)>,
    /// Meanings.
    pub descriptions: Vec<(Key, Text)>,
}

impl OfArguments {
    /// These facts, and behind them those of an outer file.
    #[must_use]
    pub fn before(&self, outer: &OfArguments) -> OfArguments {
        OfArguments {
            aliases: self.aliases.iter().chain(&outer.aliases).cloned().collect(),
            descriptions: self.descriptions.iter().chain(&outer.descriptions).cloned().collect(),
        }
    }
}

/// Text from the file. `node` gives spans inside it.
#[derive(Clone, PartialEq, Debug)]
pub struct Text {
    /// The scalar.
    pub node: Node,
}

/// A key in the file, with a value of the kind that it requires.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The row of the key table.
    pub spec: &'static KeySpec,
    /// The key as written.
    pub key: Key,
    /// Its value.
    pub value: Node,
}

/// An entry of `ops:` or `declarations:`.
#[derive(Clone, Debug)]
pub struct RawOp {
    /// The whole entry.
    pub span: Span,
    /// The signature's text.
    pub func: Text,
    /// Every key of the entry, `func` included, in file order.
    pub entries: Vec<Entry>,
    /// Whether all keys were read; a key dropped for a mistake may be one that seems to be missing.
    pub complete: bool,
    /// Whether it is an entry of `declarations:`, which is only a signature.
    pub declared: bool,
}

/// An entry of `functions:`.
#[derive(Clone, Debug)]
pub struct RawFunction {
    /// The whole entry.
    pub span: Span,
    /// The head, such as `exp(x)`.
    pub func: Text,
    /// Every key of the entry, `func` included, in file order.
    pub entries: Vec<Entry>,
    /// Whether all keys were read; a key dropped for a mistake may be one that seems to be missing.
    pub complete: bool,
}

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        self.node.as_text().unwrap_or_default()
    }

    /// Its span.
    pub fn span(&self) -> Span {
        self.node.span
    }

    /// The span of some bytes of the text.
    pub fn span_within(&self, range: std::ops::Range<usize>, sources: &SourceMap) -> Span {
        self.node.span_within(range, sources.text(self.node.span.source))
    }
}

/// The lookups common to entries of every table.
macro_rules! entry_lookup {
    ($entry:ty) => {
        impl $entry {
            /// The value of a key, if the entry has it.
            pub fn get(&self, key: KeyName) -> Option<&Node> {
                self.entry(key).map(|entry| &entry.value)
            }

            /// The key and value, if the entry has it.
            pub fn entry(&self, key: KeyName) -> Option<&Entry> {
                self.entries.iter().find(|entry| entry.spec.key == key)
            }

            /// The value of a text key.
            pub fn text(&self, key: KeyName) -> Option<Text> {
                self.get(key).filter(|node| node.as_text().is_some()).map(|node| Text { node: node.clone() })
            }

            /// The value of a yes/no key.
            pub fn flag(&self, key: KeyName) -> Option<bool> {
                self.get(key).and_then(Node::as_text).and_then(keys::flag_value)
            }

            /// The values of a list key; one text counts as a list of one.
            pub fn texts(&self, key: KeyName) -> Vec<Text> {
                match self.get(key) {
                    None => Vec::new(),
                    Some(node) => match node.as_seq() {
                        Some(items) => items.iter().map(|node| Text { node: node.clone() }).collect(),
                        None => vec![Text { node: node.clone() }],
                    },
                }
            }

            /// The entries of a key that maps names to texts or lists of them.
            pub fn text_list_map(&self, key: KeyName) -> Vec<(Key, Vec<Text>)> {
                self.get(key).map(read::text_lists).unwrap_or_default()
            }

            /// The entries of a key that maps names to text.
            pub fn text_map(&self, key: KeyName) -> Vec<(Key, Text)> {
                self.get(key).map(read::text_map).unwrap_or_default()
            }
        }
    };
}

entry_lookup!(RawOp);
entry_lookup!(RawFunction);

impl RawOp {
    /// Reads the signature. `None` if it has mistakes, which go to `diagnostics`.
    pub fn parse_schema(&self, sources: &SourceMap, diagnostics: &mut Diagnostics) -> Option<Schema> {
        let locate = |range| self.func.span_within(range, sources);
        Schema::parse(self.func.as_str(), &locate, diagnostics)
    }
}

impl Document {
    /// Sorts a file's tree into entries. Keys with mistakes are dropped from their entry, and entries without a
    /// signature are dropped; all mistakes go to `diagnostics`. `None` if the file has no entries.
    pub fn from_node(root: &Node, sources: &SourceMap, diagnostics: &mut Diagnostics) -> Option<Document> {
        read::Reader { sources, diagnostics }.document(root)
    }

    /// Marks that the file has syntax errors, so that any entry may be incomplete.
    pub fn mark_incomplete(&mut self) {
        self.ops.iter_mut().for_each(|op| op.complete = false);
        self.functions.iter_mut().for_each(|function| function.complete = false);
    }
}
