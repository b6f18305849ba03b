//! Operators as the header describes them.
//!
//! In: the definitions of a library. Out: structures that live as long as the process.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, PoisonError};

use opsmith_core::BridgeFacts;
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::library::Library;
use opsmith_runtime::op::{ArgDef, ArgKind, OpDef};

use crate::derivative::is_recorded_from_results;
use crate::failure::{Outcome, mistake};
use crate::structures::{Argument, Operator};

/// The tag of operators whose results have sizes that elements decide.
const DYNAMIC: &str = "dynamic_output_shape";

/// The facts of a definition that decide whether a framework can call it.
pub fn facts(op: &OpDef) -> BridgeFacts<'_> {
    let args = op.schema.args;
    let visible = &op.schema.returns[..op.schema.returns.len() - op.hidden.min(op.schema.returns.len())];
    let has_run_sizes = op.rules.is_some_and(|rules| !rules.run_sizes.is_empty());
    let shares = op.schema.text.match_indices("Tensor(").any(|(at, found)| {
        op.schema.text[at + found.len()..].starts_with(|letter: char| letter.is_ascii_lowercase())
    });
    let names_four_bits = ["=int4", "=uint4"].iter().any(|text| op.schema.text.contains(text));
    BridgeFacts {
        is_backward: op.facts.backward_only,
        gives_tensors: op.host.is_none() && !visible.is_empty(),
        is_view: op.view.is_some() || shares,
        takes_tensors: args.iter().any(|def| def.ty.kind.holds_tensors()),
        is_random: !op.facts.deterministic || args.iter().any(|def| def.ty.kind == ArgKind::Generator),
        read_argument: args.iter().find(|def| def.value == ValueUse::Required).map(|def| def.name),
        may_lack_results: visible.iter().any(|def| def.ty.optional),
        has_unnamed_sizes: op.facts.tags.contains(&DYNAMIC) && !has_run_sizes,
        gives_four_bits: op.kernels.is_none() && names_four_bits,
        foreign_argument: None,
    }
}

/// The reason for which programs cannot call an operator by the C interface; `None` if they can.
pub fn refusal(op: &OpDef) -> Option<String> {
    let foreign = |def: &&ArgDef| matches!(def.ty.kind, ArgKind::Lists(_) | ArgKind::MemoryLayout);
    let foreign_argument = op.schema.args.iter().find(foreign).map(|def| def.name);
    BridgeFacts { foreign_argument, ..facts(op) }.refusal(false)
}

/// A structure with the address of its operator, as a key of tables.
struct Shared(&'static Operator);

// SAFETY: a structure and all that it leads to are constant.
unsafe impl Send for Shared {}

/// The structures of all definitions that were described, by the address of the definition and by name.
#[derive(Default)]
struct Known {
    of_definition: HashMap<usize, Shared>,
    of_name: HashMap<&'static str, usize>,
}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// The structures of a library's operators, and of those of the libraries that it builds on.
pub fn described(library: &'static Library) -> &'static [&'static Operator] {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    let all = library.all_ops().into_iter().map(|op| {
        let address = std::ptr::from_ref(op).addr();
        known.of_name.entry(op.name).or_insert(address);
        known.of_definition.entry(address).or_insert_with(|| Shared(describe(op))).0
    });
    Vec::leak(all.collect())
}

/// `find` of the header.
pub unsafe extern "C" fn find(name: *const c_char) -> *const Operator {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the caller's text ends with a zero byte.
    let Ok(name) = unsafe { CStr::from_ptr(name) }.to_str() else { return std::ptr::null() };
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.as_ref().and_then(|known| known.of_definition.get(known.of_name.get(name)?));
    found.map_or(std::ptr::null(), |found| std::ptr::from_ref(found.0))
}

/// The definition of a structure.
///
/// # Safety
/// The pointer is one that `find` or the table gave, or null.
pub unsafe fn definition(op: *const Operator) -> Outcome<&'static OpDef> {
    // SAFETY: the caller's promise.
    match unsafe { op.as_ref() } {
        // SAFETY: the structure was made from a definition.
        Some(op) => Ok(unsafe { &*op.definition.cast::<OpDef>() }),
        None => mistake("the operator is null; `find` returns null for a name that it does not know"),
    }
}

/// The type of an argument as signatures write it.
pub fn spelling(def: &ArgDef) -> String {
    let plain = match def.ty.kind {
        ArgKind::Ints(Some(length)) => format!("int[{length}]"),
        ArgKind::Bools(Some(length)) => format!("bool[{length}]"),
        kind => kind.spelling().to_owned(),
    };
    if def.ty.optional { format!("{plain}?") } else { plain }
}

fn text(text: &str) -> *const c_char {
    CString::new(text).unwrap_or_default().into_raw().cast_const()
}

/// The structure of a definition.
fn describe(op: &'static OpDef) -> &'static Operator {
    let argument = |def: &ArgDef| Argument {
        name: text(def.name),
        ty: text(&spelling(def)),
        optional: def.ty.optional.into(),
        has_default: def.default.is_some().into(),
        keyword_only: def.keyword_only.into(),
        reserved: [0; 5],
    };
    let arguments: &[Argument] = Vec::leak(op.schema.args.iter().map(argument).collect());
    let is_recorded = is_recorded_from_results(op);
    let formulas = op.grad.map_or(&[][..], |grad| grad.formulas);
    let reads_results = formulas.iter().fold(0, |all, formula| all | formula.reads_outputs);
    let reads_arguments = formulas.iter().fold(0, |all, formula| all | formula.reads_arguments);
    Box::leak(Box::new(Operator {
        size: size_of::<Operator>(),
        name: text(op.name),
        signature: text(op.schema.text),
        refusal: refusal(op).map_or(std::ptr::null(), |reason| text(&reason)),
        argument_count: arguments.len() as i64,
        arguments: arguments.as_ptr(),
        result_count: (op.schema.returns.len() - op.hidden.min(op.schema.returns.len())) as i64,
        gives_list: matches!(op.schema.returns, [only] if only.ty.kind == ArgKind::Tensors).into(),
        is_differentiable: op
            .grad
            .map_or(op.composite.is_some(), |grad| grad.differentiable_outputs != 0)
            .into(),
        takes_results: is_recorded.into(),
        is_pointwise: op.forms.elementwise.into(),
        reserved: [0; 4],
        differentiable_results: op.grad.map_or(u64::MAX, |grad| grad.differentiable_outputs),
        // A derivative that runs the operator again reads all arguments and no results.
        reads_arguments: if is_recorded { reads_arguments } else { u64::MAX },
        reads_results: if is_recorded { reads_results } else { 0 },
        definition: std::ptr::from_ref(op).cast(),
    }))
}
