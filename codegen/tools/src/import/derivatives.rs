//! `derivatives.yaml` to formulas.
//!
//! In: the file's tree, and the arguments and results of each signature. Out: [`Derivatives`], one per entry, with
//! formulas still in C++.

use opsmith_codegen::diagnostics::{Diagnostics, SourceMap};
use opsmith_codegen::lower::note;
use opsmith_codegen::model::Note;
use opsmith_codegen::spec::schema::Schema;
use opsmith_codegen::spec::yaml::{Node, NodeKind};

/// An entry of the file.
pub(super) struct Derivatives {
    /// The signature it is for, as written.
    pub func: String,
    /// The signature.
    pub schema: Schema,
    /// Its formulas in file order.
    pub formulas: Vec<Formula>,
    /// Whether each output has a gradient, as written.
    pub output_differentiability: Vec<String>,
    /// Whether formulas are grouped by dispatch key.
    pub by_dispatch_key: bool,
    /// Keys with values that are not formulas.
    pub rest: Vec<(String, Note)>,
}

/// A formula.
pub(super) struct Formula {
    /// The arguments whose gradients it gives, or the results whose tangents it gives.
    pub key: String,
    /// The kind of formula.
    pub direction: Direction,
    /// The dispatch key it belongs to, if it is not the default one.
    pub dispatch_key: Option<String>,
    /// The formula.
    pub text: String,
}

/// Backward or forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// Gradients of arguments from those of results.
    Backward,
    /// Tangents of results from those of arguments.
    Forward,
}

/// The default dispatch key of formulas.
const DEFAULT_KEY: &str = "Default";

/// Reads the entries. Those with a malformed signature are reported.
pub(super) fn read(root: &Node, sources: &SourceMap, diagnostics: &mut Diagnostics) -> Vec<Derivatives> {
    let mut entries = Vec::new();
    for item in root.as_seq().unwrap_or_default() {
        let pairs = item.as_map().unwrap_or_default();
        let Some((_, func)) = pairs.iter().find(|(key, _)| key.text == "name") else {
            diagnostics.push(opsmith_codegen::diagnostics::catalogue::func_missing(item.span, "derivative"));
            continue;
        };
        let text = func.as_text().unwrap_or_default();
        let locate = |range| func.span_within(range, sources.text(func.span.source));
        let Some(schema) = Schema::parse(text, &locate, diagnostics) else { continue };
        let mut entry = Derivatives {
            func: text.to_owned(),
            schema,
            formulas: Vec::new(),
            output_differentiability: Vec::new(),
            by_dispatch_key: false,
            rest: Vec::new(),
        };
        for (key, value) in pairs.iter().filter(|(key, _)| key.text != "name") {
            match (key.text.as_str(), &value.kind) {
                ("output_differentiability", NodeKind::Seq(items)) => {
                    let flags = items.iter().map(|item| item.as_text().unwrap_or_default().to_owned());
                    entry.output_differentiability = flags.collect();
                }
                ("dispatch", NodeKind::Map(groups)) => {
                    entry.by_dispatch_key = true;
                    for (dispatch_key, formulas) in groups {
                        let other = (dispatch_key.text != DEFAULT_KEY).then(|| dispatch_key.text.clone());
                        for (key, value) in formulas.as_map().unwrap_or_default() {
                            entry.add(&key.text, value, other.clone());
                        }
                    }
                }
                _ => entry.add(&key.text, value, None),
            }
        }
        entries.push(entry);
    }
    entries
}

impl Derivatives {
    /// Whether each output has a gradient. By default, a formula that reads `grad` of several outputs implies that only
    /// the first has one.
    pub fn flags(&self) -> Vec<String> {
        let outputs = self.schema.returns.len();
        if !self.output_differentiability.is_empty() || outputs < 2 {
            return self.output_differentiability.clone();
        }
        let backward = || self.formulas.iter().filter(|formula| formula.direction == Direction::Backward);
        let reads = |name: &str| backward().any(|formula| words(&formula.text).any(|word| word == name));
        let named = |name: &str| self.schema.returns.iter().any(|value| value.name.as_deref() == Some(name));
        let reads_named = backward()
            .any(|formula| words(&formula.text).any(|word| word.strip_prefix("grad_").is_some_and(named)));
        if !reads("grad") || reads("grads") || reads_named {
            return Vec::new();
        }
        (0..outputs).map(|index| if index == 0 { "True" } else { "False" }.to_owned()).collect()
    }

    fn add(&mut self, key: &str, value: &Node, dispatch_key: Option<String>) {
        let Some(text) = value.as_text() else {
            self.rest.push((key.to_owned(), note(value)));
            return;
        };
        let first = key.split(',').next().unwrap_or_default().trim();
        let direction = match self.schema.arg(first) {
            Some(_) => Direction::Backward,
            None => Direction::Forward,
        };
        let text = text.trim().to_owned();
        self.formulas.push(Formula { key: key.to_owned(), direction, dispatch_key, text });
    }
}

/// The words of a formula.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_')
}
