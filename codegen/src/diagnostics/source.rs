//! The texts of a run, and spans in them.
//!
//! Offsets are bytes into the text as kept here: without a byte order mark, line ends as written.

use std::ops::Range;

/// Characters that change the direction of the text around them, so that its displayed order differs from its real one.
/// Rust rejects them in source code.
pub const BIDIRECTIONAL: [char; 9] = [
    '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}', '\u{2067}', '\u{2068}',
    '\u{2069}',
];

/// A file of a [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SourceId(u32);

/// A range of bytes of one file, for carets. `start == end` is a position between two characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Span {
    /// The file.
    pub source: SourceId,
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes `range` of a file. Offsets past 4 GiB are cut; such files are never read.
    pub fn new(source: SourceId, range: Range<usize>) -> Span {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span { source, start: clamp(range.start), end: clamp(range.end.max(range.start)) }
    }

    /// The bytes as a range of the file's text.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From the start of this span to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { end: other.end.max(self.start), ..self }
    }

    /// The position before the first byte.
    pub fn before(self) -> Span {
        Span { end: self.start, ..self }
    }

    /// The position after the last byte.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// A file's path as shown to the user, and its text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    path: String,
    text: String,
    line_starts: Vec<u32>,
}

impl SourceFile {
    /// The path as given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text, without a byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Line and column of an offset, both from 1; columns count characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let line = self.line_index(offset);
        let start = self.line_starts[line] as usize;
        let end = self.text.floor_char_boundary(offset.clamp(start, self.text.len()));
        (line + 1, self.text[start..end].chars().count() + 1)
    }

    /// The column of an offset from 1, in units of UTF-16, as editors count.
    pub fn utf16_column(&self, offset: usize) -> usize {
        let start = self.line_starts[self.line_index(offset)] as usize;
        let end = self.text.floor_char_boundary(offset.clamp(start, self.text.len()));
        self.text[start..end].encode_utf16().count() + 1
    }

    /// The line that holds an offset, from 0.
    pub(super) fn line_index(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start as usize <= offset).saturating_sub(1)
    }

    /// The bytes of the lines `first..=last`, from 0, with their line ends.
    pub(super) fn lines(&self, first: usize, last: usize) -> Range<usize> {
        let end = self.line_starts.get(last + 1).map_or(self.text.len(), |&start| start as usize);
        self.line_starts[first] as usize..end
    }
}

/// Every text read in a run.
#[derive(Clone, Default, Debug)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// A map without files.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a text under the path that messages show. A leading byte order mark is left out.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) -> SourceId {
        let mut text = text.into();
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0)
            .chain(newlines.map(|(offset, _)| u32::try_from(offset + 1).unwrap_or(u32::MAX)))
            .collect();
        let id = SourceId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(SourceFile { path: path.into(), text, line_starts });
        id
    }

    /// A file of this map.
    ///
    /// # Panics
    /// If `id` comes from another map.
    pub fn file(&self, id: SourceId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// A file's text.
    pub fn text(&self, id: SourceId) -> &str {
        self.file(id).text()
    }

    /// The text a span covers; empty if the span does not fit the file.
    pub fn slice(&self, span: Span) -> &str {
        self.text(span.source).get(span.range()).unwrap_or_default()
    }

    /// `path:line:column` of a span's start.
    pub fn location(&self, span: Span) -> String {
        let file = self.file(span.source);
        let (line, column) = file.line_column(span.start as usize);
        format!("{}:{line}:{column}", file.path())
    }

    /// The files in the order they were added.
    pub fn files(&self) -> impl Iterator<Item = (SourceId, &SourceFile)> {
        (0..).map(SourceId).zip(&self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn editors_count_two_for_what_lies_beyond_16_bits() {
        let mut sources = SourceMap::new();
        let id = sources.add("a.yaml", "x\n🦀é: y\n");
        let file = sources.file(id);
        let y = file.text().find('y').unwrap();
        assert_eq!((file.line_column(y), file.utf16_column(y)), ((2, 5), 6));
        assert_eq!((file.utf16_column(0), file.utf16_column(1000)), (1, 1));
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let mut sources = SourceMap::new();
        let id = sources.add("a.yaml", "\u{feff}é: x\r\nb\n");
        let file = sources.file(id);
        assert_eq!(file.line_column(0), (1, 1));
        assert_eq!(file.line_column(2), (1, 2));
        assert_eq!(file.utf16_column(2), 2);
        assert_eq!(file.line_column(7), (2, 1));
        assert_eq!(file.line_column(9), (3, 1));
        assert_eq!(file.line_column(1000), (3, 1));
        assert_eq!(sources.slice(Span::new(id, 4..5)), "x");
        assert_eq!(sources.location(Span::new(id, 7..8)), "a.yaml:2:1");
    }
}
