//! From the data of the checker and the editor's features to the types of the protocol.

use std::path::Path;

use gen_lsp_types::{
    Code, CompletionItem, CompletionItemKind, CompletionItemTextEdit, Diagnostic,
    DiagnosticRelatedInformation, DiagnosticSeverity, Documentation, Location, MarkupContent, MarkupKind,
    Message, Position, Range, TextEdit, Uri,
};
use opsmith_codegen::diagnostics::{self, Label, Severity};
use opsmith_codegen::pipeline::Checked;
use opsmith_tools::editor::{Candidate, CandidateKind, FilePart, FileRange, path_of, source_of};

use super::documents::Documents;
use super::paths::{identity, uri_of};
use super::position::{Encoding, Lines};

/// The context of every conversion.
#[derive(Clone, Copy)]
pub struct Convert<'a> {
    /// The open texts, whose URIs the editor has chosen.
    pub documents: &'a Documents,
    /// The unit of columns.
    pub encoding: Encoding,
}

impl Convert<'_> {
    /// The editor's name of a file.
    pub fn uri(&self, path: &Path) -> Uri {
        match self.documents.get(path) {
            Some(open) => open.uri.clone(),
            None => uri_of(&identity(path)),
        }
    }

    /// A place in the protocol's terms; byte ranges are of the texts of a check.
    pub fn location(&self, checked: &Checked, place: &FileRange) -> Location {
        let range = match place.part {
            FilePart::Bytes { start, end } => {
                let source = source_of(checked, &place.file);
                let text = source.map_or("", |source| checked.sources.text(source));
                Lines::new(text, self.encoding).range(start..end)
            }
            FilePart::Line(line) => {
                let start = Position::new(u32::try_from(line).unwrap_or(u32::MAX), 0);
                Range { start, end: start }
            }
            FilePart::All => Range::default(),
        };
        Location { uri: self.uri(&place.file), range }
    }

    /// The place of a label.
    fn label(&self, checked: &Checked, label: &Label) -> Option<Location> {
        let file = path_of(checked, label.span.source)?;
        let text = checked.sources.text(label.span.source);
        let range = Lines::new(text, self.encoding).range(label.span.range());
        Some(Location { uri: self.uri(file), range })
    }

    /// A diagnostic; `lines` are those of its file.
    pub fn diagnostic(
        &self,
        checked: &Checked,
        found: &diagnostics::Diagnostic,
        lines: &Lines<'_>,
    ) -> Diagnostic {
        let related = found.secondary.iter().filter_map(|label| {
            let location = self.label(checked, label)?;
            let message = if label.text.is_empty() { found.message.clone() } else { label.text.clone() };
            Some(DiagnosticRelatedInformation { location, message })
        });
        let related: Vec<DiagnosticRelatedInformation> = related.collect();
        Diagnostic {
            range: lines.range(found.primary.span.range()),
            severity: Some(match found.severity {
                Severity::Error => DiagnosticSeverity::Error,
                Severity::Warning => DiagnosticSeverity::Warning,
            }),
            code: Some(Code::String(found.code.to_owned())),
            code_description: None,
            source: Some("opsmith".to_owned()),
            message: Message::String(message(found)),
            tags: None,
            related_information: (!related.is_empty()).then_some(related),
            data: None,
        }
    }
}

/// The headline, the label, notes and the correction, a line each.
fn message(found: &diagnostics::Diagnostic) -> String {
    let mut text = found.message.clone();
    if !found.primary.text.is_empty() {
        text.push_str(&format!(": {}", found.primary.text));
    }
    for note in &found.notes {
        text.push_str(&format!("\nnote: {note}"));
    }
    if let Some(help) = &found.help {
        text.push_str(&format!("\nhelp: {}", help.text));
    }
    text
}

/// A candidate of completion, which takes the place of some text.
pub fn completion(candidate: Candidate, range: Range) -> CompletionItem {
    let Candidate { text, suffix, kind, detail, doc } = candidate;
    CompletionItem {
        label: text.clone(),
        kind: Some(match kind {
            CandidateKind::Key => CompletionItemKind::Property,
            CandidateKind::Word => CompletionItemKind::EnumMember,
            CandidateKind::Value => CompletionItemKind::Variable,
            CandidateKind::Operator | CandidateKind::Function => CompletionItemKind::Function,
            CandidateKind::Rule | CandidateKind::Query => CompletionItemKind::Method,
            CandidateKind::DType => CompletionItemKind::Constant,
            CandidateKind::Type => CompletionItemKind::Class,
            CandidateKind::File => CompletionItemKind::File,
        }),
        detail: Some(detail).filter(|detail| !detail.is_empty()),
        documentation: Some(doc)
            .filter(|doc| !doc.is_empty())
            .map(|doc| Documentation::MarkupContent(markdown(doc))),
        text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit {
            range,
            new_text: format!("{text}{suffix}"),
        })),
        ..CompletionItem::default()
    }
}

/// Markdown.
pub fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}
