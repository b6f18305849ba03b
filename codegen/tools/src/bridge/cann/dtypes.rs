//! The dtypes of an operator's tensors that go together, a column each, as CANN lists them.
//!
//! In: an operator and the rules of its results. Out: columns of dtypes. Attributes that choose dtypes have their defaults there.

use opsmith_codegen::model::expr::{Expr, ExprKind, Query, Variable};
use opsmith_codegen::model::{Default, Element, Kind, Op, Operation};
use opsmith_core::rules::{DTypeRule, Rule};
use opsmith_core::{Backend, DType, DTypeCategory, DTypeSet};

use super::rules::element_type;

/// The dtypes that CANN has, those of most kernels first.
pub const ORDER: [DType; 15] = [
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::F64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::Bool,
    DType::C64,
    DType::C128,
];

/// The dtypes of a composition, which declares none.
const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Dtypes that go together: of the tensors among the arguments, in order, and of the results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Of each argument; `None` of those that are no tensors.
    pub inputs: Vec<Option<DType>>,
    /// Of each result.
    pub outputs: Vec<DType>,
}

/// The columns of an operator.
pub fn columns(op: &Op, rules: &[Expr]) -> Vec<Column> {
    let mut found: Vec<Column> = Vec::new();
    for dtype in ORDER {
        let inputs: Vec<Option<DType>> = op.args.iter().map(|arg| of_argument(arg, dtype)).collect();
        let is_fine = accepted(op).map_or(FLOATS.contains(&dtype), |set| set.contains(dtype));
        let outputs = rules.iter().map(|rule| of_rule(op, rule, &inputs)).collect::<Option<Vec<_>>>();
        let Some(outputs) = outputs.filter(|_| is_fine && op.combinations.is_empty()) else { continue };
        let column = Column { inputs, outputs };
        if !found.contains(&column) {
            found.push(column);
        }
    }
    let of = |at: usize, combination: &opsmith_codegen::model::Combination| {
        combination.inputs.iter().find(|(place, _)| *place == at).map(|(_, dtype)| *dtype)
    };
    found.extend(op.combinations.iter().map(|one| Column {
        inputs: (0..op.args.len()).map(|at| of(at, one)).collect(),
        outputs: one.outputs.to_vec(),
    }));
    let is_known = |dtype: &DType| element_type(*dtype).is_some();
    found
        .retain(|column| column.inputs.iter().flatten().all(is_known) && column.outputs.iter().all(is_known));
    found
}

/// The dtypes of an operator's own kernels on the host; `None` if it has none.
fn accepted(op: &Op) -> Option<DTypeSet> {
    let set = op.body.dtypes_of_row(Backend::Cpu);
    let is_own = op.body.composite.is_none() && set != DTypeSet::EMPTY;
    is_own.then_some(set)
}

fn of_argument(arg: &opsmith_codegen::model::Arg, dtype: DType) -> Option<DType> {
    if !arg.ty.holds_tensors() {
        return None;
    }
    Some(match arg.element {
        Element::Real => dtype.to_real(),
        Element::Opmath => dtype.to_compute(),
        Element::Fixed { kernel, .. } => kernel,
        Element::Dispatch | Element::Any | Element::NotTensor => dtype,
    })
}

/// A rule's dtype for those of arguments; `None` if it depends on anything else.
fn of_rule(op: &Op, rule: &Expr, inputs: &[Option<DType>]) -> Option<DType> {
    let argument = |expr: &Expr| match expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => inputs.get(index).copied().flatten(),
        _ => None,
    };
    match &rule.kind {
        ExprKind::DType(dtype) => Some(*dtype),
        ExprKind::Convert(inner) => of_rule(op, inner, inputs),
        ExprKind::Query(Query::DType, of, _) => argument(of),
        ExprKind::Query(Query::UnwrapOr, of, args) => {
            given(op, of)?.or_else(|| of_rule(op, args.first()?, inputs))
        }
        ExprKind::Query(Query::Unwrap, of, _) => given(op, of)?,
        ExprKind::If(condition, yes, no) => {
            of_rule(op, if holds(op, condition, inputs)? { yes } else { no }, inputs)
        }
        ExprKind::Variable(Variable::Arg(_)) => given(op, rule)?,
        ExprKind::Rule(Rule::DType(rule), args) => {
            let tensors = args.iter().filter(|arg| arg.ty.holds_tensors());
            let dtypes = tensors.map(&argument).collect::<Option<Vec<_>>>()?;
            let first = *dtypes.first().unwrap_or(&DType::F32);
            let floating =
                |dtype: DType| if dtype.category() < DTypeCategory::Float { DType::F32 } else { dtype };
            let promoted = || dtypes.iter().try_fold(first, |all, next| opsmith_core::promote(all, *next));
            Some(match rule {
                DTypeRule::Follow => first,
                DTypeRule::Same => first,
                DTypeRule::Promote => promoted()?,
                DTypeRule::PromoteFloat => floating(promoted()?),
                DTypeRule::Real => first.to_real(),
                DTypeRule::Opmath => first.to_compute(),
                DTypeRule::Complex => first.to_complex(),
                DTypeRule::Accumulate => match given(op, args.get(1)?)? {
                    Some(dtype) => dtype,
                    None if first.category() < DTypeCategory::Float => DType::I64,
                    None => first,
                },
                DTypeRule::OrDefault => given(op, args.first()?)?.unwrap_or(DType::F32),
            })
        }
        _ => None,
    }
}

/// The default of an argument that is a dtype, of which the inner `None` means that it is absent; the outer one, that calls have to give it.
fn given(op: &Op, expr: &Expr) -> Option<Option<DType>> {
    match &expr.kind {
        ExprKind::DType(dtype) => Some(Some(*dtype)),
        ExprKind::None => Some(None),
        ExprKind::Convert(inner) => given(op, inner),
        ExprKind::Variable(Variable::Arg(index)) => match &op.args[*index] {
            arg if arg.ty.kind != Kind::DType => None,
            arg => match &arg.default {
                Some(Default::DType(dtype)) => Some(Some(*dtype)),
                Some(Default::None) => Some(None),
                _ if arg.ty.optional => Some(None),
                _ => None,
            },
        },
        _ => None,
    }
}

/// Whether a condition on dtypes or on the presence of arguments holds, with defaults for those that have some.
fn holds(op: &Op, condition: &Expr, inputs: &[Option<DType>]) -> Option<bool> {
    let of = |expr: &Expr| match &expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => inputs.get(*index).copied().flatten(),
        ExprKind::Query(Query::DType, ..) => of_rule(op, expr, inputs),
        _ => None,
    };
    let is_there = |expr: &Expr| match expr.kind {
        ExprKind::Variable(Variable::Arg(index)) => {
            let arg = &op.args[index];
            Some(!arg.ty.optional || !matches!(arg.default, None | Some(Default::None)))
        }
        _ => None,
    };
    match &condition.kind {
        ExprKind::Bool(value) => Some(*value),
        ExprKind::Query(Query::IsComplex, expr, _) => Some(of(expr)?.is_complex()),
        ExprKind::Query(Query::IsFloat, expr, _) => Some(of(expr)?.is_float()),
        ExprKind::Query(Query::IsInt, expr, _) => Some(of(expr)?.is_int()),
        ExprKind::Query(Query::IsSome, expr, _) => is_there(expr),
        ExprKind::Query(Query::IsNone, expr, _) => Some(!is_there(expr)?),
        ExprKind::Unary(Operation::Not, inner) => Some(!holds(op, inner, inputs)?),
        ExprKind::Logical(is_and, a, b) => {
            let (a, b) = (holds(op, a, inputs)?, holds(op, b, inputs)?);
            Some(if *is_and { a && b } else { a || b })
        }
        ExprKind::Binary(Operation::Eq, a, b) => Some(of_rule(op, a, inputs)? == of_rule(op, b, inputs)?),
        _ => None,
    }
}
