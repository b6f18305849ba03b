//! Operators of a program among the linked libraries.
//!
//! In: the full name of a function, `torch.ops.NAMESPACE.NAME.OVERLOAD`. Out: the operator and form of that name, or an
//! error with similar names.

use std::collections::BTreeMap;

use opsmith_runtime::arg::Value;
use opsmith_runtime::boxed;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::library::{self, Form, Library, Named};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;

use crate::errors::unsupported;
use crate::model::{Argument, Block, Node};
use crate::numbers;
use crate::structural::{self, Structural};

/// The operator and form of a function.
///
/// # Errors
/// If no linked library has it; the error lists similar names.
pub(crate) fn find(target: &str) -> Result<Named> {
    let Some((namespace, name)) = target.strip_prefix("torch.ops.").and_then(|rest| rest.split_once('.'))
    else {
        return Err(Error::not_found(format!("there is no operator `{target}`")).with_help(
            "programs call operators, `torch.ops.…`: decompose the program, `program.run_decompositions()`, or export it \
             without this function",
        ));
    };
    let name = name.strip_suffix(".default").unwrap_or(name);
    let qualified = format!("{namespace}::{name}");
    let mut missing: Option<(usize, Error)> = None;
    for library in library::linked() {
        let candidates = library.candidates(&qualified);
        let is_own = library.name.replace('-', "_") == namespace || candidates.is_ok();
        if let Some(found) = is_own.then(|| exactly(library, name)).flatten() {
            return Ok(found);
        }
        // The error of the library with the most operators lists the nearest names.
        if let Err(error) = candidates {
            let known = library.all_ops().len();
            if missing.as_ref().is_none_or(|(most, _)| known > *most) {
                missing = Some((known, error));
            }
        }
    }
    let text = format!("no library in this program has the operator `{target}`");
    Err(match missing {
        Some((_, error)) => Error::not_found(text).with_help(error.help().unwrap_or("declare it").to_owned()),
        None => Error::not_found(text).with_help("link a library of operators, such as `opsmith`"),
    })
}

/// The view whose copy a function returns: `torch.ops.aten.NAME_copy.OVERLOAD` is `NAME.OVERLOAD`, copied.
pub(crate) fn copied_view(target: &str) -> Option<&'static OpDef> {
    let (before, overload) = target.rsplit_once('.')?;
    let view = format!("{}.{overload}", before.strip_suffix("_copy")?);
    let (view, is_other) = match structural::find(&view) {
        Some(Structural::Operator(other)) => (other.to_owned(), true),
        _ => (view, false),
    };
    let (op, form) = find(&view).ok()?;
    (form == Form::Functional && (is_other || op.view.is_some())).then_some(op)
}

/// Calls a function that returns one tensor.
///
/// # Errors
/// As [`find`], those of the call, and if it returns something else.
pub(crate) fn call(target: &str, args: &[Value]) -> Result<Tensor> {
    let (op, _) = find(target)?;
    match boxed::call_definition(op, args, &[])?.pop() {
        Some(Value::Tensor(tensor)) => Ok(tensor),
        _ => Err(unsupported(format!("`{target}` without a tensor as its result"))),
    }
}

/// The operator or form of exactly this name, if the library has it; not its only overload.
fn exactly(library: &Library, name: &str) -> Option<Named> {
    let (op, form) = library.find(name)?;
    let is_overload = op.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    (!is_overload).then_some((op, form))
}

/// An error for each operator of a block and the blocks inside that no library has, in order of appearance.
pub(crate) fn missing(block: &Block) -> Vec<Error> {
    let mut found = Vec::new();
    let mut counts = BTreeMap::new();
    collect(block, &mut found, &mut counts);
    found
        .into_iter()
        .map(|(node, error)| {
            let others = match counts.get(node.target.as_str()) {
                Some(&count) if count > 1 => format!(", and {} more", count - 1),
                _ => String::new(),
            };
            error.with_note(format!("called by the node `{}`{others}, written in {}", node.name, node.source))
        })
        .collect()
}

fn collect<'a>(block: &'a Block, found: &mut Vec<(&'a Node, Error)>, counts: &mut BTreeMap<&'a str, usize>) {
    for node in &block.nodes {
        if let Err(error) = known(&node.target) {
            let count = counts.entry(&node.target).or_default();
            *count += 1;
            if *count == 1 {
                found.push((node, error));
            }
        }
        let args = node.args.iter().chain(node.named.iter().map(|(_, arg)| arg));
        for arg in args {
            if let Argument::Block(inner) = arg {
                collect(inner, found, counts);
            }
        }
    }
}

/// Rejects a function that is neither an operator nor known to the reader.
///
/// # Errors
/// As [`find`].
pub(crate) fn known(target: &str) -> Result<()> {
    match structural::find(target) {
        Some(Structural::Operator(name)) => find(name).map(drop),
        Some(_) => Ok(()),
        None if numbers::find(target).is_some() => Ok(()),
        None if copied_view(target).is_some() => Ok(()),
        None => find(target).map(drop),
    }
}
