//! Diagnostics: mistakes of a spec, their spans, and the corrections.
//!
//! Every stage pushes [`Diagnostic`]s into a [`Diagnostics`] collector and goes on, so that one run reports every
//! mistake. Texts are written in [`catalogue`]; [`render`] draws them in the style of rustc. Must not know the contents
//! of a spec or write to the terminal.

pub mod catalogue;
mod collect;
mod render;
mod source;
mod suggest;

pub use collect::{Diagnostics, MAX_DIAGNOSTICS};
pub use render::{render, summary};
pub use source::{BIDIRECTIONAL, SourceFile, SourceId, SourceMap, Span};
pub use suggest::nearest;

/// A mistake that was already reported: the error type of functions that report their own mistakes. A value that is
/// absent without a mistake is `Ok(None)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reported;

/// The severity of a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// Nothing is generated.
    Error,
    /// The spec is usable; something in it is probably not meant.
    Warning,
}

/// A span in a file with a short text on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The underlined text.
    pub span: Span,
    /// Shown beside the underline; empty for a bare underline.
    pub text: String,
}

/// One mistake: its code, message, spans and hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// A stable name such as `E0102`, for searching and for tests.
    pub code: &'static str,
    /// The headline: the mistake, in one line without a final stop.
    pub message: String,
    /// The span to change.
    pub primary: Label,
    /// Other spans that explain the mistake, such as a first definition.
    pub secondary: Vec<Label>,
    /// The correction.
    pub help: Option<Help>,
    /// Facts that explain the rule.
    pub notes: Vec<String>,
}

/// The correction of a mistake: a sentence and, where a word in place of the primary span would do, that word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Help {
    /// The sentence.
    pub text: String,
    /// The text to write instead of the primary span.
    pub replacement: Option<String>,
}

impl From<String> for Help {
    fn from(text: String) -> Help {
        Help { text, replacement: None }
    }
}

impl From<&str> for Help {
    fn from(text: &str) -> Help {
        Help::from(text.to_owned())
    }
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

    /// Adds another span, underlined in the same picture.
    pub fn with_secondary(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label { span, text: label.into() });
        self
    }

    /// Sets the correction.
    pub fn with_help(mut self, help: impl Into<Help>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Sets the correction if there is one.
    pub fn with_help_if(mut self, help: Option<impl Into<Help>>) -> Diagnostic {
        self.help = help.map(Into::into).or(self.help);
        self
    }

    /// Adds a fact that explains the rule.
    pub fn with_note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}
