//! From the bytes of a file to its text.
//!
//! A file in another encoding is decoded as far as possible, so that its other mistakes are found too.

use crate::diagnostics::{BIDIRECTIONAL, Diagnostics, SourceId, SourceMap, Span, catalogue};

/// Adds a file to the sources. Bytes that are not UTF-8 are reported and become replacement characters.
pub fn add(sources: &mut SourceMap, name: &str, bytes: Vec<u8>, diagnostics: &mut Diagnostics) -> SourceId {
    let units = |of: fn([u8; 2]) -> u16| -> Vec<u16> {
        bytes.chunks_exact(2).skip(1).map(|pair| of([pair[0], pair[1]])).collect()
    };
    let utf16 = match bytes.get(..2) {
        Some([0xff, 0xfe]) => Some(units(u16::from_le_bytes)),
        Some([0xfe, 0xff]) => Some(units(u16::from_be_bytes)),
        _ => None,
    };
    if let Some(units) = utf16 {
        let source = sources.add(name, String::from_utf16_lossy(&units));
        diagnostics.push(catalogue::file_utf16(Span::new(source, 0..0)));
        return source;
    }
    match String::from_utf8(bytes) {
        Ok(text) => sources.add(name, text),
        Err(error) => {
            // A byte order mark is dropped.
            let mark = if error.as_bytes().starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
            let at = error.utf8_error().valid_up_to();
            let byte = error.as_bytes()[at];
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let more = text.matches('\u{fffd}').count().saturating_sub(1);
            let source = sources.add(name, text);
            let start = at - mark;
            let span = Span::new(source, start..start + '\u{fffd}'.len_utf8());
            diagnostics.push(catalogue::file_not_utf8(span, byte, more));
            source
        }
    }
}

/// Reports every character that makes the displayed text differ from the real one.
pub(super) fn refuse_hidden(source: SourceId, text: &str, diagnostics: &mut Diagnostics) {
    let mut line_start = 0;
    for line in text.split_inclusive('\n') {
        // Nearly every line has none but ASCII characters, which costs a small part of a comparison of each with several.
        let found = if line.is_ascii() { None } else { Some(line.match_indices(BIDIRECTIONAL)) };
        for (offset, found) in found.into_iter().flatten() {
            let (start, character) = (line_start + offset, found.chars().next().unwrap_or_default());
            let span = Span::new(source, start..start + found.len());
            diagnostics.push(catalogue::bidirectional(span, character));
        }
        line_start += line.len();
    }
}
