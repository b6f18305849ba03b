//! The features of an editor for specs: completion, hover, definitions, references, renaming, outline, quick fixes.
//!
//! In: a checked spec ([`EditedSpec`]), the text of one of its files, and an offset. Out: plain data with byte ranges. A
//! text need not be YAML while it is typed: [`Cursor`] finds the place of a position by indentation alone. Must not know
//! the protocol of editors, and writes nothing.

mod action;
mod argument;
mod completion;
mod cursor;
mod definition;
mod flow;
mod formula;
mod hover;
mod lines;
mod naming;
mod occurrence;
mod outline;
mod referent;
mod rename;
mod schema;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::{Path, PathBuf};

use opsmith_codegen::config::Config;
use opsmith_codegen::diagnostics::{SourceId, Span};
use opsmith_codegen::model::{Function, Model, Op};
use opsmith_codegen::pipeline::Checked;

pub use action::{QuickFix, quick_fixes};
pub use completion::{Candidate, CandidateKind, complete, completed};
pub use cursor::{Cursor, CursorPart, EntryText};
pub use definition::definitions;
pub use hover::{HoverText, hover};
pub use occurrence::references;
pub use outline::{OutlineEntry, OutlineKind, declarations};
pub use referent::{Referent, referent};
pub use rename::{RenameRefusal, ReplacedText, rename, renamed_name};

/// A spec while it is edited.
pub struct EditedSpec<'a> {
    /// The last check. Its model is empty while a file is not YAML.
    pub checked: &'a Checked,
    /// The last check in which every file was YAML: the operators that are known meanwhile.
    pub known: &'a Checked,
    /// The configuration of both.
    pub config: &'a Config,
}

/// Some bytes of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileRange {
    /// The file.
    pub file: PathBuf,
    /// Its bytes, or only the line if that is all that is known.
    pub part: FilePart,
}

/// A part of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FilePart {
    /// A range of bytes of the text that the check read.
    Bytes {
        /// The first.
        start: usize,
        /// One past the last.
        end: usize,
    },
    /// A line, from 0, of a file that was not checked.
    Line(usize),
    /// The whole file.
    All,
}

impl EditedSpec<'_> {
    /// The model with the operators of all files.
    pub fn model(&self) -> &Model {
        &self.known.model
    }

    /// The overloads of a base name.
    fn overloads<'m>(&'m self, base: &'m str) -> impl Iterator<Item = &'m Op> {
        let of_keyword = base.strip_suffix('_').unwrap_or(base);
        let exact = self.model().ops.iter().any(|op| op.base == base);
        let wanted = if exact { base } else { of_keyword };
        self.model().ops.iter().filter(move |op| op.base == wanted)
    }

    /// The scalar function of a name.
    fn function(&self, name: &str) -> Option<&Function> {
        self.model().functions.iter().find(|function| function.name == name)
    }

    /// The source of a text, if the known check read it as it is now.
    fn source_of_text(&self, text: &str) -> Option<SourceId> {
        self.known.sources.files().find(|(_, file)| file.text() == text).map(|(id, _)| id)
    }

    /// The operator of an entry with this signature: its arguments are those of the last check.
    fn operator_of(&self, cursor: &Cursor<'_>) -> Option<&Op> {
        if cursor.is_function() {
            return None;
        }
        let (func, _) = cursor.entry.as_ref()?.func.as_ref()?;
        let name = func.split('(').next()?.trim();
        self.model().ops.iter().find(|op| op.name == name && op.parent.is_none())
    }

    /// The file and range of a span of the known check.
    fn place(&self, span: Span) -> Option<FileRange> {
        place(self.known, span)
    }
}

/// The file and range of a span, with the path by which the file was read.
pub fn place(checked: &Checked, span: Span) -> Option<FileRange> {
    let file = path_of(checked, span.source)?.to_owned();
    let Range { start, end } = span.range();
    Some(FileRange { file, part: FilePart::Bytes { start, end } })
}

/// The path by which a source was read.
pub fn path_of(checked: &Checked, source: SourceId) -> Option<&Path> {
    let index = checked.sources.files().position(|(id, _)| id == source)?;
    checked.files.get(index).map(PathBuf::as_path)
}

/// The source that was read from a path.
pub fn source_of(checked: &Checked, file: &Path) -> Option<SourceId> {
    let index = checked.files.iter().position(|known| known == file)?;
    checked.sources.files().nth(index).map(|(id, _)| id)
}
