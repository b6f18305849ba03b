//! The results of compositions: the operator or argument that gives each, and its shape in terms of the composition's arguments.
//!
//! In: the model. Out: [`Source`]s, and rules of shapes as expressions. Must not write words or formulas.

use opsmith_core::Query;
use opsmith_core::rules::{Rule, ShapeRule};

use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Kind, Model, Op, Operation, Ty};

/// The source of a result of a composition.
pub enum Source<'a> {
    /// An argument, by its position.
    Argument(usize),
    /// A result of a called operator.
    Call {
        /// The operator by the name that the composition uses.
        called: &'a Op,
        /// The operator that this name means.
        meant: &'a Op,
        /// The arguments of the call.
        args: &'a [Expr],
        /// The names that the call may use.
        scope: Scope<'a>,
        /// The result's position among those of the called operator.
        position: usize,
    },
    /// One of two sources.
    Either {
        /// The condition of the first.
        condition: &'a Expr,
        /// The names that the condition may use.
        scope: Scope<'a>,
        /// The sources.
        sources: Box<[Source<'a>; 2]>,
    },
}

/// The names bound by `let` around a part of a composition, the innermost last.
#[derive(Clone, Default)]
pub struct Scope<'a>(Vec<&'a [(String, Expr)]>);

impl<'a> Scope<'a> {
    /// The value of a name, and the names that it may use: those bound before.
    fn value(&self, name: &str) -> Option<(&'a Expr, Scope<'a>)> {
        let (depth, at) = self.0.iter().enumerate().rev().find_map(|(depth, bindings)| {
            bindings.iter().rposition(|(known, _)| known == name).map(|at| (depth, at))
        })?;
        let mut before = self.0[..depth].to_vec();
        before.push(&self.0[depth][..at]);
        Some((&self.0[depth][at].1, Scope(before)))
    }

    fn with(&self, bindings: &'a [(String, Expr)]) -> Scope<'a> {
        Scope(self.0.iter().copied().chain([bindings]).collect())
    }

    /// An expression with values for its names; `None` if one has none.
    fn resolved(&self, expr: &Expr) -> Option<Expr> {
        substituted(expr, &|variable, part| match variable {
            Variable::Local(name) => {
                let (value, scope) = self.value(name)?;
                scope.resolved(value)
            }
            _ => Some(part.clone()),
        })
    }
}

/// The source of a result of an operator's composition; `None` if the operator has none, or an expression gives it that is neither
/// an argument nor a call.
pub fn source<'a>(model: &'a Model, op: &'a Op, position: usize) -> Option<Source<'a>> {
    find(model, op.body.composite.as_ref()?, Scope::default(), position)
}

fn find<'a>(model: &'a Model, expr: &'a Expr, scope: Scope<'a>, position: usize) -> Option<Source<'a>> {
    match &expr.kind {
        ExprKind::Convert(inner) => find(model, inner, scope, position),
        ExprKind::Block(bindings, value) => find(model, value, scope.with(bindings), position),
        ExprKind::Variable(Variable::Local(name)) => {
            let (value, scope) = scope.value(name)?;
            find(model, value, scope, position)
        }
        ExprKind::Variable(Variable::Arg(index)) => Some(Source::Argument(*index)),
        ExprKind::Tuple(values) => find(model, values.get(position)?, scope, 0),
        ExprKind::Index(of, at) => match at.kind {
            ExprKind::Int(at) => find(model, of, scope, usize::try_from(at).ok()?),
            _ => None,
        },
        ExprKind::Op(id, args) => {
            let called = model.ops.get(id.0)?;
            let meant = called.alias_of.map_or(called, |id| &model.ops[id.0]);
            Some(Source::Call { called, meant, args, scope, position })
        }
        ExprKind::If(condition, yes, no) => {
            let yes = find(model, yes, scope.clone(), position)?;
            let no = find(model, no, scope.clone(), position)?;
            Some(Source::Either { condition, scope, sources: Box::new([yes, no]) })
        }
        _ => None,
    }
}

/// The most parts of a shape that is put together.
const MOST_PARTS: usize = 60;

/// The shape of a result of a composition as an expression of its arguments, from the rules of the operators that it calls; `None` if
/// one of them has no rules, or the expression would be long. A choice of two is an `if`, the shape of an argument `x.sizes()`.
pub fn shape(model: &Model, op: &Op, position: usize) -> Option<Expr> {
    composed(model, op, position, &Callers { op, outer: None })
}

/// The compositions that are being followed.
#[derive(Clone, Copy)]
pub(crate) struct Callers<'a> {
    /// The innermost operator.
    pub op: &'a Op,
    /// Those around it.
    pub outer: Option<&'a Callers<'a>>,
}

impl Callers<'_> {
    /// A composition may call its own operator, with other arguments.
    pub(crate) fn have(&self, op: &Op) -> bool {
        std::ptr::eq(self.op, op) || self.outer.is_some_and(|outer| outer.have(op))
    }
}

fn composed(model: &Model, op: &Op, position: usize, callers: &Callers<'_>) -> Option<Expr> {
    let shape = of_source(model, &source(model, op, position)?, callers)?;
    let (mut parts, mut is_known) = (0, true);
    // The shape of a call whose operator has no rule would explain nothing.
    shape.walk(&mut |part| {
        parts += 1;
        is_known &= match part.kind {
            ExprKind::Native(..) => false,
            ExprKind::Op(..) => of_call(model, part, callers).is_some(),
            _ => true,
        };
    });
    (is_known && parts <= MOST_PARTS).then_some(shape)
}

fn of_source(model: &Model, source: &Source<'_>, callers: &Callers<'_>) -> Option<Expr> {
    match source {
        Source::Argument(index) => {
            let of = Expr {
                kind: ExprKind::Variable(Variable::Arg(*index)),
                ty: Ty::new(Kind::Tensor),
                range: 0..0,
            };
            let kind = ExprKind::Query(Query::Sizes, Box::new(of), Vec::new());
            Some(Expr { kind, ty: Ty::new(Kind::Ints(None)), range: 0..0 })
        }
        Source::Call { called: _, meant, args, scope, position } => {
            let rule = rule(model, meant, *position, callers)?;
            let resolved = |arg: &Expr| Some(like(model, scope.resolved(arg)?, callers));
            let shape = substituted(&rule, &|variable, part| match variable {
                Variable::Arg(index) => resolved(args.get(*index)?),
                _ => Some(part.clone()),
            })?;
            Some(shortened(model, decided(shape), callers))
        }
        Source::Either { condition, scope, sources } => {
            let [yes, no] = &**sources;
            let (yes, no) = (of_source(model, yes, callers)?, of_source(model, no, callers)?);
            let (condition, ty) = (scope.resolved(condition)?, yes.ty.clone());
            let kind = ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no));
            Some(shortened(model, decided(Expr { kind, ty, range: 0..0 }), callers))
        }
    }
}

/// The rule of a called operator's result, or that of its composition.
fn rule(model: &Model, op: &Op, position: usize, callers: &Callers<'_>) -> Option<Expr> {
    if callers.have(op) {
        return None;
    }
    match &op.infer {
        Some(infer) if infer.function.is_some() || infer.length.is_some() => None,
        Some(infer) => {
            let rules = if infer.run_shapes.is_empty() { &infer.shapes } else { &infer.run_shapes };
            rules.get(position).cloned()
        }
        None if op.body.view.is_some() => None,
        None => composed(model, op, position, &Callers { op, outer: Some(callers) }),
    }
}

/// The shape of a tensor that a call gives, if its operator has a rule.
fn of_call(model: &Model, tensor: &Expr, callers: &Callers<'_>) -> Option<Expr> {
    of_source(model, &find(model, tensor, Scope::default(), 0)?, callers)
}

/// A tensor of the same shape that is an argument of calls rather than their result, where the rules say that it has the same.
fn like(model: &Model, tensor: Expr, callers: &Callers<'_>) -> Expr {
    if matches!(tensor.kind, ExprKind::Op(..) | ExprKind::If(..))
        && let Some(Expr { kind: ExprKind::Query(Query::Sizes, of, _), .. }) =
            of_call(model, &tensor, callers)
    {
        return *of;
    }
    tensor
}

/// The tensors whose shapes a call's result broadcasts, in the places of the call, each once.
fn broadcast(model: &Model, tensors: &[Expr], callers: &Callers<'_>) -> ExprKind {
    let mut all: Vec<Expr> = Vec::new();
    for tensor in tensors {
        let parts = match of_call(model, tensor, callers).map(|shape| shape.kind) {
            Some(ExprKind::Rule(Rule::Shape(ShapeRule::Broadcast), parts)) => parts,
            _ => vec![tensor.clone()],
        };
        for part in parts.into_iter().filter(|part| !is_number(part)) {
            if !all.iter().any(|known| known.same_meaning(&part)) {
                all.push(part);
            }
        }
    }
    match &all[..] {
        [only] if only.ty.is_tensor() => ExprKind::Query(Query::Sizes, Box::new(only.clone()), Vec::new()),
        _ => ExprKind::Rule(ShapeRule::Broadcast.into(), all),
    }
}

/// Whether a tensor is a number in the composition, which has no dimensions.
fn is_number(tensor: &Expr) -> bool {
    match &tensor.kind {
        ExprKind::Convert(inner) => is_number(inner),
        _ => matches!(tensor.ty.kind, Kind::Int | Kind::Float | Kind::Scalar | Kind::Bool),
    }
}

/// The shape of a tensor: of a call, by the rules of its operator.
fn sizes(model: &Model, tensor: &Expr, callers: &Callers<'_>) -> ExprKind {
    let known = match tensor.kind {
        ExprKind::Op(..) | ExprKind::If(..) => of_call(model, tensor, callers).map(|shape| shape.kind),
        _ => None,
    };
    known.unwrap_or_else(|| ExprKind::Query(Query::Sizes, Box::new(tensor.clone()), Vec::new()))
}

/// A rule with shorter rules of the same meaning in its parts.
fn shortened(model: &Model, mut expr: Expr, callers: &Callers<'_>) -> Expr {
    for part in expr.children_mut() {
        *part = shortened(model, part.clone(), callers);
    }
    let kind = match &expr.kind {
        ExprKind::Rule(Rule::Shape(ShapeRule::Broadcast), tensors) => {
            Some(broadcast(model, tensors, callers))
        }
        ExprKind::Rule(Rule::Shape(ShapeRule::Follow), tensors) if tensors.len() == 1 => {
            Some(sizes(model, &tensors[0], callers))
        }
        ExprKind::Rule(Rule::Shape(ShapeRule::Full), sizes) if sizes.len() == 1 => {
            Some(sizes[0].kind.clone())
        }
        ExprKind::Query(Query::Sizes, of, _) => Some(sizes(model, of, callers)),
        ExprKind::Query(Query::Size, of, at) => match (of_call(model, of, callers), at.first()) {
            (Some(Expr { kind: ExprKind::List(sizes), .. }), Some(Expr { kind: ExprKind::Int(at), .. })) => {
                usize::try_from(*at).ok().and_then(|at| sizes.get(at)).map(|size| size.kind.clone())
            }
            _ => None,
        },
        ExprKind::If(_, yes, no) if yes.same_meaning(no) => Some(yes.kind.clone()),
        _ => None,
    };
    match kind {
        Some(kind) => Expr { kind, ..expr },
        None => expr,
    }
}

/// An expression with others in the places of its variables; `None` if one has none.
fn substituted(expr: &Expr, value: &dyn Fn(&Variable, &Expr) -> Option<Expr>) -> Option<Expr> {
    if let ExprKind::Variable(variable) = &expr.kind {
        return value(variable, expr);
    }
    let mut found = expr.clone();
    for part in found.children_mut() {
        *part = substituted(part, value)?;
    }
    Some(found)
}

/// An expression without the choices that its constants decide.
fn decided(mut expr: Expr) -> Expr {
    for part in expr.children_mut() {
        let taken = std::mem::replace(&mut part.kind, ExprKind::None);
        *part = decided(Expr { kind: taken, ..part.clone() });
    }
    let truth = |value: bool| ExprKind::Bool(value);
    let kind = match &expr.kind {
        ExprKind::Query(query @ (Query::IsSome | Query::IsNone), of, _) => {
            is_present(of).map(|present| truth(present == (*query == Query::IsSome)))
        }
        ExprKind::Query(Query::Unwrap, of, _) if is_present(of) == Some(true) => Some(of.kind.clone()),
        ExprKind::Query(Query::UnwrapOr, of, other) => match is_present(of) {
            Some(true) => Some(of.kind.clone()),
            Some(false) => other.first().map(|other| other.kind.clone()),
            None => None,
        },
        ExprKind::Unary(Operation::Not, of) => match of.kind {
            ExprKind::Bool(value) => Some(truth(!value)),
            _ => None,
        },
        ExprKind::Logical(and, a, b) => match (&a.kind, &b.kind) {
            (ExprKind::Bool(value), other) | (other, ExprKind::Bool(value)) => {
                Some(if value == and { other.clone() } else { truth(*value) })
            }
            _ => None,
        },
        ExprKind::Index(list, at) => match (&list.kind, &at.kind) {
            (ExprKind::List(items), ExprKind::Int(at)) => {
                usize::try_from(*at).ok().and_then(|at| items.get(at)).map(|item| item.kind.clone())
            }
            _ => None,
        },
        ExprKind::If(condition, yes, no) => match condition.kind {
            ExprKind::Bool(true) => Some(yes.kind.clone()),
            ExprKind::Bool(false) => Some(no.kind.clone()),
            _ => None,
        },
        _ => None,
    };
    match kind {
        Some(kind) => Expr { kind, ..expr },
        None => expr,
    }
}

/// Whether an optional value is there; `None` if a call decides.
fn is_present(value: &Expr) -> Option<bool> {
    match &value.kind {
        ExprKind::Convert(inner) => is_present(inner),
        ExprKind::None => Some(false),
        ExprKind::Variable(_) => (!value.ty.optional).then_some(true),
        ExprKind::If(..) | ExprKind::Block(..) | ExprKind::Query(..) | ExprKind::Index(..) => None,
        _ => Some(true),
    }
}
