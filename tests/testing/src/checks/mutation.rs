//! Mutation test of the checks: each formula is made wrong, in a copy of the definition, and the copy must fail the
//! checks.

use std::cell::Cell;

use opsmith::autograd::{GradContext, Gradient};
use opsmith::{DType, Result, Tensor, Value};
use opsmith_runtime::generated::call;
use opsmith_runtime::op::{GradDef, GradientFormula, Gradients, OpDef};
use opsmith_runtime::{Arg, Complex64};

use super::call::elements;
use super::{Call, calls, exact_calls, numeric};

/// A mutation of a formula.
#[derive(Clone, Copy, Debug)]
enum Mutation {
    /// The formula is missing, as if the spec did not declare its arguments.
    Remove,
    /// The gradient is `None`.
    Delete,
    Negate,
    Double,
    Conjugate,
}

/// A backward formula.
type Backward = fn(&GradContext<'_>) -> Result<Gradients>;

thread_local! {
    /// The original formula, the index of its mutated gradient, and the mutation.
    static BEHIND: Cell<Option<(Backward, usize, Mutation)>> = const { Cell::new(None) };
    /// Whether the original gradient was ever present.
    static SEEN: Cell<bool> = const { Cell::new(false) };
}

fn wrong(context: &GradContext<'_>) -> Result<Gradients> {
    let (behind, which, mutation) = BEHIND.get().expect("set before the check");
    let mut gradients = behind(context)?;
    let change = |tensor: Tensor| -> Result<Option<Tensor>> {
        // Real numbers equal their conjugates, and zeros their negatives.
        let changes = |x: Complex64| match mutation {
            Mutation::Conjugate => x.im != 0.0,
            _ => x != Complex64::default(),
        };
        if elements(&tensor).into_iter().any(changes) {
            SEEN.set(true);
        }
        Ok(match mutation {
            Mutation::Remove | Mutation::Delete => None,
            Mutation::Negate => Some(opsmith::neg(&tensor)?),
            Mutation::Double => Some(opsmith::mul(&tensor, 2.0)?),
            Mutation::Conjugate => Some(opsmith::conj_physical(&tensor)?),
        })
    };
    let gradient = std::mem::replace(&mut gradients[which], Gradient::None);
    gradients[which] = match gradient {
        Gradient::None => Gradient::None,
        Gradient::Tensor(tensor) => change(tensor)?.into(),
        Gradient::List(list) => Gradient::List(
            list.into_iter().map(|tensor| tensor.map_or(Ok(None), change)).collect::<Result<_>>()?,
        ),
    };
    Ok(gradients)
}

/// The mutants of an operator that no check detects. A formula that never gives a gradient cannot be wrong in these
/// ways.
pub fn survivors(op: &'static OpDef) -> Vec<String> {
    let Some(grad) = op.grad else { return Vec::new() };
    let mut survivors = Vec::new();
    // For some operators only complex numbers show the effect of a formula.
    let (right, wrong): (Vec<Call>, Vec<Call>) = exact_calls(op)
        .into_iter()
        .chain(calls(op, DType::C128))
        .partition(|call| numeric::gradient(call).is_ok());
    // Existing failures need no mutation.
    if right.is_empty() && !wrong.is_empty() {
        return survivors;
    }
    for (index, formula) in grad.formulas.iter().enumerate().filter(|(_, formula)| formula.backends & 1 != 0)
    {
        for (which, argument) in formula.arguments.iter().enumerate() {
            for mutation in [Mutation::Remove, Mutation::Delete, Mutation::Negate, Mutation::Double] {
                let name = op.schema.args[*argument as usize].name;
                BEHIND.set(Some((formula.backward, which, mutation)));
                SEEN.set(false);
                let copy = with_formula(op, grad, index, mutation);
                let noticed =
                    right.iter().any(|call| numeric::gradient(&Call { op: copy, ..call.clone() }).is_err());
                // A missing formula has no gradient to observe; the next mutation does.
                if !noticed
                    && (SEEN.get() || matches!(mutation, Mutation::Remove) && gives(op, formula, which))
                {
                    survivors.push(format!("{} ({}): {mutation:?} of `{name}`", op.name, op.location));
                }
            }
        }
    }
    survivors
}

/// Whether a formula ever gives a nonzero gradient.
fn gives(op: &'static OpDef, formula: &GradientFormula, which: usize) -> bool {
    let Some(grad) = op.grad else { return false };
    let Some(index) = grad.formulas.iter().position(|other| std::ptr::eq(other, formula)) else {
        return false;
    };
    BEHIND.set(Some((formula.backward, which, Mutation::Double)));
    SEEN.set(false);
    let copy = with_formula(op, grad, index, Mutation::Double);
    for call in exact_calls(op) {
        // Only the formula's gradient matters.
        let _ = numeric::gradient(&Call { op: copy, ..call });
    }
    SEEN.get()
}

/// Mutants that conjugate the gradient, where complex numbers are supported; returns the undetected ones.
pub fn complex_survivors(op: &'static OpDef) -> Vec<String> {
    let Some(grad) = op.grad else { return Vec::new() };
    let mut survivors = Vec::new();
    for (index, formula) in grad.formulas.iter().enumerate().filter(|(_, formula)| formula.backends & 1 != 0)
    {
        for (which, argument) in formula.arguments.iter().enumerate() {
            let name = op.schema.args[*argument as usize].name;
            BEHIND.set(Some((formula.backward, which, Mutation::Conjugate)));
            SEEN.set(false);
            let copy = with_formula(op, grad, index, Mutation::Conjugate);
            let calls = calls(op, DType::C128).into_iter().filter(|call| numeric::gradient(call).is_ok());
            let noticed =
                calls.into_iter().any(|call| numeric::gradient(&Call { op: copy, ..call }).is_err());
            if !noticed && SEEN.get() {
                survivors.push(format!("{} ({}): conjugate of `{name}`", op.name, op.location));
            }
        }
    }
    survivors
}

/// A copy of the definition with one formula replaced. It is leaked, as definitions are static.
fn with_formula(op: &'static OpDef, grad: &GradDef, index: usize, mutation: Mutation) -> &'static OpDef {
    let mut formulas: Vec<GradientFormula> = grad.formulas.to_vec();
    match mutation {
        Mutation::Remove => _ = formulas.remove(index),
        _ => formulas[index].backward = wrong,
    }
    let grad: &'static GradDef =
        Box::leak(Box::new(GradDef { formulas: Box::leak(formulas.into_boxed_slice()), ..*grad }));
    op.with_grad(grad)
}

/// The outcome of treating results that formulas read as constants.
#[derive(Default)]
pub struct ReadResults {
    /// Number of results tried.
    pub tried: usize,
    /// Results whose second derivatives passed nevertheless.
    pub survivors: Vec<String>,
}

/// Each result that a formula reads, treated as a constant; its own gradient still flows, so that formulas that read it
/// run, too. A result that elements are only compared with is a constant to formulas.
pub fn read_results(op: &'static OpDef) -> ReadResults {
    let mut found = ReadResults::default();
    let Some(grad) = op.grad else { return found };
    let read = grad.formulas.iter().fold(0, |bits, formula| bits | formula.reads_outputs);
    for output in 0..op.schema.returns.len() {
        let bit = 1u64 << output;
        if read & grad.differentiable_outputs & bit == 0 {
            continue;
        }
        let mut right = exact_calls(op)
            .into_iter()
            .chain(calls(op, DType::C128))
            .filter(|call| is_inexact(call, output) && numeric::second_order(call).is_ok())
            .filter(|call| numeric::reads_value(call, output).unwrap_or(true))
            .peekable();
        if right.peek().is_none() {
            continue;
        }
        found.tried += 1;
        let changed = GradDef { constant_outputs: grad.constant_outputs | bit, ..*grad };
        let grad: &'static GradDef = Box::leak(Box::new(changed));
        let copy: &'static OpDef = op.with_grad(grad);
        if right.all(|call| numeric::second_order(&Call { op: copy, ..call }).is_ok()) {
            found.survivors.push(format!("{} ({}): result {output} as a constant", op.name, op.location));
        }
    }
    found
}

/// Whether a result of a call can have a gradient.
fn is_inexact(call: &Call, output: usize) -> bool {
    let args: Vec<Arg<'_>> = call.args.iter().map(Value::as_arg).collect();
    let outs = crate::samples::repeatable(call.op, || call::invoke(call.op, &args));
    outs.is_ok_and(|outs| outs.get(output).is_some_and(|out| out.dtype().is_differentiable()))
}
