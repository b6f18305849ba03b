//! Quick fixes: the suggestions of diagnostics as edits.
//!
//! In: a checked spec and some bytes of a file. Out: a replacement for each diagnostic there that suggests one.

use std::ops::Range;

use opsmith_codegen::diagnostics::{Diagnostic, SourceId, Span};
use opsmith_codegen::pipeline::Checked;

/// A suggestion of a diagnostic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuickFix<'a> {
    /// The diagnostic.
    pub diagnostic: &'a Diagnostic,
    /// The bytes to replace.
    pub span: Span,
    /// The new text.
    pub replacement: &'a str,
}

/// The suggestions of the diagnostics that touch some bytes of a file.
pub fn quick_fixes(checked: &Checked, file: SourceId, range: Range<usize>) -> Vec<QuickFix<'_>> {
    let touches = |span: Span| {
        let own = span.range();
        span.source == file && own.start <= range.end && range.start <= own.end
    };
    let fix = |diagnostic| quick_fix(checked, diagnostic);
    let found = checked.diagnostics.sorted().filter(|diagnostic| touches(diagnostic.primary.span));
    found.filter_map(fix).collect()
}

/// The suggestion of a diagnostic. The replacement stands inside quotes, if the text has some.
fn quick_fix<'a>(checked: &'a Checked, diagnostic: &'a Diagnostic) -> Option<QuickFix<'a>> {
    let replacement = diagnostic.help.as_ref()?.replacement.as_deref()?;
    let span = diagnostic.primary.span;
    let written = checked.sources.slice(span);
    let inside = written.trim_matches(['"', '\'']);
    let start = span.range().start + written.find(inside)?;
    let span = Span::new(span.source, start..start + inside.len());
    // A suggestion replaces a word; a diagnostic about more has its correction elsewhere.
    let is_word = !inside.is_empty() && !inside.contains(char::is_whitespace);
    is_word.then_some(QuickFix { diagnostic, span, replacement })
}
