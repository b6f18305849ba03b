//! Entries of `functions:`.

use std::collections::HashMap;

use opsmith_core::DTypeSet;

use super::{Context, dtypes};
use crate::diagnostics::catalogue;
use crate::expr::check::{self, Mode, OpTable, Scope};
use crate::expr::path;
use crate::model::{Arg, Element, Function, FunctionReturn, Kind, Ty, ValueUse};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawFunction, Text};
use crate::spec::yaml::Key;

/// The scalar functions read so far.
#[derive(Default)]
pub(super) struct Functions {
    list: Vec<Function>,
    by_name: HashMap<String, usize>,
    /// The derivatives as written: the function and the text.
    written: Vec<(usize, Text)>,
    broken: Vec<String>,
}

impl Functions {
    pub fn lower(&mut self, context: &mut Context<'_>, raw: &RawFunction, parent: Option<usize>) {
        let text = raw.func.as_str();
        let head = match head(text) {
            Ok(head) => head,
            Err((range, label)) => {
                let place = raw.func.span_within(range, context.sources);
                context.push(catalogue::function_head(place, label));
                self.broken.push(text.split('(').next().unwrap_or_default().trim().to_owned());
                return;
            }
        };
        let Head { name, params, returns } = head;
        let (span, entry) = (raw.func.span(), raw.span);
        if let Some(first) = self.by_name.get(&name) {
            let first = &self.list[*first];
            context.push(match first.parent == parent {
                true => catalogue::function_twice(span, &name, first.span),
                false => catalogue::declared_in_two_libraries(span, &name, first.span, parent.is_none()),
            });
            return;
        }
        let index = self.list.len();
        let rust = raw.text(KeyName::Rust);
        check_rust(context, raw, rust.as_ref(), &name);
        if let Some(cuda) = raw.get(KeyName::Cuda).filter(|_| parent.is_none()) {
            const WHY: &str = "loops over expressions are not generated for CUDA yet";
            context.push(catalogue::key_unused(cuda.span, "cuda", WHY));
        }
        let doc = raw.text(KeyName::Doc).map(|doc| doc.as_str().trim().to_owned()).unwrap_or_default();
        let dtypes = match raw.get(KeyName::Dtypes) {
            Some(_) => dtypes::union(context, &raw.texts(KeyName::Dtypes)),
            None => DTypeSet::ALL,
        };
        let (derivatives, wirtinger) = self.derivatives(context, raw, index, (&name, &params));
        let operator = raw.text(KeyName::Op).map(|text| text.as_str().trim().to_owned());
        self.by_name.insert(name.clone(), index);
        let rust = rust.map(|rust| rust.as_str().to_owned()).unwrap_or_default();
        self.list.push(Function {
            name,
            doc,
            params,
            returns,
            rust,
            dtypes,
            derivatives,
            wirtinger,
            operator,
            span,
            entry,
            parent,
        });
    }

    /// The declarations of `derivative` and `wirtinger` for each parameter.
    fn derivatives(
        &mut self,
        context: &mut Context<'_>,
        raw: &RawFunction,
        function: usize,
        (name, params): (&str, &[String]),
    ) -> (Vec<Option<String>>, Vec<Option<[String; 2]>>) {
        let mut position = |key: &Key| {
            let found = params.iter().position(|param| *param == key.text);
            if found.is_none() {
                let known: Vec<&str> = params.iter().map(String::as_str).collect();
                context.push(catalogue::function_parameter_unknown(key.span, name, &key.text, &known));
            }
            found
        };
        let (mut derivatives, mut wirtinger) = (vec![None; params.len()], vec![None; params.len()]);
        let mut malformed = Vec::new();
        for (key, text) in raw.text_map(KeyName::Derivative) {
            let Some(position) = position(&key) else { continue };
            derivatives[position] = Some(text.as_str().to_owned());
            self.written.push((function, text));
        }
        for (key, texts) in raw.text_list_map(KeyName::Wirtinger) {
            let Some(position) = position(&key) else { continue };
            match &texts[..] {
                [by, by_conjugate] => {
                    wirtinger[position] = Some([by.as_str().to_owned(), by_conjugate.as_str().to_owned()]);
                    self.written.extend(texts.into_iter().map(|text| (function, text)));
                }
                other => malformed.push((key, other.len())),
            }
        }
        for (key, found) in malformed {
            context.push(catalogue::wirtinger_malformed(key.span, name, &key.text, found));
        }
        (derivatives, wirtinger)
    }

    /// Every function, in order.
    pub fn all(&self) -> &[Function] {
        &self.list
    }

    /// The names of entries that cannot be read.
    pub fn broken(&self) -> impl Iterator<Item = String> {
        self.broken.iter().cloned()
    }

    /// Checks derivatives, which may call functions that are declared later.
    pub fn check_derivatives(&self, context: &mut Context<'_>, table: &OpTable<'_>) {
        for (function, text) in &self.written {
            let args: Vec<Arg> = self.list[*function].params.iter().map(|name| parameter(name)).collect();
            let scope =
                Scope { ops: table, args: &args, outputs: &[], mode: Mode::FunctionDerivative, locals: &[] };
            let locate = |range| text.span_within(range, context.sources);
            let want = Ty::new(Kind::Element);
            check::check(text.as_str(), &scope, &want, &locate, context.diagnostics);
        }
    }

    pub fn finish(self) -> Vec<Function> {
        self.list
    }
}

/// A parameter as the argument of an expression.
fn parameter(name: &str) -> Arg {
    Arg {
        doc: String::new(),
        name: name.to_owned(),
        ty: Ty::new(Kind::Tensor),
        default: None,
        keyword_only: false,
        element: Element::Dispatch,
        contiguous: false,
        rounded: false,
        constraints: Vec::new(),
        aliases: Vec::new(),
        value: ValueUse::None,
        number: None,
    }
}

/// `exp(x)`, `is_nan(x) -> bool`
struct Head {
    name: String,
    params: Vec<String>,
    returns: FunctionReturn,
}

/// The bytes to change and a label for them.
type Malformed = (std::ops::Range<usize>, &'static str);

fn head(text: &str) -> Result<Head, Malformed> {
    let range = |part: &str| {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        start..start + part.len()
    };
    let (call, returns) = text.split_once("->").unwrap_or((text, ""));
    let returns = match returns.trim() {
        "" => FunctionReturn::Element,
        "real" => FunctionReturn::Real,
        "bool" => FunctionReturn::Bool,
        other => return Err((range(other), "neither `bool` nor `real`")),
    };
    let whole = || range(text.trim());
    let (name, params) = call.split_once('(').ok_or((whole(), "no parameters in parentheses"))?;
    let params = params.trim_end().strip_suffix(')').ok_or((whole(), "no closing parenthesis"))?;
    let identifier = |part: &str| match path::is_identifier(part.trim()) {
        true => Ok(part.trim().to_owned()),
        false if part.trim().is_empty() => Err((whole(), "a name is missing")),
        false => Err((range(part.trim()), "not a name in Rust")),
    };
    let name = identifier(name)?;
    let params = params.split(',').map(identifier).collect::<Result<Vec<_>, _>>()?;
    match params.iter().enumerate().find(|(index, param)| params[..*index].contains(param)) {
        Some(_) => Err((whole(), "two parameters have one name")),
        None => Ok(Head { name, params, returns }),
    }
}

/// Reports a function without a Rust path, or with an invalid one.
fn check_rust(context: &mut Context<'_>, raw: &RawFunction, rust: Option<&Text>, name: &str) {
    match rust {
        Some(rust) => {
            if let Err(problem) = path::check(rust.as_str()) {
                let place = rust.span_within(problem.range, context.sources);
                context.push(catalogue::path_malformed(place, problem.label, "kernels crate"));
            }
        }
        None if raw.complete => context.push(catalogue::function_without_body(raw.func.span(), name)),
        None => {}
    }
}
