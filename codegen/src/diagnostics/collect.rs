//! The collector of diagnostics from all stages.

use super::{Diagnostic, Severity};

/// No user reads more than this, and a hostile file could cause millions.
pub const MAX_DIAGNOSTICS: usize = 1000;

/// The diagnostics of a run, at most [`MAX_DIAGNOSTICS`] errors and as many warnings.
#[derive(Clone, Default, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    /// Those that were left out.
    dropped: usize,
}

impl Diagnostics {
    /// No diagnostics yet.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds one, unless there are too many of its severity. Warnings never displace an error.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if *count < MAX_DIAGNOSTICS {
            *count += 1;
            self.list.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether further errors are dropped, so that a search for them is useless.
    pub fn is_full(&self) -> bool {
        self.errors >= MAX_DIAGNOSTICS
    }

    /// Whether nothing was reported, not even a warning.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of diagnostics, warnings included.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether anything was reported that stops the run.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// The number of warnings.
    pub fn warning_count(&self) -> usize {
        self.warnings
    }

    /// The number of diagnostics that were reported, those included that were left out: it grows with each.
    pub fn reported(&self) -> usize {
        self.list.len() + self.dropped
    }

    /// All of them by file and position, so that a reader goes through a file from top to bottom.
    pub fn sorted(&self) -> impl Iterator<Item = &Diagnostic> {
        let mut sorted: Vec<&Diagnostic> = self.list.iter().collect();
        sorted.sort_by_key(|diagnostic| diagnostic.primary.span);
        sorted.into_iter()
    }

    /// Number of diagnostics.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The errors, in the same order.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.sorted().filter(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{SourceMap, Span, summary};

    #[test]
    fn warnings_never_hide_an_error() {
        let source = SourceMap::new().add("a.yaml", "");
        let place = Span::new(source, 0..0);
        let mut diagnostics = Diagnostics::new();
        (0..2 * MAX_DIAGNOSTICS).for_each(|_| diagnostics.push(Diagnostic::warning("W", "odd", place, "")));
        assert!(!diagnostics.has_errors() && !diagnostics.is_full());
        diagnostics.push(Diagnostic::error("E", "wrong", place, ""));
        assert_eq!(summary(&diagnostics), "1 error, 1000 warnings");
    }
}
