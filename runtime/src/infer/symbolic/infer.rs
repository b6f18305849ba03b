//! Symbolic inference of one call.
//!
//! In: a definition, arguments, and a context of symbols and guards. Out: dtype, shape and strides of each result. If
//! every size is a number, the inference of eager calls runs. Otherwise the rules are evaluated, and functions that no
//! rule expresses are run at several points ([`super::opaque`]).

use opsmith_core::{Combination, DType};
use smallvec::SmallVec;

use super::call;
use super::condition::{Condition, Context};
use super::custom;
use super::evaluate::{Evaluation, Value};
use super::opaque;
use super::shape::Shape;
use super::size::Size;
use super::symbols::Symbols;
use super::tensor_meta::{ArgumentMeta, Meta, Strides};
use crate::arg::Arg;
use crate::device::Device;
use crate::error::{Error, ErrorOperand, Result};
use crate::facts::ValueUse;
use crate::infer::InferContext;
use crate::infer::context::InferFunction;
use crate::infer::expr::{Expr, Rules};
use crate::op::{ArgKind, OpDef};

/// The result of symbolic inference.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a box would cost every inferred call an allocation")]
pub enum Inference {
    /// Its results.
    Tensors(OutputsMeta),
    /// A composition, whose results are those of its operators. If the entry has rules, these give the results where sizes
    /// are unknown.
    Composition,
    /// No tensors, but values that exist only in a run.
    Values,
}

/// The results of a call before it runs.
#[derive(Clone, Debug)]
pub struct OutputsMeta {
    /// Each result, or each tensor of the only result, a list.
    pub outs: SmallVec<[Meta; 1]>,
    /// The dtype that selects the kernel; `None` for views.
    pub compute: Option<DType>,
    /// The results that are present, a bit each; absent ones are empty.
    pub present: u64,
}

/// Infers a call. `args` has every argument, in signature order.
///
/// Data-dependent sizes get a symbol of their own, with a bound. Conditions for the results' correctness are added to
/// `context` as guards.
///
/// # Errors
/// Errors of the call itself, if they are certain; if the results depend on elements of an argument that is not a
/// constant; and if a dtype or the number of results depends on unknown values.
pub fn infer(op: &'static OpDef, args: &[ArgumentMeta<'_>], context: &mut Context) -> Result<Inference> {
    attempt(op, args, context).map_err(|error| error.in_op(op.name, operands(op, args, &context.symbols)))
}

fn attempt(op: &'static OpDef, args: &[ArgumentMeta<'_>], context: &mut Context) -> Result<Inference> {
    if args.len() != op.schema.args.len() {
        let wanted = op.schema.args.len();
        return Err(Error::argument(format!("{} arguments were given, it has {wanted}", args.len())));
    }
    let rules = op.rules.unwrap_or(&Rules::NONE);
    let values_known = check_constants(op.schema.args.iter().map(|def| (def.name, def.value)), args)?;
    let by_masks = op.schema.args.iter().any(|def| def.value == ValueUse::Masks);
    let by_run = (by_masks || !rules.run_sizes.is_empty()) && !values_known;
    let by_code = op.infer.is_some() || op.infer_function.is_some();
    // Tools have rules that are not compiled.
    let infers = by_code || op.view.is_some() || op.custom_inference().is_some() || !rules.shapes.is_empty();
    if infers
        && !by_run
        && let Some(outcome) = call::run(op, args, &Size::known)
    {
        let outputs = concrete(outcome?);
        return Ok(match runs_composition(op, &outputs) {
            true => Inference::Composition,
            false => Inference::Tensors(outputs),
        });
    }
    let constants = constants(args);
    check_combinations(op.combinations, args, |at| op.schema.args[at].name)?;
    let mut on = Evaluation { name: op.name, args, context, locals: Vec::new(), constants: &constants };
    check(&mut on, rules)?;
    if !infers {
        return Ok(if op.host.is_some() { Inference::Values } else { Inference::Composition });
    }
    if let Some(function) = op.infer_function {
        return by_function(&mut on, op, rules, function).map(|outputs| by_entry(op, outputs));
    }
    // Rules for data-dependent sizes apply before a run; if all elements are known, the function runs instead.
    let open = op.view.is_some()
        || !rules.run_sizes.is_empty()
        || op.custom_inference().is_some()
        || rules
            .shapes
            .iter()
            .chain(rules.dtypes)
            .chain(&rules.length)
            .chain(&rules.compute)
            .any(calls_native);
    if open && !by_run {
        if let Some(sampled) = opaque::infer(op, args, on.context, call::run)? {
            let (outs, compute, present) = (sampled.outs.into(), sampled.compute, sampled.present);
            return Ok(by_entry(op, OutputsMeta { outs, compute, present }));
        }
        if let Some(custom) = op.custom_inference() {
            return custom::infer(op, custom, args, device(&on)?).map(Inference::Tensors);
        }
        let is_list = matches!(op.schema.returns, [only] if only.ty.kind == ArgKind::Tensors);
        let outputs = match op.view {
            Some(_) if !is_list => of_view(&on)?,
            _ => unknown(&mut on, rules, is_list)?,
        };
        return Ok(by_entry(op, outputs));
    }
    by_rules(&mut on, rules).map(|outputs| by_entry(op, outputs))
}

/// Whether the operator has no kernel for the dtype and runs its composition.
fn runs_composition(op: &'static OpDef, outputs: &OutputsMeta) -> bool {
    let device = outputs.outs.first().map_or(Device::CPU, |out| out.device);
    let kernel = |compute| op.has_kernel(device.backend, compute);
    op.composite.is_some() && !outputs.compute.is_none_or(kernel)
}

/// Results by rules, though sizes are unknown. A composition would be tried at some sizes; the entry's rules hold at all.
/// Its results may have any strides.
fn by_entry(op: &'static OpDef, mut outputs: OutputsMeta) -> Inference {
    if runs_composition(op, &outputs) {
        outputs.compute = None;
        outputs.outs.iter_mut().for_each(|out| out.strides = Strides::Unknown);
    }
    Inference::Tensors(outputs)
}

/// The result of compiled inference at known sizes.
pub fn concrete(outcome: call::Outcome) -> OutputsMeta {
    let call::Outcome { outs, compute, device, present } = outcome;
    let outs = outs.into_iter().map(|(layout, dtype)| {
        let (shape, strides) = (Shape::concrete(&layout.sizes), Strides::of(&layout));
        Meta { dtype, shape, strides, device, value: None }
    });
    OutputsMeta { outs: outs.collect(), compute, present }
}

/// Rejects arguments whose elements must be known and are not; returns whether any elements count and all of those are
/// known.
pub(super) fn check_constants<'a>(
    uses: impl Iterator<Item = (&'a str, ValueUse)>,
    args: &[ArgumentMeta<'_>],
) -> Result<bool> {
    let (mut some, mut all) = (false, true);
    for ((name, value), arg) in uses.zip(args).filter(|((_, value), _)| *value != ValueUse::None) {
        let mut known = true;
        arg.for_each_meta(|meta| known &= meta.value.is_some() || !value.counts(meta.dtype));
        some = true;
        all &= known;
        if !known && value == ValueUse::Required {
            return Err(crate::infer::value_unknown(name));
        }
    }
    Ok(some && all)
}

/// Tensors given by constant arguments.
pub(super) fn constants(args: &[ArgumentMeta<'_>]) -> SmallVec<[Option<Meta>; 8]> {
    let constant = |arg: &ArgumentMeta<'_>| match arg {
        ArgumentMeta::Plain(Arg::Tensor(tensor)) => Some(Meta::constant(tensor)),
        _ => None,
    };
    args.iter().map(constant).collect()
}

/// Checks the conditions on arguments: an error if one certainly fails, a guard if it is undecided.
pub(super) fn check<'a>(on: &mut Evaluation<'a, '_>, rules: &'a Rules<'a>) -> Result<()> {
    for check in rules.checks {
        match on.truth(&check.condition)? {
            Condition::True => {}
            Condition::False => return Err(failed(on, check.text, &check.condition)),
            open => {
                let reason = format!("it checks `{}`", check.text);
                on.guard(open, &reason);
            }
        }
    }
    Ok(())
}

/// The error of a condition that does not hold, with the sizes on both sides.
#[cold]
fn failed<'a>(on: &mut Evaluation<'a, '_>, text: &str, condition: &'a Expr<'a>) -> Error {
    let sides = match condition {
        Expr::Binary(_, sides) => [on.size(&sides[0]), on.size(&sides[1])],
        _ => return crate::infer::check_failed(text, &[]),
    };
    match sides {
        [Ok(Size::Const(left)), Ok(Size::Const(right))] => crate::infer::check_failed(text, &[left, right]),
        [Ok(left), Ok(right)] if !left.is_unknown() && !right.is_unknown() => {
            let symbols = &on.context.symbols;
            Error::shape(format!(
                "`{text}` does not hold: the left side is {}, the right side {}",
                left.named(symbols),
                right.named(symbols)
            ))
            .with_help("the operator's documentation says what it accepts")
        }
        _ => crate::infer::check_failed(text, &[]),
    }
}

/// Checks combinations of dtypes, which do not depend on sizes.
pub(super) fn check_combinations<'a>(
    rows: &[Combination],
    args: &[ArgumentMeta<'_>],
    name: impl Fn(usize) -> &'a str,
) -> Result<()> {
    let dtype = |at: usize| match args[at] {
        ArgumentMeta::Tensor(meta) => Some(meta.dtype),
        ArgumentMeta::Plain(Arg::Tensor(tensor)) => Some(tensor.dtype()),
        _ => None,
    };
    let fits = |row: &Combination| row.inputs.iter().all(|(at, wanted)| dtype(*at) == Some(*wanted));
    match rows.is_empty() || rows.iter().any(fits) {
        true => Ok(()),
        false => Err(crate::infer::combination_refused(rows, name)),
    }
}

/// The results of the rules.
pub(super) fn by_rules<'a>(on: &mut Evaluation<'a, '_>, rules: &'a Rules<'a>) -> Result<OutputsMeta> {
    let present = present(on, rules)?;
    let compute = match &rules.compute {
        Some(compute) => dtype(on, compute)?,
        None => crate::infer::DEFAULT_FLOAT,
    };
    let device = device(on)?;
    for (name, bound) in rules.run_sizes {
        let bound = on.size(bound)?;
        let symbol = on.context.symbols.of_run(bound);
        on.locals.push((name, Value::Size(Size::from(symbol))));
    }
    let mut outs = SmallVec::new();
    let mut push = |on: &mut Evaluation<'a, '_>, index: usize| -> Result<()> {
        let (shape, dtype) = match present & 1 << index {
            // An absent result is empty, and its rules, which may read absent arguments, are not run.
            0 => (Shape::concrete(&[0]), compute),
            _ => (on.sizes(&rules.shapes[index])?, dtype(on, &rules.dtypes[index])?),
        };
        outs.push(Meta { dtype, shape, strides: Strides::Contiguous, device, value: None });
        Ok(())
    };
    match &rules.length {
        None => (0..rules.shapes.len()).try_for_each(|index| push(on, index))?,
        Some(length) => {
            let length = on.size(length)?;
            let Some(length) = length.known() else {
                return Err(Error::shape(format!(
                    "how many tensors there are depends on the size {}",
                    length.named(&on.context.symbols)
                ))
                .with_help("give that size as a number"));
            };
            for position in 0..length {
                on.locals.push(("position", Value::Size(Size::Const(position))));
                push(on, 0)?;
                on.locals.pop();
            }
        }
    }
    Ok(OutputsMeta { outs, compute: Some(compute), present })
}

/// The result of a hand-written function.
fn by_function<'a>(
    on: &mut Evaluation<'a, '_>,
    op: &'static OpDef,
    rules: &'a Rules<'a>,
    function: InferFunction,
) -> Result<OutputsMeta> {
    let compute = rules.compute.as_ref().map(|compute| dtype(on, compute)).transpose()?;
    let device = device(on)?;
    let constant = |(arg, constant): (&ArgumentMeta<'a>, &'a Option<Meta>)| {
        constant.as_ref().map_or(*arg, ArgumentMeta::Tensor)
    };
    let args: SmallVec<[ArgumentMeta<'_>; 8]> = on.args.iter().zip(on.constants).map(constant).collect();
    let mut call = InferContext::new(op, &args, on.context);
    function(&mut call)?;
    let outs = call.finish()?.into_iter().map(|(shape, dtype)| Meta {
        dtype,
        shape,
        strides: Strides::Contiguous,
        device,
        value: None,
    });
    Ok(OutputsMeta { outs: outs.collect(), compute, present: u64::MAX })
}

/// The result of a view with only its dtype known.
fn of_view(on: &Evaluation<'_, '_>) -> Result<OutputsMeta> {
    let device = device(on)?;
    let Some(ArgumentMeta::Tensor(first)) = on.args.first() else {
        return Err(Error::argument("a view is of a tensor"));
    };
    let (dtype, shape, strides) = (first.dtype, Shape::UnknownRank, Strides::Unknown);
    let outs = SmallVec::from_elem(Meta { dtype, shape, strides, device, value: None }, 1);
    Ok(OutputsMeta { outs, compute: None, present: u64::MAX })
}

/// Results with only their dtypes known.
pub(super) fn unknown<'a>(
    on: &mut Evaluation<'a, '_>,
    rules: &'a Rules<'a>,
    is_list: bool,
) -> Result<OutputsMeta> {
    let device = device(on)?;
    if is_list {
        return Err(Error::shape("how many tensors there are depends on sizes that are not known")
            .with_help("give these sizes as numbers"));
    }
    let present = present(on, rules)?;
    let compute = rules.compute.as_ref().map(|compute| dtype(on, compute)).transpose()?;
    let out = |rule| {
        let (dtype, shape) = (dtype(on, rule)?, Shape::UnknownRank);
        Ok(Meta { dtype, shape, strides: Strides::Contiguous, device, value: None })
    };
    let outs = rules.dtypes.iter().map(out).collect::<Result<_>>()?;
    Ok(OutputsMeta { outs, compute, present })
}

/// The results that are present, a bit each.
fn present<'a>(on: &mut Evaluation<'a, '_>, rules: &'a Rules<'a>) -> Result<u64> {
    let mut bits = u64::MAX;
    for (index, condition) in rules.present.iter().enumerate() {
        let Some(condition) = condition else { continue };
        match on.truth(condition)? {
            Condition::True => {}
            Condition::False => bits &= !(1 << index),
            open => {
                return Err(Error::value(format!(
                    "whether result {index} is there depends on {}",
                    open.named(&on.context.symbols)
                ))
                .with_help("give these sizes as numbers"));
            }
        }
    }
    Ok(bits)
}

fn dtype<'a>(on: &mut Evaluation<'a, '_>, rule: &'a Expr<'a>) -> Result<DType> {
    match on.value(rule)? {
        Value::DType(dtype) => Ok(dtype),
        _ => Err(Error::dtype("the dtype of the result depends on what is not known before the run")
            .with_help("give the number of dimensions of every tensor")),
    }
}

/// The device given by an argument, else that of the tensors.
fn device<'m>(on: &'m Evaluation<'m, '_>) -> Result<Device> {
    let named = on.args.iter().find_map(|arg| match arg {
        ArgumentMeta::Plain(Arg::Device(device)) => Some(*device),
        _ => None,
    });
    if let Some(device) = named {
        return Ok(device);
    }
    let mut found: Option<&'m Meta> = None;
    let mut clash = None;
    let moves = |meta: &Meta| meta.device == Device::CPU && meta.shape.rank() == Some(0);
    for (arg, constant) in on.args.iter().zip(on.constants) {
        let mut visit = |meta: &'m Meta| match found {
            Some(first) if first.device != meta.device => match (moves(first), moves(meta)) {
                (true, _) => found = Some(meta),
                (false, true) => {}
                _ => clash = Some((first.device, meta.device)),
            },
            Some(_) => {}
            None => found = Some(meta),
        };
        constant.iter().for_each(&mut visit);
        arg.for_each_meta(visit);
    }
    match clash {
        Some((a, b)) => Err(Error::device(format!("the operands are on different devices, {a} and {b}"))
            .with_help("move them to one device first")),
        None => Ok(found.map_or(Device::CPU, |meta| meta.device)),
    }
}

/// Whether an expression has a part that only compiled inference can evaluate.
fn calls_native(expr: &Expr<'_>) -> bool {
    match expr {
        Expr::Native(_) => true,
        Expr::List(parts) | Expr::ShapeRule(_, parts) | Expr::DTypeRule(_, parts) | Expr::Query(_, parts) => {
            parts.iter().any(calls_native)
        }
        Expr::Binary(_, parts) | Expr::And(parts) | Expr::Or(parts) | Expr::Index(parts) => {
            parts.iter().any(calls_native)
        }
        Expr::If(parts) => parts.iter().any(calls_native),
        Expr::Neg(inner) | Expr::Not(inner) | Expr::Convert(_, inner) => calls_native(inner),
        Expr::Block(bindings, tail) => {
            bindings.iter().any(|(_, value)| calls_native(value)) || calls_native(tail)
        }
        Expr::Arg(_)
        | Expr::Local(_)
        | Expr::Int(_)
        | Expr::Float(_)
        | Expr::Bool(_)
        | Expr::Str(_)
        | Expr::DType(_)
        | Expr::None => false,
    }
}

/// The operands for an error, with −1 for symbolic sizes and −2 for an unknown rank.
pub fn operands(op: &OpDef, args: &[ArgumentMeta<'_>], symbols: &Symbols) -> Vec<ErrorOperand> {
    let shape = |meta: &Meta| match meta.shape.sizes() {
        Some(sizes) => sizes.iter().map(|size| size.known().unwrap_or(-1)).collect(),
        None => vec![-2],
    };
    let mut found = Vec::new();
    for (def, arg) in op.schema.args.iter().zip(args) {
        let mut index = 0;
        let single = matches!(arg, ArgumentMeta::Tensor(_));
        arg.for_each_meta(|meta| {
            let name = if single { def.name.to_owned() } else { format!("{}[{index}]", def.name) };
            index += 1;
            let formulas = meta.shape.known().is_none().then(|| meta.shape.named(symbols).to_string());
            found.push(ErrorOperand { name, dtype: meta.dtype, shape: shape(meta), formulas });
        });
    }
    found
}
