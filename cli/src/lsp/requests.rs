//! The answers to requests.
//!
//! In: a method with its parameters, the open texts and their specs. Out: the result as the protocol has it, or the reason
//! why there is none. Each request is one feature of `opsmith_tools::editor`.

use std::collections::HashMap;
use std::path::PathBuf;

use gen_lsp_types::{
    BaseSymbolInformation, CodeAction, CodeActionKind, CodeActionParams, CompletionParams, DefinitionParams,
    DocumentFormattingParams, DocumentHighlightParams, DocumentSymbol, DocumentSymbolParams, Hover,
    HoverParams, Location, PrepareRenameParams, ReferenceParams, RenameParams, SymbolInformation, SymbolKind,
    SymbolTag, TextDocumentIdentifier, TextDocumentPositionParams, TextEdit, WorkspaceEdit,
    WorkspaceSymbolParams,
};
use lsp_server::ErrorCode;
use opsmith_codegen::pipeline::Checked;
use opsmith_codegen::spec::yaml::MAX_BYTES;
use opsmith_tools::editor::{self, Cursor, EditedSpec, OutlineEntry, OutlineKind};
use opsmith_tools::fmt::{self, NotFormatted};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::convert::{Convert, completion, markdown};
use super::documents::{Documents, OpenText};
use super::paths::path_of;
use super::position::{Encoding, Lines};
use super::specs::Specs;

/// The reason why a request has no result.
pub struct RequestFailure {
    /// The code of the protocol.
    pub code: ErrorCode,
    /// The reason, for the user.
    pub message: String,
    /// Whether the editor should show it as a message, too.
    pub is_shown: bool,
}

impl RequestFailure {
    fn refused(message: String) -> RequestFailure {
        RequestFailure { code: ErrorCode::RequestFailed, message, is_shown: false }
    }
}

/// A result, as JSON.
type Answer = Result<Value, RequestFailure>;

/// The state that requests read.
pub struct Answers<'a> {
    /// The open texts.
    pub documents: &'a Documents,
    /// Their specs.
    pub specs: &'a Specs,
    /// The unit of columns.
    pub encoding: Encoding,
}

/// A position in an open text, with its spec.
struct Asked<'a> {
    path: PathBuf,
    open: &'a OpenText,
    lines: Lines<'a>,
    spec: EditedSpec<'a>,
}

impl<'a> Answers<'a> {
    /// Answers a request.
    ///
    /// # Errors
    /// If the method is unknown, its parameters are wrong, or it was refused.
    pub fn answer(&self, method: &str, params: Value) -> Answer {
        match method {
            "textDocument/completion" => self.completion(&read(params)?),
            "textDocument/hover" => self.hover(&read(params)?),
            "textDocument/definition" => self.definition(&read(params)?),
            "textDocument/references" => self.references(&read(params)?),
            "textDocument/documentHighlight" => self.highlights(&read(params)?),
            "textDocument/prepareRename" => self.prepare_rename(&read(params)?),
            "textDocument/rename" => self.rename(&read(params)?),
            "textDocument/documentSymbol" => self.document_symbols(&read(params)?),
            "workspace/symbol" => self.workspace_symbols(&read(params)?),
            "textDocument/codeAction" => self.code_actions(&read(params)?),
            "textDocument/formatting" => self.formatting(&read(params)?),
            _ => Err(RequestFailure {
                code: ErrorCode::MethodNotFound,
                message: format!("there is no method `{method}` here"),
                is_shown: false,
            }),
        }
    }

    fn convert(&self) -> Convert<'a> {
        Convert { documents: self.documents, encoding: self.encoding }
    }

    /// The open text of a document; `None` for one that is unknown or no spec.
    fn asked(&self, document: &TextDocumentIdentifier) -> Option<Asked<'a>> {
        let path = path_of(&document.uri)?;
        let open = self.documents.get(&path).filter(|open| open.text.len() <= MAX_BYTES)?;
        let spec = self.specs.of(&path)?.edited()?;
        let lines = Lines::new(&open.text, self.encoding);
        Some(Asked { path, open, lines, spec })
    }

    /// As [`Answers::asked`], with a position.
    fn at(&self, params: &TextDocumentPositionParams) -> Option<(Asked<'a>, Cursor<'a>)> {
        let asked = self.asked(&params.text_document)?;
        let offset = asked.lines.offset(params.position);
        let cursor = Cursor::at(&asked.open.text, offset);
        Some((asked, cursor))
    }

    fn completion(&self, params: &CompletionParams) -> Answer {
        let Some((asked, cursor)) = self.at(&params.text_document_position_params) else { return none() };
        let range = asked.lines.range(editor::completed(&cursor));
        let found = editor::complete(&asked.spec, &cursor, &asked.path);
        to_json(&found.into_iter().map(|candidate| completion(candidate, range)).collect::<Vec<_>>())
    }

    fn hover(&self, params: &HoverParams) -> Answer {
        let Some((asked, cursor)) = self.at(&params.text_document_position_params) else { return none() };
        let Some(found) = editor::hover(&asked.spec, &cursor) else { return none() };
        let range = Some(asked.lines.range(found.range));
        to_json(&Hover { contents: markdown(found.markdown).into(), range })
    }

    fn definition(&self, params: &DefinitionParams) -> Answer {
        let Some((asked, cursor)) = self.at(&params.text_document_position_params) else { return none() };
        let found = editor::definitions(&asked.spec, &cursor);
        let known = asked.spec.known;
        to_json(&found.iter().map(|place| self.convert().location(known, place)).collect::<Vec<_>>())
    }

    fn references(&self, params: &ReferenceParams) -> Answer {
        let Some((asked, cursor)) = self.at(&params.text_document_position_params) else { return none() };
        let found = editor::references(&asked.spec, &cursor, params.context.include_declaration);
        let known = asked.spec.known;
        to_json(&found.iter().map(|place| self.convert().location(known, place)).collect::<Vec<_>>())
    }

    /// The references in the text itself.
    fn highlights(&self, params: &DocumentHighlightParams) -> Answer {
        let Some((asked, cursor)) = self.at(&params.text_document_position_params) else { return none() };
        let own = super::paths::identity(&asked.path);
        let found = editor::references(&asked.spec, &cursor, true).into_iter();
        let here = found.filter(|place| super::paths::identity(&place.file) == own);
        let range = |place| self.convert().location(asked.spec.known, &place).range;
        to_json(&here.map(|place| json!({ "range": range(place) })).collect::<Vec<_>>())
    }

    fn prepare_rename(&self, params: &PrepareRenameParams) -> Answer {
        let Some((asked, cursor)) = self.at(&params.text_document_position_params) else { return none() };
        let name = editor::renamed_name(&asked.spec, &cursor);
        let name = name.map_err(|refusal| RequestFailure::refused(refusal.to_string()))?;
        to_json(&json!({ "range": asked.lines.range(cursor.word()), "placeholder": name }))
    }

    fn rename(&self, params: &RenameParams) -> Answer {
        let Some((asked, cursor)) = self.at(&params.text_document_position_params) else { return none() };
        let open = |path: &std::path::Path| self.documents.read(path);
        let edits = editor::rename(&asked.spec, &cursor, &params.new_name, &open);
        let edits = edits.map_err(|refusal| RequestFailure::refused(refusal.to_string()))?;
        let checked = asked.spec.checked;
        let mut changes: HashMap<_, Vec<TextEdit>> = HashMap::new();
        for edit in edits {
            let Some(source) = editor::source_of(checked, &edit.file) else { continue };
            let lines = Lines::new(checked.sources.text(source), self.encoding);
            let new = TextEdit { range: lines.range(edit.range), new_text: edit.text };
            changes.entry(self.convert().uri(&edit.file)).or_default().push(new);
        }
        to_json(&WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
    }

    fn document_symbols(&self, params: &DocumentSymbolParams) -> Answer {
        let Some(asked) = self.asked(&params.text_document) else { return none() };
        // While a file is not YAML, its entries are those it had.
        let known = asked.spec.known;
        let file = known
            .files
            .iter()
            .find(|file| super::paths::identity(file) == super::paths::identity(&asked.path));
        let Some(source) = file.and_then(|file| editor::source_of(known, file)) else { return none() };
        let lines = Lines::new(known.sources.text(source), self.encoding);
        let symbol = |found: OutlineEntry| {
            #[allow(deprecated, reason = "the field is part of the struct; `tags` are used instead")]
            DocumentSymbol {
                name: found.name.clone(),
                detail: Some(found.signature.clone()),
                kind: kind(found.kind),
                tags: tags(&found),
                deprecated: None,
                range: lines.range(found.entry.range()),
                selection_range: lines.range(found.place.range()),
                children: None,
            }
        };
        to_json(&editor::declarations(known, Some(source)).into_iter().map(symbol).collect::<Vec<_>>())
    }

    fn workspace_symbols(&self, params: &WorkspaceSymbolParams) -> Answer {
        let mut symbols: Vec<SymbolInformation> = Vec::new();
        for (_, spec) in self.specs.all() {
            let Some(EditedSpec { known, .. }) = spec.edited() else { continue };
            let matching = editor::declarations(known, None)
                .into_iter()
                .filter(|found| is_like(&found.name, &params.query));
            symbols.extend(matching.filter_map(|found| self.symbol(known, &found)));
        }
        to_json(&symbols)
    }

    fn symbol(&self, known: &Checked, found: &OutlineEntry) -> Option<SymbolInformation> {
        let location: Location = self.convert().location(known, &editor::place(known, found.place)?);
        #[allow(deprecated, reason = "the field is part of the struct; `tags` are used instead")]
        Some(SymbolInformation {
            deprecated: None,
            location,
            base_symbol_information: BaseSymbolInformation {
                name: found.name.clone(),
                kind: kind(found.kind),
                tags: tags(found),
                container_name: None,
            },
        })
    }

    fn code_actions(&self, params: &CodeActionParams) -> Answer {
        let Some(asked) = self.asked(&params.text_document) else { return none() };
        let checked = asked.spec.checked;
        let file = checked
            .files
            .iter()
            .find(|file| super::paths::identity(file) == super::paths::identity(&asked.path));
        let Some(source) = file.and_then(|file| editor::source_of(checked, file)) else { return none() };
        let fixes = editor::quick_fixes(checked, source, asked.lines.bytes(params.range));
        let action = |fix: editor::QuickFix<'_>| {
            let edit =
                TextEdit { range: asked.lines.range(fix.span.range()), new_text: fix.replacement.to_owned() };
            let changes = HashMap::from([(asked.open.uri.clone(), vec![edit])]);
            CodeAction {
                title: format!("Replace with `{}`", fix.replacement),
                kind: Some(CodeActionKind::QuickFix),
                diagnostics: Some(vec![self.convert().diagnostic(checked, fix.diagnostic, &asked.lines)]),
                is_preferred: Some(true),
                edit: Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }),
                ..CodeAction::default()
            }
        };
        to_json(&fixes.into_iter().map(action).collect::<Vec<_>>())
    }

    /// The whole text in its canonical form, as one edit.
    fn formatting(&self, params: &DocumentFormattingParams) -> Answer {
        let open =
            path_of(&params.text_document.uri).and_then(|path| Some((self.documents.get(&path)?, path)));
        let Some((open, path)) = open else { return none() };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match fmt::format_bytes(&name, open.text.as_bytes().to_vec()) {
            Ok(formatted) if formatted == *open.text => to_json(&Vec::<TextEdit>::new()),
            Ok(formatted) => {
                let range = Lines::new(&open.text, self.encoding).range(0..open.text.len());
                to_json(&[TextEdit { range, new_text: formatted }])
            }
            Err(NotFormatted::Mistakes(sources, found)) => {
                let first = found
                    .sorted()
                    .next()
                    .map(|first| format!(": {} ({})", first.message, sources.location(first.primary.span)));
                let message =
                    format!("{name} is left alone, because it has mistakes{}", first.unwrap_or_default());
                Err(RequestFailure { code: ErrorCode::RequestFailed, message, is_shown: true })
            }
            Err(NotFormatted::Defect(text)) => {
                let message =
                    format!("{name} is left alone; the formatter has a defect, please report it: {text}");
                Err(RequestFailure { code: ErrorCode::RequestFailed, message, is_shown: true })
            }
        }
    }
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, RequestFailure> {
    serde_json::from_value(params).map_err(|error| RequestFailure {
        code: ErrorCode::InvalidParams,
        message: format!("the parameters are not those of the method: {error}"),
        is_shown: false,
    })
}

fn to_json(value: &impl Serialize) -> Answer {
    serde_json::to_value(value).map_err(|error| RequestFailure {
        code: ErrorCode::InternalError,
        message: error.to_string(),
        is_shown: false,
    })
}

/// No result, which is no failure: the place has nothing, or the text is no spec.
fn none() -> Answer {
    Ok(Value::Null)
}

fn kind(kind: OutlineKind) -> SymbolKind {
    match kind {
        OutlineKind::Operator => SymbolKind::Function,
        OutlineKind::Function => SymbolKind::Operator,
    }
}

fn tags(found: &OutlineEntry) -> Option<Vec<SymbolTag>> {
    found.deprecated.then(|| vec![SymbolTag::Deprecated])
}

/// Whether a name has the letters of a query in their order.
fn is_like(name: &str, query: &str) -> bool {
    let mut letters = name.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|letter| letter == wanted))
}
