//! The shape and dtype of a result of a composition, from the rules of the operators that it calls.
//!
//! In: the model. Out: expressions of the composition's arguments. Must not write words or formulas.

mod dtypes;

use std::cell::OnceCell;

use opsmith_core::Query;
use opsmith_core::rules::{Rule, ShapeRule};

use super::decide::{decided, is_choice_of_equals, substituted};
use super::{BoundNames, Callers, Source, find, source};
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Kind, Model, Op, Ty};

/// The most parts of a rule that is put together.
const MOST_PARTS: usize = 60;

/// The shape of a result of a composition as an expression of its arguments, from the rules of the operators that it calls; `None` if
/// one of them has no rules, or the expression would be long. A choice of two is an `if`, the shape of an argument `x.sizes()`.
pub fn shape(model: &Model, op: &Op, position: usize) -> Option<Expr> {
    let reading = Reading { model, fact: Fact::Sizes, parent: None };
    composed(reading, op, position, &Callers { op, outer: None })
}

/// The dtype of a result of a composition, as [`shape`] gives its sizes.
pub fn dtype(model: &Model, op: &Op, position: usize) -> Option<Expr> {
    let reading = Reading { model, fact: Fact::DType, parent: None };
    composed(reading, op, position, &Callers { op, outer: None })
}

/// A fact of results that rules give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fact {
    /// The sizes.
    Sizes,
    /// The dtype.
    DType,
}

impl Fact {
    fn reading<'a>(self, model: &'a Model, op: &'a Op) -> Reading<'a> {
        Reading { model, fact: self, parent: Some(op.parent) }
    }

    /// A rule in which parts of a composition stand, shorter.
    pub(super) fn shortened(self, model: &Model, op: &Op, rule: Expr) -> Expr {
        simplified(self.reading(model, op), decided(rule), &Callers { op, outer: None })
    }

    /// The fact of a tensor in a composition.
    pub(super) fn of(self, model: &Model, op: &Op, tensor: &Expr) -> Option<Expr> {
        if !tensor.ty.is_tensor() {
            return None;
        }
        Some(self.shortened(model, op, of_tensor(self, tensor.clone())))
    }
}

/// A condition in which parts of a composition stand, with the facts of calls in their places.
pub(super) fn of_tensors_in(model: &Model, op: &Op, condition: Expr) -> Expr {
    let mut condition = condition;
    condition.change_parts(&mut |part| of_tensors_in(model, op, part));
    let fact = match &condition.kind {
        ExprKind::Query(Query::DType, ..) => Fact::DType,
        ExprKind::Query(Query::Sizes | Query::Size, ..) => Fact::Sizes,
        ExprKind::Query(query @ (Query::Dim | Query::Numel), of, args) => {
            let like = like(Fact::Sizes.reading(model, op), (**of).clone(), &Callers { op, outer: None });
            let kind = ExprKind::Query(*query, Box::new(like), args.clone());
            return decided(Expr { kind, ..condition });
        }
        ExprKind::Query(query @ (Query::IsFloat | Query::IsComplex | Query::IsInt), of, args) => {
            let dtype = Fact::DType.of(model, op, of);
            let of = match dtype.map(|dtype| dtype.kind) {
                Some(ExprKind::Query(Query::DType, of, _)) => of,
                Some(ExprKind::DType(dtype)) => {
                    let holds = match query {
                        Query::IsFloat => dtype.is_float(),
                        Query::IsComplex => dtype.is_complex(),
                        _ => dtype.is_int(),
                    };
                    return Expr { kind: ExprKind::Bool(holds), ..condition };
                }
                _ => of.clone(),
            };
            let kind = ExprKind::Query(*query, of, args.clone());
            return Expr { kind, ..condition };
        }
        _ => return decided(condition),
    };
    fact.shortened(model, op, condition)
}

/// A rule of a composition's result.
#[derive(Clone, Debug)]
pub(crate) enum Told<'a> {
    /// An expression of the composition's arguments, and the operator whose rule it is, if it is one's.
    Rule(Expr, Option<&'a Op>),
    /// The rule of a called operator for its arguments, which no expression of the composition's arguments gives.
    By(&'a Op),
    /// One of two, by a condition on the arguments.
    Either { condition: Expr, told: Box<[Told<'a>; 2]> },
}

/// The rule of a result of a composition in its own arguments, as far as they tell it. Calls of Rust functions of the operator's own
/// library are rules too. `None` if an expression gives the result that is neither an argument nor a call.
pub(crate) fn told<'a>(model: &'a Model, op: &'a Op, position: usize, fact: Fact) -> Option<Told<'a>> {
    let reading = Reading { model, fact, parent: Some(op.parent) };
    let told = told_by(reading, &source(model, op, position)?, &Callers { op, outer: None })?;
    // Each tensor of a list has a number, which one of them alone has not.
    let is_of_list = op.outputs.get(position).is_some_and(|output| output.ty.is_list());
    Some(match told {
        Told::Rule(rule, Some(by)) if !is_of_list && has_names(&rule) => Told::By(by),
        told => told,
    })
}

/// Whether an expression has names besides arguments.
fn has_names(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part.kind, ExprKind::Variable(Variable::Local(_))));
    found
}

fn told_by<'a>(reading: Reading<'a>, source: &Source<'a>, callers: &Callers<'_>) -> Option<Told<'a>> {
    Some(match source {
        Source::Argument(_) => Told::Rule(of_source(reading, source, callers)?, None),
        Source::Call { called, .. } => {
            let rule = of_source(reading, source, callers).filter(|rule| is_short(reading, rule, callers));
            rule.map_or(Told::By(called), |rule| Told::Rule(rule, Some(called)))
        }
        Source::Either { condition, scope, sources } => {
            let [yes, no] = &**sources;
            let (yes, no) = (told_by(reading, yes, callers)?, told_by(reading, no, callers)?);
            let condition = decided(scope.resolved(condition)?);
            match (&condition.kind, &yes, &no) {
                (ExprKind::Bool(holds), ..) => return Some(if *holds { yes } else { no }),
                (_, Told::By(a), Told::By(b)) if std::ptr::eq(*a, *b) => yes,
                (_, Told::Rule(a, _), Told::Rule(b, _)) if a.same_value(b) => yes,
                (_, Told::Rule(a, _), Told::Rule(b, _)) if is_choice_of_equals(&condition, a, b) => no,
                _ => Told::Either { condition, told: Box::new([yes, no]) },
            }
        }
    })
}

/// The way rules are read.
#[derive(Clone, Copy)]
struct Reading<'a> {
    model: &'a Model,
    fact: Fact,
    /// If calls of Rust functions are rules, the library whose functions they are.
    parent: Option<Option<usize>>,
}

impl Reading<'_> {
    fn of(self, fact: Fact) -> Self {
        Reading { fact, ..self }
    }

    /// Whether a function is one of views, which knows nothing of a tensor but its layout.
    fn is_layout(self, path: &str) -> bool {
        self.model.ops.iter().any(|op| op.body.view.as_deref() == Some(path))
    }

    /// Whether calls of Rust functions are rules.
    fn has_functions(self) -> bool {
        self.parent.is_some()
    }
}

fn composed(reading: Reading<'_>, op: &Op, position: usize, callers: &Callers<'_>) -> Option<Expr> {
    let rule = of_source(reading, &source(reading.model, op, position)?, callers)?;
    is_short(reading, &rule, callers).then_some(rule)
}

/// Whether a rule explains something.
fn is_short(reading: Reading<'_>, rule: &Expr, callers: &Callers<'_>) -> bool {
    let (mut parts, mut is_known) = (0, true);
    // The shape of a call whose operator has no rule would explain nothing.
    rule.walk(&mut |part| {
        parts += 1;
        is_known &= match part.kind {
            ExprKind::Native(..) => reading.has_functions(),
            ExprKind::Op(..) => reading.has_functions() || of_call(reading, part, callers).is_some(),
            _ => true,
        };
    });
    is_known && parts <= MOST_PARTS
}

/// The query of an argument for a fact.
fn of_tensor(fact: Fact, of: Expr) -> Expr {
    let (query, kind) = match fact {
        Fact::Sizes => (Query::Sizes, Kind::Ints(None)),
        Fact::DType => (Query::DType, Kind::DType),
    };
    Expr { kind: ExprKind::Query(query, Box::new(of), Vec::new()), ty: Ty::new(kind), range: 0..0 }
}

fn argument(index: usize, ty: Ty) -> Expr {
    Expr { kind: ExprKind::Variable(Variable::Arg(index)), ty, range: 0..0 }
}

fn of_source(reading: Reading<'_>, source: &Source<'_>, callers: &Callers<'_>) -> Option<Expr> {
    match source {
        Source::Argument(index) => Some(of_tensor(reading.fact, argument(*index, Ty::new(Kind::Tensor)))),
        Source::Call { called: _, meant, args, scope, position } => {
            let rule = rule(reading, meant, *position, callers)?;
            let mut reads_tensors = reading.fact == Fact::DType;
            rule.walk(&mut |part| {
                reads_tensors |= matches!(&part.kind, ExprKind::Native(path, _) if !reading.is_layout(path));
            });
            let resolved = |arg: &Expr| {
                let arg = scope.resolved(arg)?;
                // A function may read more of a tensor than its sizes.
                Some(if reads_tensors { arg } else { like(reading, arg, callers) })
            };
            // A rule reads an argument several times.
            let known: Vec<OnceCell<Option<Expr>>> = args.iter().map(|_| OnceCell::new()).collect();
            let found = substituted(&rule, &|variable, part| match variable {
                Variable::Arg(index) => {
                    known.get(*index)?.get_or_init(|| resolved(args.get(*index)?)).clone()
                }
                _ => Some(part.clone()),
            })?;
            Some(simplified(reading, decided(found), callers))
        }
        Source::Either { condition, scope, sources } => {
            let [yes, no] = &**sources;
            let (yes, no) = (of_source(reading, yes, callers)?, of_source(reading, no, callers)?);
            let (condition, ty) = (scope.resolved(condition)?, yes.ty.clone());
            let kind = ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no));
            Some(simplified(reading, decided(Expr { kind, ty, range: 0..0 }), callers))
        }
    }
}

fn simplified(reading: Reading<'_>, rule: Expr, callers: &Callers<'_>) -> Expr {
    match reading.fact {
        Fact::Sizes => shortened(reading, rule, callers),
        Fact::DType => dtypes::shortened(reading, rule, callers),
    }
}

/// The rule of a called operator's result, or that of its composition.
fn rule(reading: Reading<'_>, op: &Op, position: usize, callers: &Callers<'_>) -> Option<Expr> {
    if callers.have(op) {
        reading.model.kept_rules.note_cycle();
        return None;
    }
    let function = |path: &String| {
        let args = op.args.iter().enumerate().map(|(index, arg)| argument(index, arg.ty.clone()));
        let kind = ExprKind::Native(path.clone(), args.collect());
        let is_own = reading.parent == Some(op.parent);
        is_own.then_some(Expr { kind, ty: Ty::new(Kind::Ints(None)), range: 0..0 })
    };
    match (&op.infer, reading.fact) {
        (Some(infer), Fact::Sizes) if infer.function.is_some() => function(infer.function.as_ref()?),
        (Some(infer), _) if infer.length.is_some() && !reading.has_functions() => None,
        (Some(infer), Fact::Sizes) => {
            let rules = if infer.run_shapes.is_empty() { &infer.shapes } else { &infer.run_shapes };
            rules.get(position).filter(|rule| is_of_library(reading, op, rule)).cloned()
        }
        (Some(infer), Fact::DType) => {
            infer.dtypes.get(position).filter(|rule| is_of_library(reading, op, rule)).cloned()
        }
        (None, fact) => match (&op.body.view, fact) {
            (Some(path), Fact::Sizes) => function(path),
            (Some(_), Fact::DType) => Some(of_tensor(fact, argument(0, Ty::new(Kind::Tensor)))),
            (None, _) => {
                let composed = || composed(reading, op, position, &Callers { op, outer: Some(callers) });
                let number = reading.model.number_of(op);
                let key = number.map(|number| (number, position, fact as u8, reading.parent));
                reading.model.kept_rules.get(key, composed)
            }
        },
    }
}

/// Whether the functions of a rule, if it has some, are those of the library whose functions are read.
fn is_of_library(reading: Reading<'_>, op: &Op, rule: &Expr) -> bool {
    let mut is_native = false;
    rule.walk(&mut |part| is_native |= matches!(part.kind, ExprKind::Native(..)));
    !is_native || !reading.has_functions() || reading.parent == Some(op.parent)
}

/// The fact of a tensor that a call gives, if its operator has a rule.
fn of_call(reading: Reading<'_>, tensor: &Expr, callers: &Callers<'_>) -> Option<Expr> {
    of_source(reading, &find(reading.model, tensor, BoundNames::default(), 0)?, callers)
}

/// A tensor of the same shape that is an argument of calls rather than their result, where the rules say that it has the same.
fn like(reading: Reading<'_>, tensor: Expr, callers: &Callers<'_>) -> Expr {
    if matches!(tensor.kind, ExprKind::Op(..) | ExprKind::If(..))
        && let Some(Expr { kind: ExprKind::Query(Query::Sizes, of, _), .. }) =
            of_call(reading, &tensor, callers)
    {
        return *of;
    }
    tensor
}

/// The tensors whose shapes a call's result broadcasts, in the places of the call, each once.
fn broadcast(reading: Reading<'_>, tensors: &[Expr], callers: &Callers<'_>) -> ExprKind {
    let mut all: Vec<Expr> = Vec::new();
    for tensor in tensors {
        let parts = match of_call(reading, tensor, callers).map(|shape| shape.kind) {
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
fn sizes(reading: Reading<'_>, tensor: &Expr, callers: &Callers<'_>) -> ExprKind {
    let known = match tensor.kind {
        ExprKind::Op(..) | ExprKind::If(..) => of_call(reading, tensor, callers).map(|shape| shape.kind),
        _ => None,
    };
    known.unwrap_or_else(|| ExprKind::Query(Query::Sizes, Box::new(tensor.clone()), Vec::new()))
}

/// A rule with shorter rules of the same meaning in its parts.
fn shortened(reading: Reading<'_>, mut expr: Expr, callers: &Callers<'_>) -> Expr {
    expr.change_parts(&mut |part| shortened(reading, part, callers));
    let kind = match &expr.kind {
        ExprKind::Rule(Rule::Shape(ShapeRule::Broadcast), tensors) => {
            Some(broadcast(reading, tensors, callers))
        }
        ExprKind::Rule(Rule::Shape(ShapeRule::Follow), tensors) if tensors.len() == 1 => {
            Some(sizes(reading, &tensors[0], callers))
        }
        ExprKind::Rule(Rule::Shape(ShapeRule::Full), sizes) if sizes.len() == 1 => {
            Some(sizes[0].kind.clone())
        }
        ExprKind::Query(Query::Sizes, of, _) => Some(sizes(reading, of, callers)),
        ExprKind::Query(Query::Size, of, at) => match (of_call(reading, of, callers), at.first()) {
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
