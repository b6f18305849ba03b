//! Positions of editors: a line and a column, in units that the editor chooses.
//!
//! In: offsets in bytes and texts. Out: positions, and the other way round. Positions outside of a text are its nearest.

use std::ops::Range;

use gen_lsp_types::Position;

/// The unit of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// Units of UTF-16, which every editor knows.
    Utf16,
}

/// A text with the starts of its lines.
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    encoding: Encoding,
}

impl<'a> Lines<'a> {
    /// Finds the lines of a text.
    pub fn new(text: &'a str, encoding: Encoding) -> Lines<'a> {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        Lines { text, starts, encoding }
    }

    /// The position of an offset.
    pub fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let before = &self.text[self.starts[line]..offset];
        let column = match self.encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
        };
        Position::new(clamp(line), clamp(column))
    }

    /// The positions of some bytes.
    pub fn range(&self, bytes: Range<usize>) -> gen_lsp_types::Range {
        gen_lsp_types::Range {
            start: self.position(bytes.start),
            end: self.position(bytes.end.max(bytes.start)),
        }
    }

    /// The offset of a position; the end of a line or text for one beyond it.
    pub fn offset(&self, position: Position) -> usize {
        let Some(&start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let next = self.starts.get(position.line as usize + 1).copied().unwrap_or(self.text.len() + 1);
        let line = self.text[start..next - 1].trim_end_matches('\r');
        let wanted = position.character as usize;
        let length = match self.encoding {
            Encoding::Utf8 => line.floor_char_boundary(wanted),
            Encoding::Utf16 => {
                let mut units = 0;
                let reached = |(_, letter): &(usize, char)| {
                    units += letter.len_utf16();
                    units > wanted
                };
                line.char_indices().find(reached).map_or(line.len(), |(at, _)| at)
            }
        };
        start + length
    }

    /// The bytes between two positions.
    pub fn bytes(&self, range: gen_lsp_types::Range) -> Range<usize> {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }
}

fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_both_units() {
        let text = "ä🦀x\r\ny";
        let x = text.find('x').unwrap();
        for (encoding, column) in [(Encoding::Utf16, 3), (Encoding::Utf8, 6)] {
            let lines = Lines::new(text, encoding);
            assert_eq!(lines.position(x), Position::new(0, column));
            assert_eq!(lines.offset(Position::new(0, column)), x);
            assert_eq!(lines.offset(Position::new(0, 99)), text.find('\r').unwrap());
            assert_eq!(lines.offset(Position::new(1, 1)), text.len());
            assert_eq!(lines.offset(Position::new(9, 0)), text.len());
            assert_eq!(lines.position(text.len()), Position::new(1, 1));
        }
        // The middle of a character is its start.
        assert_eq!(Lines::new(text, Encoding::Utf16).offset(Position::new(0, 2)), 2);
        assert_eq!(Lines::new(text, Encoding::Utf8).offset(Position::new(0, 4)), 2);
    }
}
