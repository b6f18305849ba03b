//! The calls that an operator refuses: by its own conditions and rules, and by those of the operators that its composition calls.
//!
//! In: an operator. Out: the rest of a sentence for each; Markdown.

use opsmith_core::rules::{DTypeRule, Rule, ShapeRule};
use opsmith_core::{Backend, DTypeSet, Query, constraint};

use super::functions::{refused_by as refused_by_call, refused_by_own, refuses};
use super::{FOR_CALLS, argument_of, code, in_a_line, named};
use crate::analysis::composed::{Refusal, Refused, is_literal, negated, refusals};
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{Arg, Kind, Model, NumberUse, Op};

/// Refused calls: by the conditions of the spec, by every operator, and by those that a composition calls; the rest of a sentence each.
pub fn errors(op: &Op, model: &Model) -> Vec<String> {
    model.kept_errors.get(model.number_of(op), || found_errors(op, model))
}

fn found_errors(op: &Op, model: &Model) -> Vec<String> {
    let mut lines: Vec<String> =
        op.checks.iter().map(|check| unless(&format!("`{}`", check.text.replace('`', "'")))).collect();
    lines.iter_mut().for_each(|line| *line = in_a_line(line));
    for arg in op.args.iter().filter(|arg| !arg.constraints.is_empty()) {
        lines.push(value(arg, &format!("`{}`", arg.name)));
    }
    for arg in op.args.iter().filter(|arg| matches!(arg.number, Some(NumberUse::Held | NumberUse::Alike))) {
        lines.push(format!("if the dtype of the elements does not hold `{}`", arg.name));
    }
    lines.extend(refused_by_rules(op, model));
    add_those_of_calls(&mut lines, op, model);
    if op.args.iter().filter(|arg| arg.ty.holds_tensors()).count() > 1 {
        lines.push("if tensors are on several devices".to_owned());
    }
    if lines.is_empty() {
        lines.push("if there is no memory for the result".to_owned());
    }
    lines
}

/// The values that an argument refuses.
fn value(arg: &Arg, given: &str) -> String {
    format!("if {given} is not {}", constraint::describe(&arg.constraints, arg.ty.is_list()))
}

/// The refusals of a rule over so many tensors, as the rest of a sentence.
fn refused(rule: Rule, tensors: usize) -> Option<&'static str> {
    match rule {
        Rule::Shape(ShapeRule::Broadcast) => (tensors > 1).then_some("cannot be broadcast together"),
        Rule::Shape(ShapeRule::Reduce) => Some("lacks a dimension to reduce"),
        Rule::Shape(ShapeRule::Matmul) => Some("cannot be multiplied as matrices"),
        Rule::Shape(ShapeRule::Cat) => Some("differ in a dimension besides the one they are joined along"),
        Rule::Shape(ShapeRule::Full | ShapeRule::Follow) => None,
        Rule::DType(DTypeRule::Same) => (tensors > 1).then_some("have different dtypes"),
        Rule::DType(
            DTypeRule::Follow
            | DTypeRule::Promote
            | DTypeRule::PromoteFloat
            | DTypeRule::Real
            | DTypeRule::Opmath
            | DTypeRule::Complex
            | DTypeRule::Accumulate
            | DTypeRule::OrDefault,
        ) => None,
    }
}

fn is_of_tensors(expr: &Expr) -> bool {
    matches!(expr.ty.kind, Kind::Tensor | Kind::Tensors)
}

/// Calls that a rule of a result refuses, by the names of its arguments.
fn refused_by_rules(op: &Op, model: &Model) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut add = |line: String| {
        if !lines.contains(&line) {
            lines.push(line);
        }
    };
    let rules =
        op.infer.iter().flat_map(|infer| infer.shapes.iter().chain(&infer.dtypes).chain([&infer.compute]));
    for expr in rules {
        match &expr.kind {
            ExprKind::Rule(rule, args) => {
                let names: Vec<String> =
                    args.iter().filter(|arg| is_of_tensors(arg)).map(|arg| code(arg, op, model)).collect();
                if let Some(refused) = refused(*rule, names.len()) {
                    add(format!("if {} {refused}", names.join(", ")));
                }
            }
            ExprKind::Native(path, args) => {
                refuses(path, args, op, model).filter(|line| !line.is_empty()).into_iter().for_each(&mut add);
            }
            _ => {}
        }
    }
    let dtypes = op.body.dtypes_of_row(Backend::Cpu);
    if dtypes != DTypeSet::EMPTY && !dtypes.has_all() && op.args.iter().any(|arg| arg.ty.holds_tensors()) {
        add(format!("if the dtype to compute in is outside {}", named(dtypes)));
    }
    let function = op.infer.as_ref().and_then(|infer| infer.function.as_ref()).or(op.body.view.as_ref());
    if let Some(path) = function {
        let unknown = || "if shapes and attributes do not go together".to_owned();
        let told = refused_by_own(path, op, model).unwrap_or_else(unknown);
        Some(told).filter(|line| !line.is_empty()).into_iter().for_each(add);
    }
    lines
}

/// The refusal of a condition, given as code; of a negation, by its operand.
fn unless(condition: &str) -> String {
    match condition.strip_prefix("`!").filter(|denied| !denied.contains(' ')) {
        Some(denied) => format!("if `{denied}"),
        None => format!("unless {condition}"),
    }
}

/// The most conditions of called operators in documents.
const MOST_OF_CALLS: usize = 6;

/// The most called operators that are named.
const MOST_NAMES: usize = 6;

/// Adds the conditions of the operators that a composition calls: those that its arguments tell each, of the others the operators.
fn add_those_of_calls(lines: &mut Vec<String>, op: &Op, model: &Model) {
    let own: Vec<String> = op.checks.iter().map(|check| unless(&code(&check.condition, op, model))).collect();
    let (mut told, mut named): (usize, Vec<&Op>) = (0, Vec::new());
    for refusal in refusals(model, op) {
        let line = line_of_call(&refusal, op, model);
        if let Some(line) = &line {
            let is_known = |text: &String| lines.contains(text) || own.contains(text);
            if line.refused.is_empty() || (0..=line.places.len()).any(|count| is_known(&line.text(count))) {
                continue;
            }
            if let Some(other) = lines.iter_mut().find(|known| line.in_other_branch().as_ref() == Some(known))
            {
                *other = line.text(line.places.len() - 1);
                continue;
            }
            if told < MOST_OF_CALLS {
                told += 1;
                lines.push(line.text(line.places.len()));
                continue;
            }
        }
        if !named.iter().any(|op| std::ptr::eq(*op, refusal.by)) {
            named.push(refusal.by);
        }
    }
    lines.extend(refused_by(&named));
}

/// A condition of a called operator in words.
struct Line {
    /// The conditions of the branches that the call stands in.
    places: Vec<String>,
    /// The opposite of the innermost of them.
    opposite: Option<String>,
    /// The refused calls, the rest of a sentence; empty if there are none.
    refused: String,
}

impl Line {
    /// The line with so many of the places.
    fn text(&self, places: usize) -> String {
        self.at(&self.places[..places])
    }

    fn at(&self, places: &[String]) -> String {
        match places {
            [] => self.refused.clone(),
            places => format!("where {}, {}", places.join(" and "), self.refused),
        }
    }

    /// The same of the branch beside the innermost one.
    fn in_other_branch(&self) -> Option<String> {
        let (_, outer) = self.places.split_last()?;
        Some(self.at(&[outer, &[self.opposite.clone()?]].concat()))
    }
}

/// That operators refuse more than is told.
fn refused_by(ops: &[&Op]) -> Option<String> {
    let public: Vec<&Op> = ops.iter().copied().filter(|op| !op.is_private()).collect();
    let shown = if public.is_empty() { ops } else { &public[..] };
    let mut names: Vec<String> = shown.iter().take(MOST_NAMES).map(|op| format!("`{}`", op.name)).collect();
    if names.len() < ops.len() {
        names.push("another operator of the composition".to_owned());
    }
    let last = names.pop()?;
    let names = if names.is_empty() { last } else { format!("{} or {last}", names.join(", ")) };
    Some(format!("if {names} refuses {FOR_CALLS}"))
}

/// The longest condition of a called operator that is told.
const LONGEST: usize = 100;

/// The most branches whose conditions are told.
const MOST_PLACES: usize = 2;

/// The line of a condition; `None` if the arguments do not tell it.
fn line_of_call(refusal: &Refusal<'_>, op: &Op, model: &Model) -> Option<Line> {
    let refused = refused_in_words(refusal, op, model)?;
    if refused.is_empty() {
        return Some(Line { places: Vec::new(), opposite: None, refused });
    }
    let asks_function = |condition: &Expr| {
        let mut asks = false;
        condition.walk(&mut |part| asks |= matches!(part.kind, ExprKind::Native(..)));
        asks
    };
    let told = |condition: &Expr| short(condition, 60, op, model).filter(|_| !asks_function(condition));
    let places: Vec<String> = refusal.where_.iter().map(told).collect::<Option<_>>()?;
    let opposite = refusal.where_.last().map(|condition| code(&negated(condition), op, model));
    (places.len() <= MOST_PLACES).then_some(Line { places, opposite, refused })
}

/// An expression that tells something, if it is not longer.
fn short(expr: &Expr, longest: usize, op: &Op, model: &Model) -> Option<String> {
    let text = (is_of_arguments(expr) && !is_nothing(expr)).then(|| code(expr, op, model))?;
    (text.len() <= longest).then_some(text)
}

/// A refusal of a called operator; empty if it refuses nothing.
fn refused_in_words(refusal: &Refusal<'_>, op: &Op, model: &Model) -> Option<String> {
    let short = |expr: &Expr, longest: usize| short(expr, longest, op, model);
    Some(match refusal.refused.as_ref()? {
        Refused::Unless(condition) => match condition.kind {
            ExprKind::Bool(_) => return None,
            _ => unless(&short(condition, LONGEST)?),
        },
        Refused::Rule(rule, operands) => {
            if *rule == ShapeRule::Reduce && operands.get(1).is_some_and(is_nothing) {
                return Some(String::new());
            }
            let tensors = operands.iter().filter(|operand| is_of_tensors(operand));
            let names = tensors.map(|tensor| short(tensor, 40)).collect::<Option<Vec<String>>>()?;
            match refused((*rule).into(), names.len()) {
                Some(refused) => format!("if {} {refused}", names.join(", ")),
                None => return Some(String::new()),
            }
        }
        Refused::Value(arg, given) => value(arg, &short(given, 40)?),
        Refused::DType(dtype, set) => match &dtype.kind {
            ExprKind::DType(_) => return None,
            ExprKind::Query(Query::DType, of, _) if argument_of(of, op).is_some() => {
                format!("if the dtype of {} is outside {}", code(of, op, model), named(*set))
            }
            _ => format!("if {} is outside {}", short(dtype, 60)?, named(*set)),
        },
        Refused::Function(call) => {
            let ExprKind::Native(path, args) = &call.kind else { return None };
            let mut others = args.iter().filter(|arg| !arg.ty.holds_tensors()).peekable();
            // The mistake in constants depends on the tensors, of which the function says nothing.
            let is_constant = others.peek().is_some() && others.all(is_literal);
            if is_constant || !args.iter().all(is_of_arguments) {
                return None;
            }
            refused_by_call(path, args, op, model)?
        }
    })
}

/// Whether an expression has nothing but arguments and facts about them.
fn is_of_arguments(expr: &Expr) -> bool {
    let mut is_plain = true;
    expr.walk(&mut |part| {
        is_plain &= !matches!(
            part.kind,
            ExprKind::Op(..) | ExprKind::Block(..) | ExprKind::Variable(Variable::Local(_))
        );
    });
    is_plain
}

fn is_nothing(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Convert(inner) => is_nothing(inner),
        kind => matches!(kind, ExprKind::None),
    }
}
