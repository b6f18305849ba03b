//! `opsmith fmt`: a spec in its canonical form, with every comment.
//!
//! In: the text of one spec file. Out: the same spec with keys in the order of the key tables, canonical indentation
//! and quotes, and lines of at most [`WIDTH`] columns where text can be broken. The result is parsed again and compared
//! with the input before it is returned. Must not know the meaning of keys: `tree` reads, `attach` attaches comments,
//! `write` prints.

mod attach;
mod scalar;
mod tree;
mod write;

use opsmith_codegen::diagnostics::{Diagnostics, SourceMap};
use opsmith_codegen::spec::document::Document;
use opsmith_codegen::spec::encoding;
use opsmith_codegen::spec::yaml::{self, Node, NodeKind};

/// Maximal columns of a line, unless a word or a comment is longer.
pub const WIDTH: usize = 110;

/// The reason why a text was not formatted.
pub enum NotFormatted {
    /// The file has mistakes: the diagnostics, and the texts they refer to.
    Mistakes(SourceMap, Diagnostics),
    /// The result would have another meaning, which is a defect of the formatter.
    Defect(String),
}

/// The canonical form of a spec. `name` is its name in messages.
///
/// `"ops:\n- {doc: 'D', func: 'f(Tensor x) -> Tensor'}\nedition: 1\n"` becomes
/// `"edition: 1\n\nops:\n- {func: f(Tensor x) -> Tensor, doc: D}\n"`.
///
/// # Errors
/// If the file cannot be read as a spec: syntax, keys, or kinds of values. Expressions are not checked.
pub fn format(name: &str, text: &str) -> Result<String, NotFormatted> {
    format_bytes(name, text.as_bytes().to_vec())
}

/// As [`format()`], for the bytes of a file.
///
/// # Errors
/// As [`format()`]; bytes that are not UTF-8 are a mistake.
pub fn format_bytes(name: &str, bytes: Vec<u8>) -> Result<String, NotFormatted> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::default();
    let source = encoding::add(&mut sources, name, bytes, &mut diagnostics);
    let before = yaml::parse(&sources, source, &mut diagnostics);
    if let Some(root) = &before {
        Document::from_node(root, &sources, &mut diagnostics);
    }
    let Some(before) = before.filter(|_| !diagnostics.has_errors()) else {
        return Err(NotFormatted::Mistakes(sources, diagnostics));
    };
    let text = sources.text(source);
    let (mut tree, comments) = tree::read(text).map_err(NotFormatted::Defect)?;
    attach::attach(&mut tree, &comments, text);
    let written = write::write(tree);
    same_meaning(&before, &written).map_err(NotFormatted::Defect)?;
    same_comments(&comments, &written).map_err(NotFormatted::Defect)?;
    Ok(written)
}

/// The files that a spec includes, by their paths from its own.
pub fn includes(text: &str) -> Vec<String> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::default();
    let source = sources.add("spec", text);
    let root = yaml::parse(&sources, source, &mut diagnostics);
    let document = root.and_then(|root| Document::from_node(&root, &sources, &mut diagnostics));
    document.iter().flat_map(|document| &document.include).map(|file| file.as_str().to_owned()).collect()
}

/// Checks that the text has the same meaning as the tree.
fn same_meaning(before: &Node, written: &str) -> Result<(), String> {
    let mut sources = SourceMap::new();
    let mut diagnostics = Diagnostics::default();
    let source = sources.add("formatted", written);
    match yaml::parse(&sources, source, &mut diagnostics) {
        Some(after) if !diagnostics.has_errors() && equal(before, &after) => Ok(()),
        _ => Err("the formatted text would say something else".to_owned()),
    }
}

/// Whether two trees have the same meaning, independent of the order of keys and the quotes of scalars.
fn equal(a: &Node, b: &Node) -> bool {
    match (&a.kind, &b.kind) {
        (NodeKind::Null, NodeKind::Null) => true,
        (NodeKind::Scalar(a), NodeKind::Scalar(b)) => a.text == b.text,
        (NodeKind::Seq(a), NodeKind::Seq(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (NodeKind::Map(a), NodeKind::Map(b)) => {
            let of = |wanted: &str| b.iter().find(|(key, _)| key.text == wanted).map(|(_, value)| value);
            a.len() == b.len() && a.iter().all(|(key, a)| of(&key.text).is_some_and(|b| equal(a, b)))
        }
        _ => false,
    }
}

/// Checks that the text has exactly the comments that were read.
fn same_comments(before: &[tree::Comment], written: &str) -> Result<(), String> {
    let (_, after) = tree::read(written)?;
    let sorted = |comments: &[tree::Comment]| {
        let mut texts: Vec<String> = comments.iter().map(|comment| comment.text.clone()).collect();
        texts.sort_unstable();
        texts
    };
    match sorted(before) == sorted(&after) {
        true => Ok(()),
        false => Err("a comment would be lost".to_owned()),
    }
}
