//! The parser's errors in words that help the author of a spec.

use serde_yaml::granit_parser::{ErrorKind as Kind, ScanError};

use super::build::MAX_DEPTH;
use crate::diagnostics::{Diagnostic, SourceId, Span, catalogue};

/// What is wrong with the file, where, and what to do.
pub(super) fn explain(error: &ScanError, source: SourceId, text: &str) -> Diagnostic {
    let at = text.floor_char_boundary(error.marker().byte_offset().unwrap_or(text.len()));
    let place = Span::new(source, at..next_boundary(text, at));
    match error.kind() {
        Kind::RecursionLimitExceeded => catalogue::too_deep(place, MAX_DEPTH),
        Kind::TabNotAllowed
        | Kind::TabInBlockIndentation
        | Kind::TabInIndentation
        | Kind::TabAtBlockScalarStart
        | Kind::TabInPlainScalar => catalogue::tab(tab_near(source, text, at).unwrap_or(place)),
        // A tab is often met as something else first.
        _ if let Some(tab) = tab_indent_at(source, text, at) => catalogue::tab(tab),
        Kind::UnclosedQuotedScalar | Kind::DocumentIndicatorInQuotedScalar => {
            catalogue::quote_not_closed(place)
        }
        Kind::UnclosedFlowCollection { open } => catalogue::bracket_not_closed(place, *open),
        Kind::MismatchedFlowCollectionEnd { open, close } => {
            catalogue::bracket_mismatched(place, *open, *close)
        }
        Kind::MisplacedFlowCollectionEnd => catalogue::bracket_unexpected(place),
        Kind::UnexpectedEofFlowSequence | Kind::ExpectedFlowSequenceSeparator => {
            catalogue::flow_separator(place, ']')
        }
        Kind::UnexpectedEofFlowMapping
        | Kind::UnexpectedEofImplicitFlowMapping
        | Kind::ExpectedFlowMappingSeparator => catalogue::flow_separator(place, '}'),
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement => catalogue::colon_in_text(place),
        Kind::UnexpectedCharacter { character } => catalogue::reserved_character(place, *character),
        Kind::InvalidTrailingSingleQuotedScalar | Kind::InvalidTrailingDoubleQuotedScalar => {
            catalogue::text_after_quote(place)
        }
        Kind::UnknownQuotedScalarEscape
        | Kind::InvalidQuotedScalarHexEscape
        | Kind::InvalidLowSurrogateHexEscape
        | Kind::InvalidLowSurrogate
        | Kind::MissingLowSurrogate
        | Kind::UnpairedLowSurrogate
        | Kind::InvalidUnicodeEscape => catalogue::bad_escape(place),
        Kind::SimpleKeyExpected | Kind::InvalidSimpleKey => {
            catalogue::colon_missing(line_of(source, text, at))
        }
        Kind::ExpectedBlockMappingKey
        | Kind::ExpectedBlockSequenceEntry
        | Kind::InvalidIndentation
        | Kind::InvalidBlockScalarIndent
        | Kind::InvalidQuotedScalarIndent
        | Kind::InvalidFlowScalarIndent
        | Kind::BlockSequenceEntryNotAllowed
        | Kind::MappingKeyNotAllowed => catalogue::indentation(place),
        kind => catalogue::yaml_syntax(place, &kind.to_string()),
    }
}

fn next_boundary(text: &str, at: usize) -> usize {
    match text[at..].chars().next() {
        Some('\n' | '\r') | None => at,
        Some(c) => at + c.len_utf8(),
    }
}

/// The tab meant by an error that may be placed a line early.
fn tab_near(source: SourceId, text: &str, at: usize) -> Option<Span> {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let tab = line + text[line..].find('\t')?;
    Some(Span::new(source, tab..tab + 1))
}

/// A tab among the blanks that begin the error's line.
fn tab_indent_at(source: SourceId, text: &str, at: usize) -> Option<Span> {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let blanks = text[line..].len() - text[line..].trim_start_matches([' ', '\t']).len();
    let tab = line + text[line..line + blanks].find('\t')?;
    Some(Span::new(source, tab..tab + 1))
}

/// The text of the error's line.
fn line_of(source: SourceId, text: &str, at: usize) -> Span {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let trimmed = line.trim_start();
    let start = start + line.len() - trimmed.len();
    Span::new(source, start..start + trimmed.trim_end().len())
}
