//! Definitions: the ranges that a position refers to.
//!
//! In: a spec and a [`Cursor`]. Out: files with ranges. Functions in Rust, C and C++ are found as `opsmith explain` finds
//! them, by searching their files as text.

use std::path::{Path, PathBuf};

use opsmith_codegen::Backend;
use opsmith_codegen::code_places::CodePlaces;
use opsmith_codegen::model::Op;

use super::cursor::Cursor;
use super::referent::{Referent, referent};
use super::{EditedSpec, FilePart, FileRange, path_of};

/// The ranges that declare the thing at a position.
pub fn definitions(spec: &EditedSpec<'_>, cursor: &Cursor<'_>) -> Vec<FileRange> {
    let Some(found) = referent(spec, cursor) else { return Vec::new() };
    match found {
        Referent::Operator(name) => operators(spec, &name),
        Referent::Signature => {
            spec.operator_of(cursor).and_then(|op| spec.place(op.span)).into_iter().collect()
        }
        Referent::Function(name) => {
            let function = spec.function(&name);
            function.and_then(|function| spec.place(function.span)).into_iter().collect()
        }
        Referent::Argument(name) | Referent::Value(name) => {
            declared(spec, cursor, &name).into_iter().collect()
        }
        Referent::Code(backend, path) => code(spec, backend.as_deref(), &path).into_iter().collect(),
        Referent::File(name) => file(spec, &name).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn operators(spec: &EditedSpec<'_>, name: &str) -> Vec<FileRange> {
    let full: Vec<&Op> = spec.model().ops.iter().filter(|op| op.name == name).collect();
    let found = if full.is_empty() { spec.overloads(name).collect() } else { full };
    found.into_iter().filter_map(|op| spec.place(op.span)).collect()
}

/// The argument or named result in the signature of the entry, of the file under the cursor.
fn declared(spec: &EditedSpec<'_>, cursor: &Cursor<'_>, name: &str) -> Option<FileRange> {
    let (_, range) = cursor.entry.as_ref()?.func.as_ref()?;
    let names = super::formula::names(&cursor.text[range.clone()]);
    let is_it = |found: &&super::formula::Name| {
        !found.is_called && &cursor.text[range.clone()][found.range.clone()] == name
    };
    let found = names.iter().rfind(is_it)?;
    let (start, end) = (range.start + found.range.start, range.start + found.range.end);
    let file = path_of(spec.known, spec.source_of_text(cursor.text)?)?.to_owned();
    Some(FileRange { file, part: FilePart::Bytes { start, end } })
}

/// A function in Rust, C or C++.
fn code(spec: &EditedSpec<'_>, key: Option<&str>, path: &str) -> Option<FileRange> {
    let mut sources = CodePlaces::new(spec.config);
    let plain = path.strip_prefix("aot:").unwrap_or(path);
    let of_file =
        plain.split_once(':').filter(|(_, symbol)| !symbol.starts_with(':') && !plain.contains("::"));
    let place = match (of_file, key.and_then(Backend::from_key)) {
        (Some((file, symbol)), _) => {
            let found = sources.foreign(Path::new(file), symbol);
            return found.map_or_else(|| whole_file(spec, file), |found| line(&found));
        }
        (None, Some(backend)) => sources.kernel(plain, backend),
        (None, None) => sources.rust(plain),
    };
    line(&place?)
}

/// `file:line` as a place.
fn line(place: &str) -> Option<FileRange> {
    let (file, line) = place.rsplit_once(':')?;
    let line: usize = line.parse().ok()?;
    Some(FileRange { file: PathBuf::from(file), part: FilePart::Line(line.saturating_sub(1)) })
}

fn whole_file(spec: &EditedSpec<'_>, file: &str) -> Option<FileRange> {
    let folder = spec.config.spec.parent().unwrap_or(Path::new(""));
    let file = folder.join(file);
    file.is_file().then_some(FileRange { file, part: FilePart::All })
}

/// An included file, which lies relative to the file that includes it.
fn file(spec: &EditedSpec<'_>, name: &str) -> Option<FileRange> {
    let includes = |loaded: &&opsmith_codegen::spec::document::Loaded| {
        loaded.document.include.iter().any(|include| include.as_str() == name)
    };
    let loaded = spec.known.documents.iter().find(includes)?;
    let include = loaded.document.include.iter().find(|include| include.as_str() == name)?;
    let folder = path_of(spec.known, include.span().source)?.parent().unwrap_or(Path::new(""));
    let file = folder.join(name);
    file.is_file().then_some(FileRange { file, part: FilePart::All })
}
