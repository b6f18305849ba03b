//! Typeset formulas of an operator: MathML from the checked model.
//!
//! In: a model and one of its operators. Out: elements `<math display="block">` as text, without styles. Must not read files or
//! evaluate expressions.

mod calls;
mod expression;
mod formula;
mod functions;
mod mathml;
mod names;
mod sizes;

use opsmith_codegen::analysis::composed;
use opsmith_codegen::analysis::reads::{ReadValue, reads};
use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{Backends, Derivative, Model, Op};
use opsmith_core::rules::{Rule, ShapeRule};
use opsmith_core::{Backend, Query};

use expression::Writer;
use mathml::{Math, between, commas, display, equation, lines};
pub use sizes::{ResultSizes, SizesOfArgument, formula_of_size, sample as sizes_of_sample};

/// A gradient formula.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypesetFormula {
    /// The argument whose gradient it is, or several, separated by commas.
    pub argument: String,
    /// The formula, typeset; `None` if it only refuses or is written in another language.
    pub math: Option<String>,
    /// The formula as the spec has it, or as it was derived.
    pub source: String,
    /// The arguments and results that a recorded call saves for it.
    pub saved: Vec<String>,
}

/// The result as the formula of its entry; without one as an expression: of one element, or of other operators; of an operator
/// that has a kernel only, its notation.
pub fn definition(model: &Model, op: &Op) -> Option<String> {
    // An alias has no body of its own.
    let op = op.alias_of.and_then(|id| model.ops.get(id.0)).unwrap_or(op);
    if let Some(formula) = &op.facts.formula {
        return Some(display(formula::formula(&Writer::new(model, op), formula)));
    }
    let Some(body) = op.body.pointwise.as_ref().or(op.body.composite.as_ref()) else {
        return by_notation(model, op);
    };
    let writer = Writer::of(model, op, body);
    let results: Vec<Math> = (0..op.outputs.len()).map(|index| writer.result(index)).collect();
    Some(display(equations(&writer, tuple(results), body)))
}

/// The result as the notation of the entry writes it, if that mentions every argument that has no default.
fn by_notation(model: &Model, op: &Op) -> Option<String> {
    let parts = &op.facts.notation;
    let is_left_out = |index: usize| !calls::mentions(parts, index) && op.args[index].default.is_none();
    if parts.is_empty() || (0..op.args.len()).any(is_left_out) {
        return None;
    }
    let writer = Writer::new(model, op);
    let args: Vec<Math> = op.args.iter().map(|arg| names::name(&arg.name)).collect();
    Some(display(equation(writer.result(0), writer.notation(parts, &args))))
}

/// The gradient formulas, written or derived, in the model's order. One that gives several gradients is a row for each, if
/// it has them apart.
pub fn derivatives(model: &Model, op: &Op) -> Vec<TypesetFormula> {
    op.derivatives.iter().flat_map(|derivative| of_derivative(model, op, derivative)).collect()
}

fn of_derivative(model: &Model, op: &Op, derivative: &Derivative) -> Vec<TypesetFormula> {
    let Derivative { arguments, formula, text, backends, derived: _ } = derivative;
    let saved: Vec<String> = reads(formula)
        .values
        .into_iter()
        .map(|place| match place {
            ReadValue::Arg(index) => op.args[index].name.clone(),
            ReadValue::Result(index) => op.result_name(index),
        })
        .collect();
    let writer = Writer::of(model, op, formula);
    let row = |arguments: &[usize], formula: &Expr| {
        let names: Vec<&str> = arguments.iter().map(|index| op.args[*index].name.as_str()).collect();
        let left = arguments.iter().map(|index| writer.gradient(names::name(&op.args[*index].name)));
        let backend = Backend::ALL.into_iter().filter(|backend| backends.contains(*backend));
        let backend: Vec<&str> = backend.map(Backend::key).collect();
        let only =
            if *backends == Backends::ALL { String::new() } else { format!(" ({})", backend.join(", ")) };
        TypesetFormula {
            argument: format!("{}{only}", names.join(", ")),
            math: is_computed(formula).then(|| display(equations(&writer, tuple(left.collect()), formula))),
            source: text.split_whitespace().collect::<Vec<_>>().join(" "),
            saved: saved.clone(),
        }
    };
    match &formula.kind {
        ExprKind::Tuple(items) if items.len() == arguments.len() => {
            arguments.iter().zip(items).map(|(argument, item)| row(&[*argument], item)).collect()
        }
        _ => vec![row(arguments, formula)],
    }
}

/// Whether a formula computes something: it neither refuses nor is in another language.
fn is_computed(formula: &Expr) -> bool {
    match &formula.kind {
        ExprKind::Convert(inner) => is_computed(inner),
        kind => !matches!(kind, ExprKind::NotImplemented(_) | ExprKind::Opaque(_)),
    }
}

/// The sizes of each result, typeset; `None` where a function of the kernels alone says them. Those of a composition are put
/// together from the rules of the operators that it calls.
pub fn shapes(model: &Model, op: &Op) -> Vec<Option<String>> {
    let rules = shape_rules(model, op);
    let typeset = |index: usize| {
        let rule = rules.get(index)?.as_ref()?;
        let writer = Writer::of(model, op, rule);
        let left = shape_of(writer.result(index));
        Some(display(match choice(&writer, rule) {
            Some(right) => equation(left, right),
            None => equations(&writer, left, rule),
        }))
    };
    (0..op.visible().len()).map(typeset).collect()
}

/// The rules for the sizes of each result, as far as there are some.
fn shape_rules(model: &Model, op: &Op) -> Vec<Option<Expr>> {
    match &op.infer {
        Some(infer) if infer.function.is_some() => Vec::new(),
        Some(infer) if infer.run_shapes.is_empty() => infer.shapes.iter().cloned().map(Some).collect(),
        Some(infer) => infer.run_shapes.iter().cloned().map(Some).collect(),
        None => (0..op.visible().len()).map(|position| composed::shape(model, op, position)).collect(),
    }
}

/// Whether [`shapes`] name a rule or function that gives sizes, `reduce(self, dim, keepdim)`, in place of the sizes.
pub fn shapes_name_rules(model: &Model, op: &Op) -> bool {
    let mut names = false;
    let mut visit = |part: &Expr| match part.kind {
        ExprKind::Native(..) => names = true,
        ExprKind::Rule(Rule::Shape(rule), _) => {
            names |= !matches!(rule, ShapeRule::Follow | ShapeRule::Full);
        }
        _ => {}
    };
    shape_rules(model, op).iter().flatten().for_each(|rule| rule.walk(&mut visit));
    names
}

fn shape_of(tensor: Math) -> Math {
    mathml::call(names::upright("shape"), vec![tensor])
}

/// A rule that gives the shape of a tensor as it is, or chooses between such.
fn choice(writer: &Writer<'_>, rule: &Expr) -> Option<Math> {
    match &rule.kind {
        ExprKind::Convert(inner) => choice(writer, inner),
        ExprKind::Rule(Rule::Shape(ShapeRule::Follow), args) if args.len() == 1 => {
            Some(shape_of(writer.math(&args[0])))
        }
        ExprKind::Query(Query::Sizes, of, _) => Some(shape_of(writer.math(of))),
        ExprKind::If(..) => {
            let (mut rows, mut rest) = (Vec::new(), rule);
            while let ExprKind::If(condition, yes, no) = &rest.kind {
                rows.push((
                    choice(writer, yes).unwrap_or_else(|| writer.math(yes)),
                    Some(writer.math(condition)),
                ));
                rest = no;
            }
            rows.push((choice(writer, rest).unwrap_or_else(|| writer.math(rest)), None));
            Some(mathml::cases(rows))
        }
        _ => None,
    }
}

/// `left = expression`: bindings in lines of their own, the value last.
fn equations(writer: &Writer<'_>, left: Math, expr: &Expr) -> Math {
    match &expr.kind {
        ExprKind::Convert(inner) => equations(writer, left, inner),
        ExprKind::None => equation(left, mathml::number(0.0)),
        ExprKind::Op(..) if let Some((op, args, body)) = calls::whole(writer.model, expr) => {
            let bound = writer.each(args);
            equations(&writer.inside(op, &bound), left, body)
        }
        ExprKind::Block(bindings, tail) => {
            let mut rows: Vec<(Math, Math)> =
                bindings.iter().map(|(local, value)| (names::name(local), writer.math(value))).collect();
            rows.push((left, writer.math(tail)));
            lines(rows)
        }
        _ => equation(left, writer.math(expr)),
    }
}

/// One formula, or several between parentheses.
fn tuple(mut items: Vec<Math>) -> Math {
    match items.len() {
        1 => items.remove(0),
        _ => between("(", commas(items), ")"),
    }
}
