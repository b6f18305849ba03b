//! Signatures of undeclared functions in formulas.
//!
//! In: the model of a draft that allowed such calls. Out: one declaration for each way a function is called: its
//! parameters have the types of the calls' arguments, its result the required type. A function whose result type is
//! undetermined is not declared, and formulas that call it are not translated.

use std::collections::BTreeMap;

use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{Forward, Kind, Op, Ty};

/// A declaration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Declaration {
    /// The signature.
    pub func: String,
    /// The symbol that calls it.
    pub operator: Option<String>,
}

/// One call.
struct Use {
    arguments: Vec<Argument>,
    result: Option<Ty>,
}

/// An argument of a call.
enum Argument {
    /// Its type.
    Known(Ty),
    /// The result of another such function, whose type is not determined here.
    Result(String),
}

/// Declares the functions that the formulas of a draft call.
pub(super) fn declarations(ops: &[Op]) -> Vec<Declaration> {
    let mut uses: BTreeMap<String, Vec<Use>> = BTreeMap::new();
    for op in ops {
        for formula in formulas(op) {
            formula.walk(&mut |part| collect(part, &mut uses));
        }
    }
    let results: BTreeMap<&String, Ty> =
        uses.iter().filter_map(|(name, uses)| Some((name, common_result(uses)?))).collect();
    let mut declared = Vec::new();
    for (name, uses) in &uses {
        let Some(result) = results.get(name).and_then(type_name) else { continue };
        let mut signatures: Vec<Vec<Ty>> = Vec::new();
        for call in uses {
            let types: Option<Vec<Ty>> = call
                .arguments
                .iter()
                .map(|argument| match argument {
                    Argument::Known(ty) => Some(ty.clone()),
                    Argument::Result(name) => results.get(name).cloned(),
                })
                .collect();
            if let Some(types) = types {
                merge(&mut signatures, types);
            }
        }
        for (index, types) in signatures.iter().enumerate() {
            let overload = if index == 0 { String::new() } else { format!(".v{}", index + 1) };
            let names: Option<Vec<String>> = types.iter().map(type_name).collect();
            let Some(names) = names else { continue };
            let arguments = names.iter().enumerate().map(|(index, ty)| format!("{ty} x{index}"));
            let arguments = arguments.collect::<Vec<_>>().join(", ");
            declared.push(Declaration {
                func: format!("{name}{overload}({arguments}) -> {result}"),
                operator: None,
            });
        }
    }
    declared
}

/// Every formula of an operator.
fn formulas(op: &Op) -> impl Iterator<Item = &Expr> {
    let tangents = match &op.forward {
        Forward::Formulas(formulas) => formulas.as_slice(),
        _ => &[],
    };
    let terms = tangents.iter().flat_map(|formula| &formula.terms);
    op.derivatives.iter().map(|derivative| &derivative.formula).chain(terms)
}

/// A call of an undeclared function in a draft.
fn undeclared(expr: &Expr) -> Option<(&str, &[Expr])> {
    match &expr.kind {
        ExprKind::Native(name, arguments) if !name.contains("::") => Some((name, arguments)),
        _ => None,
    }
}

fn collect(part: &Expr, uses: &mut BTreeMap<String, Vec<Use>>) {
    let Some((name, arguments)) = undeclared(part) else { return };
    let arguments = arguments.iter().map(|argument| match undeclared(argument) {
        Some((inner, _)) if argument.ty.kind == Kind::Unit => Argument::Result(inner.to_owned()),
        _ => Argument::Known(argument.ty.clone()),
    });
    let result = (part.ty.kind != Kind::Unit).then(|| part.ty.clone());
    uses.entry(name.to_owned()).or_default().push(Use { arguments: arguments.collect(), result });
}

/// The type that most calls require.
fn common_result(uses: &[Use]) -> Option<Ty> {
    let mut counts: Vec<(&Ty, usize)> = Vec::new();
    for result in uses.iter().filter_map(|call| call.result.as_ref()) {
        match counts.iter_mut().find(|(known, _)| *known == result) {
            Some((_, count)) => *count += 1,
            None => counts.push((result, 1)),
        }
    }
    counts.iter().rev().max_by_key(|(_, count)| *count).map(|(ty, _)| (*ty).clone())
}

/// Widens a known signature to fit another call, or adds one.
fn merge(signatures: &mut Vec<Vec<Ty>>, types: Vec<Ty>) {
    for known in signatures.iter_mut().filter(|known| known.len() == types.len()) {
        let both: Option<Vec<Ty>> = known.iter().zip(&types).map(|(a, b)| unify(a, b)).collect();
        if let Some(both) = both {
            *known = both;
            return;
        }
    }
    signatures.push(types);
}

/// The common type of both.
fn unify(a: &Ty, b: &Ty) -> Option<Ty> {
    let optional = a.optional || b.optional;
    let kind = match (&a.kind, &b.kind) {
        (a, b) if a == b => a.clone(),
        (Kind::None, other) | (other, Kind::None) => return Some(Ty::new(other.clone()).or_none()),
        (Kind::Ints(_), Kind::Ints(_)) => Kind::Ints(None),
        (Kind::Bools(_), Kind::Bools(_)) => Kind::Bools(None),
        (Kind::Int, Kind::Float) | (Kind::Float, Kind::Int) => Kind::Float,
        (Kind::Int | Kind::Float, Kind::Scalar) | (Kind::Scalar, Kind::Int | Kind::Float) => Kind::Scalar,
        (Kind::Tensors, Kind::OptionalTensors) | (Kind::OptionalTensors, Kind::Tensors) => {
            Kind::OptionalTensors
        }
        _ => return None,
    };
    Some(Ty { kind, optional })
}

/// A type in the syntax of signatures.
fn type_name(ty: &Ty) -> Option<String> {
    let name = match &ty.kind {
        Kind::DType => "ScalarType".to_owned(),
        // Only its absence is known.
        Kind::None => return Some("Tensor?".to_owned()),
        Kind::Unit | Kind::Element | Kind::RealElement | Kind::Foreign(_) => return None,
        Kind::Tuple(items) => {
            let items: Option<Vec<String>> = items.iter().map(type_name).collect();
            return Some(format!("({})", items?.join(", ")));
        }
        _ => ty.required().to_string(),
    };
    Some(if ty.optional { format!("{name}?") } else { name })
}
