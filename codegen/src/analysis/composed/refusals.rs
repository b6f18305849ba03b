//! The calls that the operators of a composition refuse, in terms of the composition's arguments.
//!
//! In: the model. Out: conditions as expressions, and the operators whose conditions cannot be told so. Must not write words.

use opsmith_core::rules::{DTypeRule, Rule, ShapeRule};
use opsmith_core::{Backend, DTypeSet, Query};

use super::decide::{decided, substituted};
use super::rules::{Fact, of_tensors_in};
use super::{BoundNames, Callers};
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Arg, Kind, Model, Op, Operation, Ty};

/// A condition under which a composition refuses a call.
#[derive(Clone, Debug)]
pub(crate) enum Refused<'a> {
    /// A condition does not hold.
    Unless(Expr),
    /// A rule of shapes refuses its tensors.
    Rule(ShapeRule, Vec<Expr>),
    /// A value is none of those that an argument may have.
    Value(&'a Arg, Expr),
    /// A dtype is outside of a set.
    DType(Expr, DTypeSet),
    /// A Rust function refuses its arguments.
    Function(Expr),
}

/// A refusal, and the operator that the composition calls for it.
#[derive(Clone, Debug)]
pub(crate) struct Refusal<'a> {
    /// The operator in the composition itself.
    pub by: &'a Op,
    /// The conditions of the branches that the call stands in.
    pub where_: Vec<Expr>,
    /// The condition; `None` if the arguments of the composition do not tell it.
    pub refused: Option<Refused<'a>>,
}

/// The most operators that are followed below a composition.
const MOST_CALLS: usize = 30;
/// The most conditions of one composition; documents show fewer, because many are equal.
const MOST_TOLD: usize = 16;

/// The calls that the operators of a composition refuse, in the order of the calls.
pub(crate) fn refusals<'a>(model: &'a Model, op: &'a Op) -> Vec<Refusal<'a>> {
    let Some(composite) = &op.body.composite else { return Vec::new() };
    let mut walk = Walk { model, top: op, found: Vec::new(), calls: 0, told: 0 };
    let frame = Frame { args: None, by: None, callers: &Callers { op, outer: None } };
    walk.part(composite, &BoundNames::default(), &[], &frame);
    walk.found
}

/// The composition that is walked through.
struct Frame<'a, 'b> {
    /// The arguments of its call, in those of the outermost composition; `None` for that one.
    args: Option<&'b [Option<Expr>]>,
    /// The operator that the outermost composition calls on the way here.
    by: Option<&'a Op>,
    callers: &'b Callers<'b>,
}

impl Frame<'_, '_> {
    /// An expression in the outermost composition's arguments.
    fn told(&self, expr: &Expr, scope: &BoundNames<'_>) -> Option<Expr> {
        let expr = scope.resolved(expr)?;
        let Some(args) = self.args else { return Some(decided(expr)) };
        with_args(&expr, args)
    }
}

/// An expression with the arguments of a call of its operator.
fn with_args(expr: &Expr, args: &[Option<Expr>]) -> Option<Expr> {
    let found = substituted(expr, &|variable, part| match variable {
        Variable::Arg(index) => args.get(*index)?.clone(),
        _ => Some(part.clone()),
    })?;
    Some(decided(found))
}

/// A condition that nothing tells.
fn untold() -> Expr {
    Expr { kind: ExprKind::None, ty: Ty::new(Kind::None), range: 0..0 }
}

struct Walk<'a> {
    model: &'a Model,
    top: &'a Op,
    found: Vec<Refusal<'a>>,
    calls: usize,
    told: usize,
}

impl<'a> Walk<'a> {
    /// The calls in a part of a composition, which is computed where some conditions hold.
    fn part(&mut self, expr: &'a Expr, scope: &BoundNames<'a>, where_: &[Expr], frame: &Frame<'a, '_>) {
        match &expr.kind {
            ExprKind::Block(bindings, tail) => {
                for at in 0..bindings.len() {
                    self.part(&bindings[at].1, &scope.with(&bindings[..at]), where_, frame);
                }
                self.part(tail, &scope.with(bindings), where_, frame);
            }
            ExprKind::If(condition, yes, no) => {
                self.part(condition, scope, where_, frame);
                let condition = frame.told(condition, scope);
                let holds = |condition: &Expr, holds: bool| match condition.kind {
                    ExprKind::Bool(value) => (value == holds).then(Vec::new),
                    _ if holds => Some(vec![condition.clone()]),
                    _ => Some(vec![negated(condition)]),
                };
                for (part, is_yes) in [(yes, true), (no, false)] {
                    let Some(condition) = &condition else {
                        // Of a branch that nothing tells, only the operators can be named.
                        self.part(part, scope, &[where_, &[untold()]].concat(), frame);
                        continue;
                    };
                    if let Some(more) = holds(condition, is_yes) {
                        self.part(part, scope, &[where_, &more[..]].concat(), frame);
                    }
                }
            }
            ExprKind::Op(id, args) => {
                for arg in args {
                    self.part(arg, scope, where_, frame);
                }
                let Some(called) = self.model.ops.get(id.0) else { return };
                let told: Vec<Option<Expr>> = args.iter().map(|arg| frame.told(arg, scope)).collect();
                self.call(called, &told, where_, frame);
            }
            ExprKind::Map(list, _, item) => {
                self.part(list, scope, where_, frame);
                // Nothing tells which items there are.
                self.part(item, scope, &[where_, &[untold()]].concat(), frame);
            }
            _ => expr.children().into_iter().for_each(|part| self.part(part, scope, where_, frame)),
        }
    }

    /// The refusals of a call.
    fn call(&mut self, called: &'a Op, args: &[Option<Expr>], where_: &[Expr], frame: &Frame<'a, '_>) {
        let meant = called.alias_of.map_or(called, |id| &self.model.ops[id.0]);
        let by = frame.by.unwrap_or(called);
        self.calls += 1;
        let add = |walk: &mut Walk<'a>, refused: Option<Refused<'a>>| {
            walk.told += usize::from(refused.is_some());
            walk.found.push(Refusal { by, where_: where_.to_vec(), refused });
        };
        if self.calls > MOST_CALLS || self.told >= MOST_TOLD || frame.callers.have(meant) {
            return add(self, None);
        }
        for check in &meant.checks {
            let told =
                with_args(&check.condition, args).map(|told| of_tensors_in(self.model, self.top, told));
            match told {
                Some(Expr { kind: ExprKind::Bool(true), .. }) => {}
                Some(told) => add(self, Some(Refused::Unless(told))),
                None => add(self, None),
            }
        }
        for (arg, value) in meant.args.iter().zip(args).filter(|(arg, _)| !arg.constraints.is_empty()) {
            match value {
                Some(value) if is_literal(value) => {}
                value => add(self, value.clone().map(|value| Refused::Value(arg, value))),
            }
        }
        self.rules(meant, args, &mut |walk, refused| add(walk, refused));
        if let Some(composite) = &meant.body.composite {
            let callers = Callers { op: meant, outer: Some(frame.callers) };
            // Readers know the operators that are public.
            let by = Some(by).filter(|by| !by.is_private());
            let inside = Frame { args: Some(args), by, callers: &callers };
            self.part(composite, &BoundNames::default(), where_, &inside);
        }
    }

    /// The refusals of a called operator's rules.
    fn rules(
        &mut self,
        op: &'a Op,
        args: &[Option<Expr>],
        add: &mut dyn FnMut(&mut Walk<'a>, Option<Refused<'a>>),
    ) {
        // The documentation of other libraries' functions is not here.
        let is_own = op.parent == self.top.parent;
        let function = op.infer.as_ref().and_then(|infer| infer.function.as_ref()).or(op.body.view.as_ref());
        if let Some(path) = function {
            let told: Option<Vec<Expr>> = args.iter().cloned().collect::<Option<_>>().filter(|_| is_own);
            add(self, told.map(|args| Refused::Function(native(path, args))));
        }
        let Some(infer) = &op.infer else { return };
        for rule in infer.shapes.iter().chain(&infer.dtypes).chain([&infer.compute]) {
            match &rule.kind {
                ExprKind::Native(..) => {
                    add(self, with_args(rule, args).filter(|_| is_own).map(Refused::Function));
                }
                ExprKind::Rule(rule, operands) => {
                    let told: Option<Vec<Expr>> =
                        operands.iter().map(|operand| with_args(operand, args)).collect();
                    match told {
                        Some(operands) => {
                            if let Some(refused) = self.of_rule(*rule, operands) {
                                add(self, Some(refused));
                            }
                        }
                        None => add(self, None),
                    }
                }
                _ => {}
            }
        }
        let dtypes = op.body.dtypes_of_row(Backend::Cpu);
        if dtypes != DTypeSet::EMPTY && !dtypes.has_all() {
            let compute = with_args(&infer.compute, args);
            match compute.map(|compute| Fact::DType.shortened(self.model, self.top, compute)) {
                Some(compute) if is_inside(&compute, dtypes) => {}
                Some(compute) => add(self, Some(Refused::DType(compute, dtypes))),
                None => add(self, None),
            }
        }
    }

    /// The refusal of a rule for its operands; `None` if it refuses nothing.
    fn of_rule(&self, rule: Rule, operands: Vec<Expr>) -> Option<Refused<'a>> {
        match rule {
            Rule::Shape(ShapeRule::Full | ShapeRule::Follow) => None,
            Rule::Shape(rule) => {
                let ty = Ty::new(Kind::Ints(None));
                let whole = Expr { kind: ExprKind::Rule(rule.into(), operands), ty, range: 0..0 };
                match Fact::Sizes.shortened(self.model, self.top, whole).kind {
                    ExprKind::Rule(Rule::Shape(rule), operands) => Some(Refused::Rule(rule, operands)),
                    _ => None,
                }
            }
            Rule::DType(DTypeRule::Same) => {
                let dtype = |tensor: &Expr| Fact::DType.of(self.model, self.top, tensor);
                let mut dtypes: Vec<Expr> = Vec::new();
                for dtype in operands.iter().filter_map(dtype) {
                    if !dtypes.iter().any(|known| known.same_value(&dtype)) {
                        dtypes.push(dtype);
                    }
                }
                let ty = Ty::new(Kind::Bool);
                let [first, rest @ ..] = &dtypes[..] else { return None };
                let equal = |other: &Expr| Expr {
                    kind: ExprKind::Binary(Operation::Eq, Box::new(first.clone()), Box::new(other.clone())),
                    ty: ty.clone(),
                    range: 0..0,
                };
                let all = rest.iter().map(equal).reduce(|all, more| Expr {
                    kind: ExprKind::Logical(true, Box::new(all), Box::new(more)),
                    ty: ty.clone(),
                    range: 0..0,
                });
                all.map(Refused::Unless)
            }
            Rule::DType(_) => None,
        }
    }
}

/// The opposite of a condition.
pub(crate) fn negated(condition: &Expr) -> Expr {
    let ty = condition.ty.clone();
    let kind = match &condition.kind {
        ExprKind::Unary(Operation::Not, inner) => inner.kind.clone(),
        ExprKind::Binary(Operation::Eq, a, b) => ExprKind::Binary(Operation::Ne, a.clone(), b.clone()),
        ExprKind::Binary(Operation::Ne, a, b) => ExprKind::Binary(Operation::Eq, a.clone(), b.clone()),
        ExprKind::Query(Query::IsSome, of, none) => ExprKind::Query(Query::IsNone, of.clone(), none.clone()),
        ExprKind::Query(Query::IsNone, of, none) => ExprKind::Query(Query::IsSome, of.clone(), none.clone()),
        _ => ExprKind::Unary(Operation::Not, Box::new(condition.clone())),
    };
    Expr { kind, ty, range: 0..0 }
}

fn native(path: &str, args: Vec<Expr>) -> Expr {
    Expr { kind: ExprKind::Native(path.to_owned(), args), ty: Ty::new(Kind::Ints(None)), range: 0..0 }
}

/// Whether a dtype is in a set whatever a call has.
fn is_inside(dtype: &Expr, set: DTypeSet) -> bool {
    match &dtype.kind {
        ExprKind::Convert(inner) => is_inside(inner, set),
        ExprKind::DType(dtype) => set.contains(*dtype),
        ExprKind::If(_, yes, no) => is_inside(yes, set) && is_inside(no, set),
        _ => false,
    }
}

/// Whether a value is written in a composition, whose checks have seen it.
pub(crate) fn is_literal(value: &Expr) -> bool {
    let mut is_literal = true;
    value.walk(&mut |part| is_literal &= !matches!(part.kind, ExprKind::Variable(_) | ExprKind::Query(..)));
    is_literal
}
