//! The parser's errors in words that help the author of a spec.

use serde_yaml::granit_parser::{ErrorKind as Kind, ScanError};

use super::build::MAX_DEPTH;
use crate::diagnostics::{Diagnostic, SourceId, Span, catalogue};

/// The diagnostic for a parser error: mistake, span and correction.
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
        // The parser often reports a tab as another error.
        _ if let Some(tab) = tab_indent_at(source, text, at) => catalogue::tab(tab),
        Kind::UnclosedQuotedScalar
        | Kind::DocumentIndicatorInQuotedScalar
        | Kind::InvalidQuotedScalarIndent => {
            catalogue::quote_not_closed(value_start(source, text, at, &['"', '\'']).unwrap_or(place))
        }
        Kind::UnclosedFlowCollection { open } => catalogue::bracket_not_closed(place, *open),
        Kind::MismatchedFlowCollectionEnd { open, close } => {
            let wrong = text[at..]
                .find(*close)
                .map_or(place, |offset| Span::new(source, at + offset..at + offset + close.len_utf8()));
            catalogue::bracket_mismatched(wrong, place, *open, *close)
        }
        Kind::MisplacedFlowCollectionEnd => catalogue::bracket_unexpected(place),
        Kind::UnexpectedEofFlowSequence | Kind::ExpectedFlowSequenceSeparator => {
            catalogue::flow_separator(place, ']')
        }
        Kind::UnexpectedEofFlowMapping
        | Kind::UnexpectedEofImplicitFlowMapping
        | Kind::ExpectedFlowMappingSeparator => catalogue::flow_separator(place, '}'),
        Kind::MappingValueNotAllowed | Kind::InvalidColonPlacement => colon(source, text, at, place),
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
        | Kind::InvalidUnicodeEscape => {
            catalogue::bad_escape(escape_after(source, text, at).unwrap_or(place))
        }
        Kind::SimpleKeyExpected | Kind::InvalidSimpleKey => {
            catalogue::colon_missing(line_of(source, text, at))
        }
        Kind::ExpectedBlockMappingKey
        | Kind::ExpectedBlockSequenceEntry
        | Kind::InvalidIndentation
        | Kind::InvalidBlockScalarIndent
        | Kind::InvalidFlowScalarIndent
        | Kind::BlockSequenceEntryNotAllowed
        | Kind::MappingKeyNotAllowed => catalogue::indentation(place),
        kind => catalogue::yaml_syntax(place, &kind.to_string()),
    }
}

/// A colon where no mapping can start: a bracket left open above, a key indented too far, or a
/// second colon in plain text.
fn colon(source: SourceId, text: &str, at: usize, place: Span) -> Diagnostic {
    let line = line_of(source, text, at);
    if let Some(open) = value_start(source, text, line.start as usize, &['[', '{']) {
        let bracket = text[open.range()].chars().next().unwrap_or('[');
        let close = if bracket == '[' { ']' } else { '}' };
        if !text[open.end as usize..at].contains(close) {
            return catalogue::bracket_not_closed(open, bracket);
        }
    }
    let before = text.get(line.start as usize..at).unwrap_or_default();
    match before.contains(": ") || before.starts_with("- ") {
        true => catalogue::colon_in_text(place),
        false => catalogue::indented_too_far(Span::new(source, line.start as usize..at), before),
    }
}

/// The last value before `at` that begins with one of `marks`; the span of the mark.
fn value_start(source: SourceId, text: &str, at: usize, marks: &[char]) -> Option<Span> {
    let before = text.get(..at)?;
    let begins_value = |offset: usize| before[..offset].ends_with(": ") || before[..offset].ends_with("- ");
    let (offset, mark) = before.rmatch_indices(marks).take(100).find(|(offset, _)| begins_value(*offset))?;
    Some(Span::new(source, offset..offset + mark.len()))
}

/// The first escape from `at` on that double quotes do not have.
fn escape_after(source: SourceId, text: &str, at: usize) -> Option<Span> {
    let mut rest = text[at..].char_indices();
    while let Some((offset, c)) = rest.next() {
        if c != '\\' {
            continue;
        }
        let (_, escaped) = rest.next()?;
        let digits = |count: usize| text.get(at + offset + 2..at + offset + 2 + count).unwrap_or_default();
        let code = |count: usize| u32::from_str_radix(digits(count), 16).ok().and_then(char::from_u32);
        let known = match escaped {
            'x' => code(2).is_some(),
            'u' => code(4).is_some(),
            'U' => code(8).is_some(),
            _ => "0abt\tnvfre \"/\\N_LP\r\n".contains(escaped),
        };
        if !known {
            return Some(Span::new(source, at + offset..at + offset + 1 + escaped.len_utf8()));
        }
    }
    None
}

fn next_boundary(text: &str, at: usize) -> usize {
    match text[at..].chars().next() {
        Some('\n' | '\r') | None => at,
        Some(c) => at + c.len_utf8(),
    }
}

/// The tab that caused an error, which may be reported one line early.
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
