//! Finds the operator that a user names.

use opsmith_codegen::diagnostics::nearest;
use opsmith_codegen::model::Op;
use opsmith_codegen::pipeline::Checked;

/// The operators meant by a name: the one of that full name or form, or all overloads of a base name.
///
/// # Errors
/// In words, if there is none; near names are given.
pub fn find<'a>(checked: &'a Checked, name: &str) -> Result<Vec<&'a Op>, String> {
    let ops = &checked.model.ops;
    let is_form = |op: &&Op| {
        op.name == name || op.forms.inplace.as_deref() == Some(name) || op.forms.out.as_deref() == Some(name)
    };
    let same_base = || ops.iter().filter(|op| op.base == name);
    match ops.iter().find(|op| op.name == name) {
        // A base name that is a full name too stands for its other overloads as well.
        Some(op) if same_base().count() <= 1 || name.contains('.') => return Ok(vec![op]),
        _ => {}
    }
    let overloads: Vec<&Op> = same_base().collect();
    if !overloads.is_empty() {
        return Ok(overloads);
    }
    let others: Vec<&Op> = ops.iter().filter(is_form).collect();
    if !others.is_empty() {
        return Ok(others);
    }
    let of_function: Vec<&Op> = ops.iter().filter(|op| op.rust_name == name).collect();
    if !of_function.is_empty() {
        return Ok(of_function);
    }
    let names = ops.iter().flat_map(|op| [op.name.as_str(), op.base.as_str()]);
    let near = nearest(name, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(format!("there is no operator `{name}`{near}"))
}
