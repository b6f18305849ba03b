//! Calls of operators: overload resolution, and the arguments in order.

use std::collections::BTreeSet;
use std::ops::Range;

use opsmith_core::DType;

use super::Checker;
use super::call::{Given, Named};
use super::coerce::Fit;
use crate::diagnostics::{catalogue, nearest};
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Default, FunctionReturn, Kind, Op, OpId, Ty};

impl Checker<'_> {
    /// A call of an operator by base name: the overload whose types fit best, the first on a tie.
    pub(super) fn overloaded(
        &mut self,
        name: &str,
        given: Given,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let ops = self.scope.ops;
        let overloads = ops.overloads(name);
        if let Some(call) = self.function_of_numbers(name, &given, &range) {
            return Some(call);
        }
        if overloads.is_empty() && ops.is_broken(name) {
            return None;
        }
        if overloads.is_empty()
            && let Some(call) = self.undeclared(name, &given, &range)
        {
            return Some(call);
        }
        if overloads.is_empty() {
            let near = nearest(name, ops.bases());
            return self.refuse(catalogue::operator_unknown(self.at(&place), name, near));
        }
        let fitting: Vec<(usize, OpId)> =
            overloads.iter().filter_map(|&id| Some((self.overload_cost(ops.op(id), &given)?, id))).collect();
        let fitting = self.of_one_namespace(name, fitting, &place)?;
        let best = fitting.into_iter().min_by_key(|(cost, _)| *cost);
        match (best, overloads) {
            (Some((_, id)), _) => self.op_call(id, given, range),
            // An unreadable entry may be the intended one.
            (None, _) if ops.is_broken(name) => None,
            (None, [only]) => self.explain_refusal(ops.op(*only), given, place),
            (None, several) => {
                let types = given.positional.iter().map(|arg| arg.ty.to_string());
                let named = given.named.iter().map(|named| format!("{} = {}", named.name, named.value.ty));
                let types: Vec<String> = types.chain(named).collect();
                let signatures: Vec<&str> = several.iter().map(|id| ops.op(*id).signature.as_str()).collect();
                let span = self.at(&range);
                self.refuse(catalogue::no_overload(span, name, &types.join(", "), &signatures))
            }
        }
    }

    /// The operators of a name within one namespace: the spec's own, else none, as the name is written. Operators of
    /// several other namespaces are ambiguous.
    fn of_one_namespace(
        &mut self,
        name: &str,
        fitting: Vec<(usize, OpId)>,
        place: &Range<usize>,
    ) -> Option<Vec<(usize, OpId)>> {
        let ops = self.scope.ops;
        let namespaces = |kept: &dyn Fn(&Op) -> bool| {
            let kept = fitting.iter().map(|(_, id)| ops.op(*id)).filter(|op| kept(op));
            kept.map(namespace).collect::<BTreeSet<&str>>()
        };
        let all = namespaces(&|_| true);
        let own = namespaces(&|op| op.parent.is_none());
        let meant = match (all.len(), own.len()) {
            (0 | 1, _) => return Some(fitting),
            (_, 1) => own.first().copied(),
            _ => all.contains("").then_some(""),
        };
        let Some(meant) = meant else {
            let names: Vec<&str> = fitting.iter().map(|(_, id)| ops.op(*id).name.as_str()).collect();
            let span = self.at(place);
            return self.refuse(catalogue::namespace_open(span, name, &names));
        };
        let of_it = |(_, id): &(usize, OpId)| namespace(ops.op(*id)) == meant;
        Some(fitting.iter().filter(|fitting| of_it(fitting)).copied().collect())
    }

    /// A scalar function applied to numbers, evaluated with the formula.
    fn function_of_numbers(&self, name: &str, given: &Given, range: &Range<usize>) -> Option<Expr> {
        let (id, function) = self.scope.ops.function(name)?;
        let is_number = |arg: &Expr| !arg.ty.optional && matches!(arg.ty.kind, Kind::Int | Kind::Float);
        let fits = given.named.is_empty()
            && !given.positional.is_empty()
            && given.positional.len() == function.params.len()
            && given.positional.iter().all(is_number)
            && function.dtypes.contains(DType::F64);
        if !fits {
            return None;
        }
        let float = Ty::new(Kind::Float);
        let args: Option<Vec<Expr>> =
            given.positional.iter().map(|arg| self.coerce(arg.clone(), &float)).collect();
        let returns = if function.returns == FunctionReturn::Bool { Kind::Bool } else { Kind::Float };
        Some(Expr { kind: ExprKind::Function(id, args?), ty: Ty::new(returns), range: range.clone() })
    }

    /// The total cost of converting the arguments to an overload's; `None` if they do not fit.
    fn overload_cost(&self, op: &Op, given: &Given) -> Option<usize> {
        let Given { positional, named } = given;
        if positional.len() > op.args.len() {
            return None;
        }
        for (index, argument) in named.iter().enumerate() {
            let position = op.arg_index(&argument.name)?;
            let twice = named[..index].iter().any(|other| other.name == argument.name);
            if position < positional.len() || twice {
                return None;
            }
        }
        let mut total = 0;
        for (position, param) in op.args.iter().enumerate() {
            let value = positional
                .get(position)
                .or_else(|| named.iter().find(|named| named.name == param.name).map(|named| &named.value));
            match value {
                Some(value) => total += cost(self.fit(value, &param.ty))?,
                None if param.default.is_some() => {}
                None => return None,
            }
        }
        Some(total)
    }

    /// Reports the mistake in a call if only one operator can be meant.
    fn explain_refusal(&mut self, op: &Op, given: Given, place: Range<usize>) -> Option<Expr> {
        let Given { positional, named } = given;
        let names: Vec<&str> = op.args.iter().map(|arg| arg.name.as_str()).collect();
        if let Some(extra) = positional.get(op.args.len()) {
            let (span, what) = (self.at(&extra.range), format!("`{}`", op.base));
            let hint = format!("the signature is `{}`", op.signature);
            let found = positional.len();
            return self.refuse(catalogue::argument_count(span, &what, op.args.len(), found, Some(&hint)));
        }
        for (index, Named { name, place, .. }) in named.iter().enumerate() {
            let span = self.at(place);
            match op.arg_index(name) {
                None => {
                    _ = self.refuse::<()>(catalogue::named_argument_unknown(span, name, &op.base, &names))
                }
                Some(position)
                    if position < positional.len()
                        || named[..index].iter().any(|other| other.name == *name) =>
                {
                    _ = self.refuse::<()>(catalogue::named_argument_twice(span, name));
                }
                Some(_) => {}
            }
        }
        let mut positional = positional.into_iter();
        let mut missing = Vec::new();
        for param in &op.args {
            let value = positional.next().or_else(|| {
                named.iter().find(|named| named.name == param.name).map(|named| named.value.clone())
            });
            match value {
                Some(value) => _ = self.coerce_or_report(value, &param.ty),
                None if param.default.is_some() => {}
                None => missing.push(param.name.as_str()),
            }
        }
        if !missing.is_empty() {
            let span = self.at(&place);
            _ = self.refuse::<()>(catalogue::arguments_missing(span, &missing, &op.signature));
        }
        None
    }

    /// The call with every argument at its position: given, or the default.
    pub(super) fn op_call(&mut self, id: OpId, given: Given, range: Range<usize>) -> Option<Expr> {
        let op = self.scope.ops.op(id);
        let Given { positional, mut named } = given;
        let mut positional = positional.into_iter();
        let mut complete = Vec::with_capacity(op.args.len());
        for param in &op.args {
            let value = positional.next().or_else(|| {
                let position = named.iter().position(|named| named.name == param.name)?;
                Some(named.swap_remove(position).value)
            });
            let value = match value {
                Some(value) => value,
                None => default_expr(param.default.as_ref()?, &param.ty, range.clone()),
            };
            complete.push(self.coerce_or_report(value, &param.ty)?);
        }
        Some(Expr { kind: ExprKind::Op(id, complete), ty: op.result_type(), range })
    }
}

/// Namespace of an operator, the part of its name before `::`.
fn namespace(op: &Op) -> &str {
    op.name.split_once("::").map_or("", |(namespace, _)| namespace)
}

/// The cost of a conversion in overload resolution; `None` if impossible.
pub(super) fn cost(fit: Fit) -> Option<usize> {
    match fit {
        Fit::Exact => Some(0),
        Fit::Converted => Some(1),
        Fit::Never => None,
    }
}

/// A default as the equivalent expression of a caller.
fn default_expr(default: &Default, want: &Ty, range: Range<usize>) -> Expr {
    let (kind, ty) = match default {
        Default::None => (ExprKind::None, Kind::None),
        Default::Bool(value) => (ExprKind::Bool(*value), Kind::Bool),
        Default::Int(value) => (ExprKind::Int(*value), Kind::Int),
        Default::Float(value) => (ExprKind::Float(*value), Kind::Float),
        Default::Str(value) => (ExprKind::Str(value.clone()), Kind::Str),
        Default::DType(value) => (ExprKind::DType(*value), Kind::DType),
        Default::MemoryFormat(format) => (ExprKind::MemoryFormat(*format), Kind::MemoryFormat),
        Default::List(items) => {
            let item = want.kind.item().expect("a list is the default of a list only");
            let items = items.iter().map(|value| {
                let found = default_expr(value, &item, range.clone());
                match found.ty == item || matches!(found.kind, ExprKind::List(_)) {
                    true => found,
                    false => {
                        let kind = ExprKind::Convert(Box::new(found));
                        Expr { kind, ty: item.clone(), range: range.clone() }
                    }
                }
            });
            return Expr { kind: ExprKind::List(items.collect()), ty: want.required(), range };
        }
    };
    Expr { kind, ty: Ty::new(ty), range }
}
