//! The collector that every stage pushes into.

use super::{Diagnostic, Severity};

/// Nobody reads more than this, and a hostile file could cause millions.
pub const MAX_DIAGNOSTICS: usize = 1000;

/// The diagnostics of a run, at most [`MAX_DIAGNOSTICS`].
#[derive(Clone, Default, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// No diagnostics yet.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Adds one, unless the collector is full.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.is_full() {
            self.list.push(diagnostic);
        }
    }

    /// Whether further diagnostics are dropped, so that looking for them is no use.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MAX_DIAGNOSTICS
    }

    /// Whether nothing was reported, not even a warning.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many diagnostics there are, warnings included.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether anything was reported that stops the run.
    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The number of errors.
    pub fn error_count(&self) -> usize {
        self.count(Severity::Error)
    }

    /// The number of warnings.
    pub fn warning_count(&self) -> usize {
        self.count(Severity::Warning)
    }

    /// All of them by file and place, so that a reader goes through a file from top to bottom.
    pub fn sorted(&self) -> impl Iterator<Item = &Diagnostic> {
        let mut sorted: Vec<&Diagnostic> = self.list.iter().collect();
        sorted.sort_by_key(|diagnostic| diagnostic.primary.span);
        sorted.into_iter()
    }

    fn count(&self, severity: Severity) -> usize {
        self.list.iter().filter(|diagnostic| diagnostic.severity == severity).count()
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
