//! Inference of calls: conditions on arguments, then shapes and dtypes of results by the entry's rules.
//!
//! In: the arguments of a call. Out: the results' shapes and dtypes. A named rule is evaluated by the runtime, which has one
//! body for each; before sizes are known, the runtime evaluates the same rules as trees.

use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{CheckedCondition, Infer, Kind, Op, POSITION, Ty};
use opsmith_core::rule_tree::{Expr as Tree, Rules};
use opsmith_core::rules::Rule;
use opsmith_runtime::arg::{Arg, Value};
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{ArgumentMeta, Context, Meta, Uncompiled, infer_uncompiled};
use opsmith_runtime::infer::{check_combination, check_failed, device_of};
use opsmith_runtime::layout::Dims;
use opsmith_runtime::op::{Inferred, OpDef, OutSpec, check_list_length};
use opsmith_runtime::{DType, constraint};

use crate::evaluate::{Arguments, Evaluation};
use crate::item::Item;
use crate::operator::{Operator, Spec};

/// The results of a call.
///
/// # Errors
/// If the arguments do not fit.
pub fn infer(operator: &Operator, rules: &Infer, args: &[Arg<'_>]) -> Result<Inferred> {
    let names = Arguments(args);
    let mut on = Evaluation::new(operator.spec, &names);
    check(operator.definition()?, operator.op(), &mut on, args)?;
    let compute = dtype(&mut on, &rules.compute)?;
    let named = args.iter().find_map(|arg| match arg {
        Arg::Device(device) => Some(*device),
        _ => None,
    });
    let device: Device = named.map_or_else(|| device_of(args), Ok)?;
    if let Some(length) = &rules.length {
        let length = on.value(length)?.int()?;
        check_list_length(length)?;
        let each = (0..length).map(|position| {
            on.bind(POSITION, Value::Int(position).into());
            out(&mut on, &rules.shapes[0], &rules.dtypes[0])
        });
        let outs = each.collect::<Result<_>>()?;
        return Ok(Inferred { outs, compute, device });
    }
    let present = operator.present(args)?;
    let outs = std::iter::zip(&rules.shapes, &rules.dtypes).enumerate().map(|(index, (shape, dtype))| {
        match present & 1 << index {
            // An absent result is empty, and its rules, which may read absent arguments, are not run.
            0 => Ok(OutSpec { sizes: Dims::from_slice(&[0]), dtype: compute }),
            _ => out(&mut on, shape, dtype),
        }
    });
    Ok(Inferred { outs: outs.collect::<Result<_>>()?, compute, device })
}

fn out<'a>(on: &mut Evaluation<'a>, shape: &'a Expr, dtype_rule: &'a Expr) -> Result<OutSpec> {
    let sizes = match on.value(shape)? {
        Item::One(Value::Ints(sizes)) => Dims::from_vec(sizes),
        other => return Err(crate::item::defect("sizes", &other)),
    };
    Ok(OutSpec { sizes, dtype: dtype(on, dtype_rule)? })
}

fn dtype<'a>(on: &mut Evaluation<'a>, rule: &'a Expr) -> Result<DType> {
    match on.value(rule)? {
        Item::One(Value::DType(dtype)) => Ok(dtype),
        other => Err(crate::item::defect("a dtype", &other)),
    }
}

/// The constraints of attributes, the combinations of dtypes, then the conditions.
///
/// # Errors
/// If one does not hold.
pub fn check<'a>(definition: &OpDef, op: &'a Op, on: &mut Evaluation<'a>, args: &[Arg<'_>]) -> Result<()> {
    constraint::check(definition, args)?;
    if !op.combinations.is_empty() {
        check_combination(definition, args)?;
    }
    for CheckedCondition { condition, text } in &op.checks {
        if !on.value(condition)?.truth()? {
            let sides = compared(condition).into_iter().flatten();
            let values = sides.map(|side| on.value(side)?.int()).collect::<Result<Vec<_>>>()?;
            return Err(check_failed(text, &values));
        }
    }
    Ok(())
}

/// Both sides of a comparison of integers.
fn compared(condition: &Expr) -> Option<[&Expr; 2]> {
    match &condition.kind {
        ExprKind::Binary(operation, a, b) if operation.is_comparison() && a.ty == Ty::new(Kind::Int) => {
            Some([a, b])
        }
        _ => None,
    }
}

/// The value of a named rule.
///
/// # Errors
/// Errors of the rule, which are those of every call.
pub fn rule(rule: Rule, values: &[Value]) -> Result<Value> {
    let trees: Vec<Tree<'_>> = (0..values.len()).map(|at| Tree::Arg(at as u8)).collect();
    let (no_sizes, no_dtype) = ([Tree::List(&[])], [Tree::DType(DType::F32)]);
    let (shape, of_dtype);
    let rules = match rule {
        Rule::Shape(rule) => {
            shape = [Tree::ShapeRule(rule, &trees)];
            Rules { compute: Some(no_dtype[0]), ..Rules::of(&shape, &no_dtype) }
        }
        Rule::DType(rule) => {
            of_dtype = [Tree::DTypeRule(rule, &trees)];
            Rules { compute: Some(no_dtype[0]), ..Rules::of(&no_sizes, &of_dtype) }
        }
    };
    let lists: Vec<Metas> = values.iter().map(Metas::of).collect();
    let args: Vec<ArgumentMeta<'_>> =
        std::iter::zip(values, &lists).map(|(value, metas)| metas.argument(value)).collect();
    let op = Uncompiled { args: &[], combinations: &[], rules };
    let out = infer_uncompiled(&op, &args, &mut Context::new())?.outs.swap_remove(0);
    match rule {
        Rule::DType(_) => Ok(Value::DType(out.dtype)),
        Rule::Shape(_) => match out.shape.known() {
            Some(sizes) => Ok(Value::Ints(sizes.to_vec())),
            None => Err(Error::shape("the sizes of a result are not known")),
        },
    }
}

/// Facts of the tensors of an argument.
enum Metas {
    None,
    Tensors(Vec<Meta>),
    Optional(Vec<Option<Meta>>),
}

impl Metas {
    fn of(value: &Value) -> Metas {
        match value {
            Value::Tensors(list) => Metas::Tensors(list.iter().map(Meta::describe).collect()),
            Value::OptionalTensors(list) => {
                Metas::Optional(list.iter().map(|tensor| tensor.as_ref().map(Meta::describe)).collect())
            }
            Value::Tensor(tensor) => Metas::Tensors(vec![Meta::describe(tensor)]),
            _ => Metas::None,
        }
    }

    fn argument<'a>(&'a self, value: &'a Value) -> ArgumentMeta<'a> {
        match (self, value) {
            (Metas::Tensors(metas), Value::Tensor(_)) => ArgumentMeta::Tensor(&metas[0]),
            (Metas::Tensors(metas), _) => ArgumentMeta::Tensors(metas),
            (Metas::Optional(metas), _) => ArgumentMeta::OptionalTensors(metas),
            (Metas::None, value) => ArgumentMeta::Plain(value.as_arg()),
        }
    }
}

/// The results that are present, a bit each.
///
/// # Errors
/// Errors of the conditions.
pub fn present(spec: &Spec, op: &Op, args: &[Arg<'_>]) -> Result<u64> {
    let names = Arguments(args);
    let mut on = Evaluation::new(spec, &names);
    let mut bits = u64::MAX;
    for (index, output) in op.outputs.iter().enumerate() {
        if let Some(condition) = &output.present
            && !on.value(condition)?.truth()?
        {
            bits &= !(1 << index);
        }
    }
    Ok(bits)
}
