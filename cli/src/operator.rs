//! Finds an operator by the name that a user gives.

use opsmith_codegen::diagnostics::nearest;
use opsmith_codegen::model::Op;
use opsmith_codegen::pipeline::Checked;
use opsmith_core::spelling::{self, Meaning};

/// The operators of a name: the one of that full name or form, all overloads of a base name, or those with that name in
/// another library.
///
/// # Errors
/// If there is none; the text lists similar names.
pub fn find<'a>(checked: &'a Checked, name: &str) -> Result<Vec<&'a Op>, String> {
    let ops = &checked.model.ops;
    let found = named(ops, name);
    if !found.is_empty() {
        return Ok(found);
    }
    let spellings = match spelling::meaning(&checked.model.foreign_names, name) {
        Meaning::Unlike { name, advice } => {
            return Err(format!("`{name}` means something else here: {advice}"));
        }
        Meaning::Spellings(spellings) => spellings,
    };
    let mut meant = spellings.iter().map(|spelling| named(ops, &spelling.name));
    if let Some(found) = meant.find(|found| !found.is_empty()) {
        return Ok(found);
    }
    let known = checked.model.foreign_names.known_as.iter().map(|(known, ..)| known.as_str());
    let names = ops.iter().flat_map(|op| [op.name.as_str(), op.base.as_str()]).chain(known);
    let plain = spelling::without_namespace(&spellings).unwrap_or(name);
    let near = nearest(plain, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(format!("there is no operator `{name}`{near}"))
}

/// The operators with a name in this library.
fn named<'a>(ops: &'a [Op], name: &str) -> Vec<&'a Op> {
    let is_form = |op: &&Op| {
        op.name == name || op.forms.inplace.as_deref() == Some(name) || op.forms.out.as_deref() == Some(name)
    };
    let same_base = || ops.iter().filter(|op| op.base == name);
    match ops.iter().find(|op| op.name == name) {
        // A base name that is also a full name includes its other overloads.
        Some(op) if same_base().count() <= 1 || name.contains('.') => return vec![op],
        _ => {}
    }
    let overloads: Vec<&Op> = same_base().collect();
    if !overloads.is_empty() {
        return overloads;
    }
    let others: Vec<&Op> = ops.iter().filter(is_form).collect();
    if !others.is_empty() {
        return others;
    }
    ops.iter().filter(|op| op.rust_name == name).collect()
}
