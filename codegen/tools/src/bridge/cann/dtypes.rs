//! The dtypes of an operator's tensors that go together, a column each, as CANN lists them.
//!
//! In: an operator and the rules of its results. Out: columns of dtypes. Attributes that choose dtypes have their defaults there.

use opsmith_codegen::model::expr::{Expr, ExprKind, Query, Variable};
use opsmith_codegen::model::{Default, Element, Kind, Model, Op, Operation};
use opsmith_core::rules::{DTypeRule, Rule};
use opsmith_core::{Backend, DType, DTypeCategory, DTypeSet};

use super::rules::{called, dtype_rule, element_type};

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
pub fn columns(model: &Model, op: &Op, rules: &[Expr]) -> Vec<Column> {
    let mut found: Vec<Column> = Vec::new();
    for dtype in ORDER {
        let inputs: Vec<Option<DType>> = op.args.iter().map(|arg| of_argument(arg, dtype)).collect();
        let is_fine = accepted(op).map_or(FLOATS.contains(&dtype), |set| set.contains(dtype));
        let call = Call { model, op, inputs: &inputs, depth: 0 };
        let outputs = rules.iter().map(|rule| call.of_rule(rule)).collect::<Option<Vec<_>>>();
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

/// A call: of the operator itself, whose attributes have their defaults, or of one that its composition calls.
#[derive(Clone, Copy)]
struct Call<'a> {
    model: &'a Model,
    op: &'a Op,
    inputs: &'a [Option<DType>],
    /// The number of calls around it.
    depth: usize,
}

/// The most calls in each other.
const DEPTH: usize = 8;

/// The default float for an integer or a truth value, else the dtype itself.
fn floating(dtype: DType) -> DType {
    if dtype.category() < DTypeCategory::Float { DType::F32 } else { dtype }
}

/// The dtype of a number by its type; `None` of one of any kind.
fn number_dtype(number: &Expr) -> Option<DType> {
    match (&number.kind, &number.ty.kind) {
        (ExprKind::Convert(inner), _) => number_dtype(inner),
        (_, Kind::Bool) => Some(DType::Bool),
        (_, Kind::Int) => Some(DType::I64),
        (_, Kind::Float) => Some(DType::F32),
        _ => None,
    }
}

impl Call<'_> {
    /// A rule's dtype; `None` if it depends on anything but dtypes, defaults, and the types of numbers.
    fn of_rule(self, rule: &Expr) -> Option<DType> {
        match &rule.kind {
            ExprKind::DType(dtype) => Some(*dtype),
            ExprKind::Convert(inner) => self.of_rule(inner),
            ExprKind::Query(Query::DType, of, _) => self.of_tensor(of),
            ExprKind::Query(Query::UnwrapOr, of, args) => {
                self.given(of)?.or_else(|| self.of_rule(args.first()?))
            }
            ExprKind::Query(Query::Unwrap, of, _) => self.given(of)?,
            ExprKind::If(condition, yes, no) => self.of_rule(if self.holds(condition)? { yes } else { no }),
            ExprKind::Variable(Variable::Arg(_)) => self.given(rule)?,
            ExprKind::Rule(Rule::DType(rule), args) => self.of_dtype_rule(*rule, args),
            _ => None,
        }
    }

    fn of_dtype_rule(self, rule: DTypeRule, args: &[Expr]) -> Option<DType> {
        let (tensors, numbers): (Vec<&Expr>, Vec<&Expr>) =
            args.iter().partition(|arg| arg.ty.holds_tensors());
        let dtypes = tensors.into_iter().map(|tensor| self.of_tensor(tensor)).collect::<Option<Vec<_>>>()?;
        let first = *dtypes.first().unwrap_or(&DType::F32);
        let promoted = || {
            let all = dtypes.iter().try_fold(first, |all, next| opsmith_core::promote(all, *next))?;
            numbers.iter().try_fold(all, |all, number| match self.of_number(number)? {
                number if number.category() > all.category() => Some(number),
                _ => Some(all),
            })
        };
        Some(match rule {
            DTypeRule::Follow | DTypeRule::Same => first,
            DTypeRule::Promote => promoted()?,
            DTypeRule::PromoteFloat => floating(promoted()?),
            DTypeRule::Real => first.to_real(),
            DTypeRule::Opmath => first.to_compute(),
            DTypeRule::Complex => first.to_complex(),
            DTypeRule::Accumulate => match self.given(args.get(1)?)? {
                Some(dtype) => dtype,
                None if first.category() < DTypeCategory::Float => DType::I64,
                None => first,
            },
            DTypeRule::OrDefault => self.given(args.first()?)?.unwrap_or(DType::F32),
        })
    }

    /// The dtype of a number, which in a call is that of its argument.
    fn of_number(self, number: &Expr) -> Option<DType> {
        match &number.kind {
            ExprKind::Convert(inner) => self.of_number(inner),
            ExprKind::Variable(Variable::Arg(index)) if self.depth > 0 => self.inputs.get(*index).copied()?,
            _ => number_dtype(number),
        }
    }

    /// The dtype of a tensor: of an argument, or of the result of a call.
    fn of_tensor(self, tensor: &Expr) -> Option<DType> {
        match &tensor.kind {
            ExprKind::Variable(Variable::Arg(index)) => self.inputs.get(*index).copied().flatten(),
            ExprKind::Convert(inner) => self.of_tensor(inner),
            // A number that is an argument of a call is known by its type in the caller alone.
            ExprKind::Op(id, args) if self.depth < DEPTH => {
                let op = called(self.model, *id);
                let inputs: Vec<Option<DType>> = args
                    .iter()
                    .map(|arg| if arg.ty.holds_tensors() { self.of_tensor(arg) } else { number_dtype(arg) })
                    .collect();
                let call = Call { op, inputs: &inputs, depth: self.depth + 1, ..self };
                call.of_rule(&dtype_rule(self.model, op)?)
            }
            _ => None,
        }
    }

    /// The default of an argument that is a dtype, of which the inner `None` means that it is absent; the outer one, that calls have
    /// to give it.
    fn given(self, expr: &Expr) -> Option<Option<DType>> {
        match &expr.kind {
            ExprKind::DType(dtype) => Some(Some(*dtype)),
            ExprKind::None => Some(None),
            ExprKind::Convert(inner) => self.given(inner),
            ExprKind::Variable(Variable::Arg(index)) if self.depth == 0 => match &self.op.args[*index] {
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

    /// Whether an argument is there by default.
    fn is_there(self, expr: &Expr) -> Option<bool> {
        match expr.kind {
            ExprKind::Variable(Variable::Arg(index)) if self.depth == 0 => {
                let arg = &self.op.args[index];
                Some(!arg.ty.optional || !matches!(arg.default, None | Some(Default::None)))
            }
            _ => None,
        }
    }

    /// Whether a condition on dtypes or on the presence of arguments holds.
    fn holds(self, condition: &Expr) -> Option<bool> {
        let of =
            |expr: &Expr| if expr.ty.holds_tensors() { self.of_tensor(expr) } else { self.of_rule(expr) };
        match &condition.kind {
            ExprKind::Bool(value) => Some(*value),
            ExprKind::Query(Query::IsComplex, expr, _) => Some(of(expr)?.is_complex()),
            ExprKind::Query(Query::IsFloat, expr, _) => Some(of(expr)?.is_float()),
            ExprKind::Query(Query::IsInt, expr, _) => Some(of(expr)?.is_int()),
            ExprKind::Query(Query::IsSome, expr, _) => self.is_there(expr),
            ExprKind::Query(Query::IsNone, expr, _) => Some(!self.is_there(expr)?),
            ExprKind::Unary(Operation::Not, inner) => Some(!self.holds(inner)?),
            ExprKind::Logical(is_and, a, b) => {
                let (a, b) = (self.holds(a)?, self.holds(b)?);
                Some(if *is_and { a && b } else { a || b })
            }
            ExprKind::Binary(Operation::Eq, a, b) => Some(self.of_rule(a)? == self.of_rule(b)?),
            _ => None,
        }
    }
}
