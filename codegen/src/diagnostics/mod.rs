//! What is wrong with a spec, where, and what to do about it.
//!
//! Every stage pushes [`Diagnostic`]s into a [`Diagnostics`] collector and goes on, so that one run
//! reports every mistake. Texts are written in [`catalogue`]; [`render`] draws them in the style of
//! rustc. Nothing here knows what a spec contains, and nothing here writes to the terminal.

pub mod catalogue;
mod collect;
mod render;
mod source;
mod suggest;

pub use collect::{Diagnostics, MAX_DIAGNOSTICS};
pub use render::{render, summary};
pub use source::{BIDIRECTIONAL, SourceFile, SourceId, SourceMap, Span};
pub use suggest::nearest;

/// A mistake that was found and reported: the error of a function that reports where it finds. A value that is
/// absent without a mistake is `Ok(None)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reported;

/// How bad a diagnostic is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// Nothing is generated.
    Error,
    /// The spec is usable; something in it is probably not meant.
    Warning,
}

/// A place in a file with a few words on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The underlined text.
    pub span: Span,
    /// Shown beside the underline; empty for a bare underline.
    pub text: String,
}

/// One mistake: its code, message, places and hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// A stable name such as `E0102`, for searching and for tests.
    pub code: &'static str,
    /// The headline: what is wrong, in one line without a final stop.
    pub message: String,
    /// The place to change.
    pub primary: Label,
    /// Other places that explain the mistake, such as a first definition.
    pub secondary: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
    /// Facts that explain the rule.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error at `span`, with `label` beside the underline.
    pub fn error(
        code: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            primary: Label { span, text: label.into() },
            secondary: Vec::new(),
            help: None,
            notes: Vec::new(),
        }
    }

    /// A warning at `span`, with `label` beside the underline.
    pub fn warning(
        code: &'static str,
        message: impl Into<String>,
        span: Span,
        label: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message, span, label) }
    }

    /// Adds another place, underlined in the same picture.
    pub fn with_secondary(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label { span, text: label.into() });
        self
    }

    /// Sets what to do about it.
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Sets the hint if there is one.
    pub fn with_help_if(mut self, help: Option<String>) -> Diagnostic {
        self.help = help.or(self.help);
        self
    }

    /// Adds a fact that explains the rule.
    pub fn with_note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}
