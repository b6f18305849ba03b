//! Symbols that call an operator, and the roles of operators in the runtime.

use std::collections::HashMap;

use super::{Context, Head};
use crate::diagnostics::{Span, catalogue};
use crate::model::{Arg, Kind, Op, Operation, Operator, Output, Role};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;
use crate::spec::schema::Schema;

/// `operator: "+"`, `operator: ["*", "reversed *"]`
pub(super) fn operators(
    context: &mut Context<'_>,
    raw: &RawOp,
    schema: &Schema,
    args: &[Arg],
    outputs: &[Output],
) -> Vec<Operator> {
    let mut found = Vec::new();
    for text in raw.texts(KeyName::Operator) {
        let (reversed, spelling) = match text.as_str().strip_prefix("reversed ") {
            Some(rest) => (true, rest.trim()),
            None => (false, text.as_str().trim()),
        };
        let Some((symbol, _)) = Operation::ALL.iter().find(|(_, known)| *known == spelling) else {
            let known: Vec<&str> = Operation::ALL.iter().map(|(_, known)| *known).collect();
            context.push(catalogue::symbol_unknown(text.span(), spelling, &known));
            continue;
        };
        let fits = match symbol.is_unary() {
            true => !reversed && takes(args, &[is_tensor]),
            false => takes(args, &[is_tensor, is_operand]),
        };
        let gives_tensor = matches!(outputs, [only] if only.ty.is_tensor());
        if fits && gives_tensor {
            found.push(Operator { symbol: *symbol, reversed });
        } else {
            let wanted = match symbol.is_unary() {
                true => "f(Tensor self) -> Tensor",
                false => "f(Tensor self, Tensor other) -> Tensor` or `f(Tensor self, Scalar other) -> Tensor",
            };
            let signature = raw.func.span_within(schema.name_range.clone(), context.sources);
            context.push(catalogue::symbol_misfit(text.span(), spelling, signature, wanted));
        }
    }
    found
}

/// `role: accumulate`
pub(super) fn role(
    context: &mut Context<'_>,
    raw: &RawOp,
    schema: &Schema,
    args: &[Arg],
    outputs: &[Output],
) -> Option<Role> {
    let text = raw.text(KeyName::Role)?;
    let Some((role, _)) = Role::ALL.iter().find(|(_, name)| *name == text.as_str()) else {
        let known: Vec<&str> = Role::ALL.iter().map(|(_, name)| *name).collect();
        context.push(catalogue::role_unknown(text.span(), text.as_str(), &known));
        return None;
    };
    let (fits, wanted) = match role {
        Role::Accumulate => (takes(args, &[is_tensor, is_tensor]), "f(Tensor a, Tensor b) -> Tensor"),
        Role::SumTo => (takes(args, &[is_tensor, is_sizes]), "f(Tensor self, int[] size) -> Tensor"),
        Role::Select => {
            let fits = takes(args, &[is_tensor, is_operand, is_operand]);
            (fits, "f(Tensor condition, Tensor yes, Tensor no) -> Tensor")
        }
        Role::Conjugate => (takes(args, &[is_tensor]), "f(Tensor self) -> Tensor"),
        Role::Cast => (takes(args, &[is_tensor, is_dtype]), "f(Tensor self, ScalarType dtype) -> Tensor"),
    };
    if !fits || !matches!(outputs, [only] if only.ty.is_tensor()) {
        let signature = raw.func.span_within(schema.name_range.clone(), context.sources);
        context.push(catalogue::role_misfit(text.span(), text.as_str(), signature, wanted));
        return None;
    }
    Some(*role)
}

/// Whether an operator can be called with arguments of these types and defaults for the rest.
fn takes(args: &[Arg], wanted: &[fn(&Arg) -> bool]) -> bool {
    args.len() >= wanted.len()
        && args.iter().zip(wanted).all(|(arg, fits)| fits(arg) && !arg.keyword_only)
        && args[wanted.len()..].iter().all(|arg| arg.default.is_some())
}

fn is_tensor(arg: &Arg) -> bool {
    arg.ty.is_tensor()
}

fn is_operand(arg: &Arg) -> bool {
    !arg.ty.optional && matches!(arg.ty.kind, Kind::Tensor | Kind::Scalar)
}

fn is_sizes(arg: &Arg) -> bool {
    !arg.ty.optional && matches!(arg.ty.kind, Kind::Ints(_))
}

fn is_dtype(arg: &Arg) -> bool {
    arg.ty.kind == Kind::DType
}

/// Checks across operators: each symbol and each role belongs to one of them, in each library.
pub(super) fn check_together(context: &mut Context<'_>, heads: &[Head<'_>]) {
    let mut symbols: HashMap<(Operator, bool, Option<usize>), Span> = HashMap::new();
    let mut roles: HashMap<(Role, Option<usize>), Span> = HashMap::new();
    for Head { op, raw } in heads {
        let with_tensor = op.args.get(1).is_some_and(|arg| arg.ty.kind == Kind::Tensor);
        for (operator, text) in op.operators.iter().zip(raw.texts(KeyName::Operator)) {
            match symbols.get(&(*operator, with_tensor, op.parent)) {
                Some(first) => context.push(catalogue::symbol_twice(text.span(), text.as_str(), *first)),
                None => _ = symbols.insert((*operator, with_tensor, op.parent), text.span()),
            }
        }
        if let (Some(role), Some(text)) = (op.role, raw.text(KeyName::Role)) {
            match roles.get(&(role, op.parent)) {
                Some(first) => context.push(catalogue::role_twice(text.span(), text.as_str(), *first)),
                None => _ = roles.insert((role, op.parent), text.span()),
            }
        }
    }
}

/// The roles required by the autograd engine.
const ENGINE_ROLES: [Role; 3] = [Role::Accumulate, Role::SumTo, Role::Cast];

/// The roles that a library lacks although it has others, and the span of an existing one.
pub(super) fn missing(ops: &[Op], raws: &[&RawOp]) -> Option<(Span, Vec<&'static str>)> {
    let own = || ops.iter().zip(raws).filter(|(op, _)| !op.is_external());
    let played = |role: Role| own().find(|(op, _)| op.role == Some(role));
    let needed = || Role::ALL.iter().filter(|(role, _)| ENGINE_ROLES.contains(role));
    let missing: Vec<&str> =
        needed().filter(|(role, _)| played(*role).is_none()).map(|(_, name)| *name).collect();
    let (_, raw) = needed().find_map(|(role, _)| played(*role))?;
    let place = raw.text(KeyName::Role)?.span();
    (!missing.is_empty()).then_some((place, missing))
}
