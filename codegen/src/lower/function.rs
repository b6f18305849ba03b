//! Entries of `functions:`.

use opsmith_core::DTypeSet;

use super::Context;
use crate::diagnostics::Diagnostic;
use crate::model::{Function, FunctionReturn};
use crate::spec::document::RawFunction;

pub(super) fn lower(
    context: &mut Context<'_>,
    raw: &RawFunction,
    external: bool,
    functions: &mut Vec<Function>,
) {
    let Some((name, params, returns)) = head(raw.func.as_str()) else {
        context.diagnostics.push(
            Diagnostic::error(
                "E0420",
                "this is not the head of a function",
                raw.func.span(),
                "cannot be read",
            )
            .with_help("write `exp(x)`, `is_nan(x) -> bool` or `abs(x) -> real`"),
        );
        return;
    };
    if let Some(first) = functions.iter().find(|known| known.name == name) {
        context.diagnostics.push(
            Diagnostic::error(
                "E0421",
                format!("the function `{name}` is declared twice"),
                raw.func.span(),
                "declared again here",
            )
            .with_secondary(first.span, "first declared here"),
        );
        return;
    }
    let Some(rust) = raw.text("rust") else {
        context.diagnostics.push(
            Diagnostic::error(
                "E0422",
                format!("the function `{name}` has no `rust` body"),
                raw.func.span(),
                "nothing to call",
            )
            .with_help("add `rust: math::exp`, the path of a Rust function"),
        );
        return;
    };
    let mut dtypes = DTypeSet::EMPTY;
    for text in raw.texts("dtypes") {
        dtypes = dtypes.union(super::body::dtype_set(context, &text));
    }
    if raw.get("dtypes").is_none() {
        dtypes = DTypeSet::from_name("all").unwrap_or_default();
    }
    let mut derivatives = vec![None; params.len()];
    for (key, text) in raw.text_map("derivative") {
        match params.iter().position(|param| *param == key.text) {
            Some(position) => derivatives[position] = Some(text.as_str().to_owned()),
            None => context.diagnostics.push(
                Diagnostic::error(
                    "E0423",
                    format!("`{name}` has no parameter `{}`", key.text),
                    key.span,
                    "no such parameter",
                )
                .with_help(format!("the parameters are: {}", params.join(", "))),
            ),
        }
    }
    let (rust, span) = (rust.as_str().to_owned(), raw.func.span());
    functions.push(Function { name, params, returns, rust, dtypes, derivatives, span, external });
}

fn head(text: &str) -> Option<(String, Vec<String>, FunctionReturn)> {
    let (call, returns) = match text.split_once("->") {
        Some((call, returns)) => (call.trim(), returns.trim()),
        None => (text.trim(), ""),
    };
    let returns = match returns {
        "" => FunctionReturn::Element,
        "real" => FunctionReturn::Real,
        "bool" => FunctionReturn::Bool,
        _ => return None,
    };
    let (name, params) = call.strip_suffix(')')?.split_once('(')?;
    let is_name = |text: &str| syn::parse_str::<syn::Ident>(text).is_ok();
    let params: Vec<String> = params.split(',').map(|param| param.trim().to_owned()).collect();
    (is_name(name.trim()) && params.iter().all(|param| is_name(param)))
        .then(|| (name.trim().to_owned(), params, returns))
}
