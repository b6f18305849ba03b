//! Renaming: an operator's base name, or an argument of an entry, in all files of a spec.
//!
//! In: a spec, a [`Cursor`], and the new name. Out: the texts to replace, or the reason for a refusal. The result is
//! checked before it is returned: a renamed spec has no mistake that it did not have before.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use opsmith_codegen::diagnostics::{Diagnostics, Span};
use opsmith_codegen::expr::path::is_identifier;
use opsmith_codegen::pipeline::{self, Checked, Kept, Open};
use opsmith_codegen::spec::document::Entry;
use opsmith_codegen::spec::schema::Schema;

use super::cursor::Cursor;
use super::occurrence::{self, Subject, subject};
use super::{EditedSpec, FilePart, FileRange, argument, place};

/// The reason why nothing was renamed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RenameRefusal {
    /// Nothing at the position has a name that can be changed.
    NoName,
    /// A file is not YAML, so uses in it are unknown.
    NotYaml,
    /// The new name is no identifier.
    NoIdentifier(String),
    /// The operator belongs to another library.
    OfLibrary(String),
    /// An operator or argument of the new name exists.
    Taken(String),
    /// A formula of the entry binds the old or the new name.
    Bound(String),
    /// The formula of the entry has the new name between braces, as an index.
    Grouped(String),
    /// The renamed spec would have a mistake: its message.
    Mistake(String),
}

impl fmt::Display for RenameRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RenameRefusal::NoName => f.write_str(
                "only operators and the arguments of an entry can be renamed; put the cursor on one",
            ),
            RenameRefusal::NotYaml => {
                f.write_str("a file of the spec is not YAML, so not all uses are known; mend it first")
            }
            RenameRefusal::NoIdentifier(name) => {
                write!(f, "`{name}` is no name; write letters, digits and `_`, and no keyword of Rust")
            }
            RenameRefusal::OfLibrary(name) => {
                write!(f, "`{name}` belongs to a library that this spec builds on; rename it there")
            }
            RenameRefusal::Taken(name) => write!(f, "`{name}` exists already; choose another name"),
            RenameRefusal::Bound(name) => {
                write!(f, "a formula binds `{name}` with `let`; rename that first, or choose another name")
            }
            RenameRefusal::Grouped(name) => {
                write!(
                    f,
                    "`{{{name}}}` in the formula of the entry would become the argument; choose another name"
                )
            }
            RenameRefusal::Mistake(message) => write!(f, "the renamed spec would have a mistake: {message}"),
        }
    }
}

impl std::error::Error for RenameRefusal {}

/// Some bytes of a file, and their new text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplacedText {
    /// The file, by the path that it was read from.
    pub file: PathBuf,
    /// The bytes.
    pub range: Range<usize>,
    /// Their new text.
    pub text: String,
}

/// The name at a position, if it can be renamed.
///
/// # Errors
/// If it cannot.
pub fn renamed_name(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Result<String, RenameRefusal> {
    match subject(spec, cursor).ok_or(RenameRefusal::NoName)? {
        Subject::Operator(base) => {
            refuse_of_library(spec, &base)?;
            Ok(base)
        }
        Subject::Argument { name, .. } | Subject::Parameter { name, .. } => Ok(name),
        Subject::Function(_) => Err(RenameRefusal::NoName),
    }
}

/// The texts to replace for a new name; `open` reads the spec's files as the editor has them.
///
/// # Errors
/// If the name cannot be used, or the result would have mistakes that the spec does not have. Nothing is changed then.
pub fn rename(
    spec: &EditedSpec<'_>,
    cursor: &Cursor<'_>,
    new: &str,
    open: Open<'_>,
) -> Result<Vec<ReplacedText>, RenameRefusal> {
    if !spec.checked.unparsed.is_empty() {
        return Err(RenameRefusal::NotYaml);
    }
    let subject = subject(spec, cursor).ok_or(RenameRefusal::NoName)?;
    // A keyword of Rust, but the usual name of the argument with methods.
    let is_receiver = new == "self" && matches!(subject, Subject::Argument { .. });
    if !is_identifier(new) && !is_receiver {
        return Err(RenameRefusal::NoIdentifier(new.to_owned()));
    }
    let spans = match subject {
        Subject::Operator(base) if base == new => return Ok(Vec::new()),
        Subject::Operator(base) => {
            refuse_of_library(spec, &base)?;
            if spec.model().ops.iter().any(|op| op.base == new) {
                return Err(RenameRefusal::Taken(new.to_owned()));
            }
            occurrence::operator(spec.checked, &base, true)
        }
        Subject::Argument { name, .. } | Subject::Parameter { name, .. } if name == new => {
            return Ok(Vec::new());
        }
        Subject::Argument { op, name } => {
            refuse_clash(spec, &op, &name, new)?;
            argument::argument(spec.checked, &op, &name, true)
        }
        Subject::Parameter { function, name } => {
            refuse_parameter(spec, &function, &name, new)?;
            argument::parameter(spec.checked, &function, &name, true)
        }
        Subject::Function(_) => return Err(RenameRefusal::NoName),
    };
    let edits: Vec<ReplacedText> = spans.iter().filter_map(|span| edit(spec.checked, *span, new)).collect();
    refuse_mistakes(spec, &edits, open)?;
    Ok(edits)
}

/// A signature, if it has no mistakes.
pub(super) fn parsed(func: &str) -> Option<Schema> {
    let source = opsmith_codegen::diagnostics::SourceMap::new().add("signature", "");
    Schema::parse(func, &|range| Span::new(source, range), &mut Diagnostics::new())
}

fn refuse_of_library(spec: &EditedSpec<'_>, base: &str) -> Result<(), RenameRefusal> {
    let mut named = spec.model().ops.iter().filter(|op| op.base == base);
    match named.any(|op| op.is_external()) {
        true => Err(RenameRefusal::OfLibrary(base.to_owned())),
        false => Ok(()),
    }
}

fn refuse_clash(spec: &EditedSpec<'_>, op: &str, old: &str, new: &str) -> Result<(), RenameRefusal> {
    let found = spec.checked.model.ops.iter().find(|known| known.name == op).ok_or(RenameRefusal::NoName)?;
    let results = found.outputs.iter().filter_map(|output| output.name.as_deref());
    if found.arg_index(new).is_some() || results.into_iter().any(|name| name == new) {
        return Err(RenameRefusal::Taken(new.to_owned()));
    }
    let raws = spec.checked.documents.iter().flat_map(|loaded| &loaded.document.ops);
    let raw = raws.into_iter().find(|raw| raw.span == found.entry).ok_or(RenameRefusal::NoName)?;
    if argument::groups(raw, new) {
        return Err(RenameRefusal::Grouped(new.to_owned()));
    }
    refuse_bound(&raw.entries, old, new)
}

fn refuse_parameter(
    spec: &EditedSpec<'_>,
    function: &str,
    old: &str,
    new: &str,
) -> Result<(), RenameRefusal> {
    let known = spec.checked.model.functions.iter().find(|known| known.name == function);
    if known.ok_or(RenameRefusal::NoName)?.params.iter().any(|param| param == new) {
        return Err(RenameRefusal::Taken(new.to_owned()));
    }
    let raws = spec.checked.documents.iter().flat_map(|loaded| &loaded.document.functions);
    let of_name = |text: &str| text.split('(').next().map(str::trim) == Some(function);
    match raws.into_iter().find(|raw| of_name(raw.func.as_str())) {
        Some(raw) => refuse_bound(&raw.entries, old, new),
        None => Err(RenameRefusal::OfLibrary(function.to_owned())),
    }
}

fn refuse_bound(entries: &[Entry], old: &str, new: &str) -> Result<(), RenameRefusal> {
    match [old, new].into_iter().find(|name| argument::binds(entries, name)) {
        Some(name) => Err(RenameRefusal::Bound(name.to_owned())),
        None => Ok(()),
    }
}

pub(super) fn edit(checked: &Checked, span: Span, new: &str) -> Option<ReplacedText> {
    let FileRange { file, part: FilePart::Bytes { start, end } } = place(checked, span)? else { return None };
    Some(ReplacedText { file, range: start..end, text: new.to_owned() })
}

/// A file's text after the edits of it.
pub(super) fn edited_text(text: &str, mut edits: Vec<&ReplacedText>) -> String {
    edits.sort_by_key(|edit| edit.range.start);
    let mut text = text.to_owned();
    for edit in edits.into_iter().rev() {
        text.replace_range(edit.range.clone(), &edit.text);
    }
    text
}

/// Checks the spec with the edits.
fn refuse_mistakes(
    spec: &EditedSpec<'_>,
    edits: &[ReplacedText],
    open: Open<'_>,
) -> Result<(), RenameRefusal> {
    let mut texts: HashMap<&Path, String> = HashMap::new();
    for (index, file) in spec.checked.files.iter().enumerate() {
        let own: Vec<&ReplacedText> = edits.iter().filter(|edit| edit.file == *file).collect();
        let Some((_, source)) = spec.checked.sources.files().nth(index).filter(|_| !own.is_empty()) else {
            continue;
        };
        texts.insert(file, edited_text(source.text(), own));
    }
    let overlaid = |path: &Path| match texts.get(path) {
        Some(text) => Ok(text.clone().into_bytes()),
        None => open(path),
    };
    let renamed = pipeline::check_again(spec.config, &overlaid, &mut Kept::default());
    let renamed = renamed.map_err(|failure| RenameRefusal::Mistake(failure.to_string()))?;
    let known: Vec<(&str, &str)> =
        spec.checked.diagnostics.errors().map(|error| (error.code, error.message.as_str())).collect();
    let is_new = |error: &&opsmith_codegen::diagnostics::Diagnostic| {
        !known.iter().any(|(code, message)| *code == error.code && *message == error.message)
    };
    match renamed.diagnostics.errors().find(is_new) {
        Some(error) => {
            let location = renamed.sources.location(error.primary.span);
            Err(RenameRefusal::Mistake(format!("{} ({location})", error.message)))
        }
        None => Ok(()),
    }
}
