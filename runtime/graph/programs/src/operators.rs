//! Operators of a program among the linked libraries.
//!
//! In: the full name of a function, `torch.ops.NAMESPACE.NAME.OVERLOAD`. Out: the operator and form of that name, or an
//! error with similar names.

use std::collections::BTreeMap;

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::library::{self, Form, Library, Named};

use crate::model::{Argument, Block, Node};
use crate::structural::{self, Structural};
use crate::numbers;

/// The operator and form of a function.
///
/// # Errors
/// If no linked library has it; the error lists similar names.
pub(crate) fn find(target: &str) -> Result<Named> {
    let Some((namespace, name)) = target.strip_prefix("torch.ops.").and_then(|rest| rest.split_once('.')) else {
        return Err(Error::not_found(format!("there is no operator `{target}`"))
            .with_help("programs call operators, `torch.ops.…`; export the program without this function"));
    };
    let name = name.strip_suffix(".default").unwrap_or(name);
    let qualified = format!("{namespace}::{name}");
    let mut missing: Option<(usize, Error)> = None;
    for library in library::linked() {
        if library.name.replace('-', "_") == namespace
            && let Some(found) = exactly(library, name, name)
        {
            return Ok(found);
        }
        if let Some(found) = exactly(library, &qualified, name) {
            return Ok(found);
        }
        // The error of the library with the most operators lists the nearest names.
        if let Err(error) = library.candidates(&qualified) {
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

/// The candidate for a name as others write it whose name or form's name is `name`.
fn exactly(library: &Library, written: &str, name: &str) -> Option<Named> {
    let candidates = library.candidates(written).ok()?;
    let is = |(op, form): &&Named| match form {
        Form::Functional => op.name == name || op.name == written,
        Form::Inplace => op.forms.inplace == Some(name),
        Form::Out => op.forms.out == Some(name),
    };
    let exact = candidates.iter().find(is).copied();
    // A name that is another library's for this one, and has no overloads.
    exact.or(match candidates.as_slice() {
        [only] if !name.contains('.') => Some(*only),
        _ => None,
    })
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
        None => find(target).map(drop),
    }
}
