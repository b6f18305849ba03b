//! `infer`, `shape`, `dtype`, `compute`, `run_sizes` and `check`.

use std::ops::Range;

use opsmith_core::rules::{DTypeRule, Rule, ShapeRule};
use opsmith_core::{DType, DTypeSet};

use super::{Context, combinations, dtypes, follow, implied, names};
use crate::diagnostics::{Reported, Span, catalogue};
use crate::expr::check::{self, Mode, OpTable, Scope};
use crate::expr::path;
use crate::model::expr::{Expr, ExprKind, Variable};
use crate::model::{CheckedCondition, Combination, Element, Infer, Kind, Op, POSITION, Ty};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{RawOp, Text};

/// Checks the expressions of one operator.
pub(super) struct Expressions<'a> {
    pub op: &'a Op,
    pub table: &'a OpTable<'a>,
}

impl Expressions<'_> {
    pub fn check(&self, context: &mut Context<'_>, text: &Text, mode: Mode, want: &Ty) -> Option<Expr> {
        self.check_with(context, text, mode, want, &[])
    }

    /// As [`Expressions::check`], with additional names.
    pub fn check_with(
        &self,
        context: &mut Context<'_>,
        text: &Text,
        mode: Mode,
        want: &Ty,
        locals: &[(String, Ty)],
    ) -> Option<Expr> {
        let (args, outputs) = (&self.op.args, &self.op.outputs);
        let scope = Scope { ops: self.table, args, outputs, mode, locals };
        let sources = context.sources;
        let locate = |range: Range<usize>| text.span_within(range, sources);
        check::check(text.as_str(), &scope, want, &locate, context.diagnostics)
    }
}

pub(super) fn checks(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
) -> Vec<CheckedCondition> {
    raw.texts(KeyName::Check)
        .iter()
        .filter_map(|text| {
            let condition = expressions.check(context, text, Mode::Check, &Ty::new(Kind::Bool))?;
            Some(CheckedCondition { condition, text: text.as_str().to_owned() })
        })
        .collect()
}

/// The inference rules, if there are any; those of pointwise operators follow from the expression.
pub(super) fn lower(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
    is_pointwise: bool,
    combinations: &[Combination],
) -> Result<Option<Infer>, Reported> {
    let op = expressions.op;
    let length = length(context, expressions, raw)?;
    if has_no_rules(context, op, raw) {
        return Ok(None);
    }
    if let Some(entry) = raw.entry(KeyName::Infer) {
        return by_function(context, expressions, raw, entry.key.span, is_pointwise).map(Some);
    }
    let sizes = Ty::new(Kind::Ints(None));
    let dtype = Ty::new(Kind::DType);
    // For a list, one rule gives each tensor by its position.
    let position = [(POSITION.to_owned(), Ty::new(Kind::Int))];
    let locals = if raw.get(KeyName::Length).is_some() { &position[..] } else { &[] };
    let shapes = match raw.get(KeyName::Shape) {
        Some(_) => each(context, expressions, raw, KeyName::Shape, Mode::Shape, &sizes, locals).map(Some),
        None if is_pointwise => Ok(Some(vec![rule(ShapeRule::Broadcast, tensors(op))])),
        None => Ok(None),
    };
    let dtypes = match raw.get(KeyName::Dtype) {
        None if !combinations.is_empty() => Ok(Some(combinations::dtypes(op, combinations))),
        Some(_) => each(context, expressions, raw, KeyName::Dtype, Mode::DType, &dtype, locals).map(Some),
        None if is_pointwise => {
            let text = raw.text(KeyName::Pointwise).ok_or(Reported)?;
            let functions = expressions.table.functions();
            Ok(Some(vec![implied::dtype(text.as_str(), functions, operands(op))]))
        }
        None => Ok(None),
    };
    let compute = raw.text(KeyName::Compute).map(|text| {
        let checked = expressions.check(context, &text, Mode::DType, &Ty::new(Kind::DType));
        let checked = checked.ok_or(Reported)?;
        refuse_doubtful(context, &text, Mode::DType, &checked).map(|()| checked)
    });
    let half = match (matches!(shapes, Ok(None)), matches!(dtypes, Ok(None))) {
        (false, true) => Some((KeyName::Shape, KeyName::Dtype)),
        (true, false) => Some((KeyName::Dtype, KeyName::Shape)),
        _ => None,
    };
    report_half(context, op, raw, half);
    let (Some(shapes), Some(dtypes)) = (shapes?, dtypes?) else { return Ok(None) };
    let compute = match compute {
        Some(compute) => compute?,
        None if !combinations.is_empty() => {
            rule(DTypeRule::Follow, vec![variable(op, combinations[0].inputs[0].0)])
        }
        None => default_compute(op, &dtypes, is_pointwise),
    };
    let (run_sizes, run_shapes) = run_sizes(context, expressions, raw)?;
    Ok(Some(Infer { length, shapes, dtypes, compute, function: None, run_sizes, run_shapes }))
}

/// Reports a shape without a dtype, or a dtype without a shape: the present key, and the missing one.
fn report_half(context: &mut Context<'_>, op: &Op, raw: &RawOp, half: Option<(KeyName, KeyName)>) {
    if let Some((there, missing)) = half.filter(|_| raw.complete && raw.get(KeyName::Combinations).is_none())
    {
        let place = raw.entry(there).map_or(op.span, |entry| entry.key.span);
        context.push(catalogue::inference_half(place, &op.name, there.name(), missing.name()));
    }
}

/// `infer: shapes::mine`: a function infers everything. Fixed dtypes in `dtype` are those that kernels write.
fn by_function(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
    place: Span,
    is_pointwise: bool,
) -> Result<Infer, Reported> {
    let op = expressions.op;
    let why = match () {
        () if is_pointwise => Some("an expression says what each element is, and rules the rest"),
        () if !op.returns_single_tensors() => Some("the result is a list of tensors"),
        () if op.may_lack_results() => Some("a result may be absent, of which a condition must say when"),
        () if raw.get(KeyName::Combinations).is_some() => Some("`combinations` say the dtypes"),
        () if raw.get(KeyName::View).is_some() => Some("the layout function says it"),
        () => None,
    };
    if let Some(why) = why {
        context.push(catalogue::inference_not_here(place, "infer", why));
        return Err(Reported);
    }
    let text = raw.text(KeyName::Infer).ok_or(Reported)?;
    if let Err(problem) = path::check(text.as_str()) {
        let place = text.span_within(problem.range, context.sources);
        context.push(catalogue::kernel_path(place, problem.label));
        return Err(Reported);
    }
    let dtype = Ty::new(Kind::DType);
    let run =
        [KeyName::RunSizes, KeyName::RunShape].map(|key| raw.entry(key).map(|entry| (key, entry.key.span)));
    for (key, place) in run.into_iter().flatten() {
        let why = "the function of `infer` says what is known before a run, too";
        context.push(catalogue::inference_not_here(place, key.name(), why));
    }
    if run.iter().any(Option::is_some) {
        return Err(Reported);
    }
    if raw.get(KeyName::Shape).is_some() {
        each(context, expressions, raw, KeyName::Shape, Mode::Shape, &Ty::new(Kind::Ints(None)), &[])?;
    }
    let given = match raw.get(KeyName::Dtype) {
        Some(_) => each(context, expressions, raw, KeyName::Dtype, Mode::DType, &dtype, &[])?,
        None => Vec::new(),
    };
    let compute = match raw.text(KeyName::Compute) {
        Some(text) => expressions.check(context, &text, Mode::DType, &dtype).ok_or(Reported)?,
        None => rule(DTypeRule::Promote, operands(op)),
    };
    let fixed = |index: usize| given.get(index).filter(|rule| matches!(rule.kind, ExprKind::DType(_)));
    let dtypes = (0..op.outputs.len()).map(|index| fixed(index).unwrap_or(&compute).clone()).collect();
    Ok(Infer {
        length: None,
        shapes: Vec::new(),
        dtypes,
        compute,
        function: Some(text.as_str().to_owned()),
        run_sizes: Vec::new(),
        run_shapes: Vec::new(),
    })
}

type RunSizes = (Vec<(String, Expr)>, Vec<Expr>);

/// `run_sizes: {found: self.numel()}` and `run_shape: "[found]"`: the known part of a shape before a run.
fn run_sizes(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
) -> Result<RunSizes, Reported> {
    let op = expressions.op;
    let halves = [(KeyName::RunSizes, KeyName::RunShape), (KeyName::RunShape, KeyName::RunSizes)];
    for (there, missing) in halves {
        if let (Some(entry), None) = (raw.entry(there), raw.entry(missing)) {
            context.push(catalogue::run_sizes_half(entry.key.span, there.name(), missing.name()));
            return Err(Reported);
        }
    }
    let mut sizes = Vec::new();
    let mut fine = true;
    for (name, bound) in raw.text_map(KeyName::RunSizes) {
        if op.arg_index(&name.text).is_some() || !path::is_identifier(&name.text) {
            context.push(catalogue::run_size_name(name.span, &name.text));
            fine = false;
            continue;
        }
        match expressions.check(context, &bound, Mode::Shape, &Ty::new(Kind::Int)) {
            Some(bound) => sizes.push((name.text.clone(), bound)),
            None => fine = false,
        }
    }
    if !fine {
        return Err(Reported);
    }
    if sizes.is_empty() {
        return Ok(RunSizes::default());
    }
    let locals: Vec<(String, Ty)> =
        sizes.iter().map(|(name, _)| (name.clone(), Ty::new(Kind::Int))).collect();
    let want = Ty::new(Kind::Ints(None));
    let shapes = each(context, expressions, raw, KeyName::RunShape, Mode::Shape, &want, &locals)?;
    follow::agrees(context, op, raw);
    Ok((sizes, shapes))
}

/// Whether results have no sizes, or more than one list of them, so that rules are errors.
fn has_no_rules(context: &mut Context<'_>, op: &Op, raw: &RawOp) -> bool {
    let why = match op.outputs.as_slice() {
        [only] if only.ty.kind == Kind::Tensors && raw.get(KeyName::Length).is_some() => return false,
        [only] if only.ty.kind == Kind::Tensors => "the result is a list of tensors, each with its own",
        _ if !op.returns_single_tensors() => "the result is not a tensor",
        _ => return false,
    };
    for key in [
        KeyName::Infer,
        KeyName::Shape,
        KeyName::Dtype,
        KeyName::Compute,
        KeyName::RunSizes,
        KeyName::RunShape,
    ] {
        if let Some(entry) = raw.entry(key) {
            context.push(catalogue::inference_not_here(entry.key.span, key.name(), why));
        }
    }
    true
}

/// A text or a list of texts, each an expression, one for each output.
fn each(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
    key: KeyName,
    mode: Mode,
    want: &Ty,
    locals: &[(String, Ty)],
) -> Result<Vec<Expr>, Reported> {
    let example = if mode == Mode::Shape { "\"[self.size(0), n]\"" } else { "promote(self, other)" };
    // Callers check that the key exists; one without a value was reported when it was read.
    let node = raw.get(key).ok_or(Reported)?;
    let texts = dtypes::words(context, key.name(), example, node).ok_or(Reported)?;
    let count = expressions.op.outputs.len();
    if texts.len() != count {
        let name = &expressions.op.name;
        context.push(catalogue::rule_count(node.span, key.name(), name, count, texts.len()));
        return Err(Reported);
    }
    let roots = follow::roots(context, expressions.op, raw, &texts).ok_or(Reported)?;
    let checked: Vec<Option<Expr>> = texts
        .iter()
        .zip(&roots)
        .enumerate()
        .map(|(index, (text, root))| match *root == index {
            true => {
                let checked = expressions.check_with(context, text, mode, want, locals).ok_or(Reported)?;
                refuse_doubtful(context, text, mode, &checked)?;
                Ok(Some(checked))
            }
            false => Ok(None),
        })
        .collect::<Result<_, Reported>>()?;
    // A following result has the rule of its source.
    Ok(roots.into_iter().filter_map(|root| checked[root].clone()).collect())
}

/// Reports values whose type is valid but whose meaning is probably a mistake: one number for a shape, and the common
/// dtype of numbers.
fn refuse_doubtful(
    context: &mut Context<'_>,
    text: &Text,
    mode: Mode,
    checked: &Expr,
) -> Result<(), Reported> {
    let place =
        |range: &Range<usize>, context: &Context<'_>| text.span_within(range.clone(), context.sources);
    match &checked.kind {
        ExprKind::If(_, yes, no) => {
            refuse_doubtful(context, text, mode, yes)?;
            refuse_doubtful(context, text, mode, no)
        }
        ExprKind::Block(_, tail) => refuse_doubtful(context, text, mode, tail),
        ExprKind::Convert(number) if mode == Mode::Shape && asks_a_tensor(number) => {
            let written = text.as_str().get(number.range.clone()).unwrap_or_default();
            context.push(catalogue::shape_is_number(place(&number.range, context), written));
            Err(Reported)
        }
        ExprKind::Rule(Rule::DType(DTypeRule::Same), operands)
            if operands.iter().all(|operand| !operand.ty.holds_tensors()) =>
        {
            context.push(catalogue::dtype_of_no_tensor(place(&checked.range, context)));
            Err(Reported)
        }
        _ => Ok(()),
    }
}

/// Whether an expression is a numeric query of a tensor, such as its number of dimensions.
fn asks_a_tensor(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Query(_, base, _) if expr.ty.kind == Kind::Int && base.ty.holds_tensors())
}

/// `length: self.size(0) / n`: the number of tensors in the returned list, if it is given.
fn length(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    raw: &RawOp,
) -> Result<Option<Expr>, Reported> {
    let op = expressions.op;
    let (Some(text), Some(entry)) = (raw.text(KeyName::Length), raw.entry(KeyName::Length)) else {
        return Ok(None);
    };
    if !op.gives_list() {
        context.push(catalogue::length_not_here(entry.key.span, &op.result_type().to_string()));
        return Err(Reported);
    }
    if op.arg_index(POSITION).is_some() {
        let place = names::argument_place(context, raw, POSITION).unwrap_or(op.span);
        context.push(catalogue::length_position(place, POSITION));
        return Err(Reported);
    }
    expressions.check(context, &text, Mode::Shape, &Ty::new(Kind::Int)).map(Some).ok_or(Reported)
}

fn variable(op: &Op, index: usize) -> Expr {
    Expr { kind: ExprKind::Variable(Variable::Arg(index)), ty: op.args[index].ty.clone(), range: 0..0 }
}

fn rule(rule: impl Into<Rule>, args: Vec<Expr>) -> Expr {
    Expr::rule(rule, args, 0..0)
}

fn tensors(op: &Op) -> Vec<Expr> {
    (0..op.args.len())
        .filter(|&index| op.args[index].ty.holds_tensors())
        .map(|index| variable(op, index))
        .collect()
}

/// The arguments that determine the dtype: tensors without a type of their own, and numbers.
fn operands(op: &Op) -> Vec<Expr> {
    (0..op.args.len())
        .filter(|&index| {
            let arg = &op.args[index];
            arg.element == Element::Dispatch || arg.ty.kind == Kind::Scalar
        })
        .map(|index| variable(op, index))
        .collect()
}

/// The dtype that selects the kernel, if the spec does not declare it: the first output's, or that of the inputs if the
/// output's is fixed.
fn default_compute(op: &Op, dtypes: &[Expr], is_pointwise: bool) -> Expr {
    let decided_by_inputs = !matches!(
        &dtypes[0].kind,
        ExprKind::DType(_) | ExprKind::Rule(Rule::DType(DTypeRule::Real | DTypeRule::Opmath), _)
    );
    if decided_by_inputs {
        return dtypes[0].clone();
    }
    if is_pointwise {
        return rule(DTypeRule::Promote, operands(op));
    }
    let mut decides = (0..op.args.len()).filter(|&index| op.args[index].element == Element::Dispatch);
    match decides.clone().find(|&index| op.args[index].ty.is_tensor()) {
        Some(index) => rule(DTypeRule::Follow, vec![variable(op, index)]),
        // An optional tensor or a list has no dtype to follow; present ones are promoted together.
        None => match decides.find(|&index| op.args[index].ty.kind != Kind::OptionalTensors) {
            Some(index) => rule(DTypeRule::Promote, vec![variable(op, index)]),
            None => dtypes[0].clone(),
        },
    }
}

/// The element type a kernel writes, from the rule of an output's dtype.
pub(super) fn output_element(dtype: &Expr, compute: &Expr) -> Option<Element> {
    match &dtype.kind {
        ExprKind::DType(dtype) => Some(fixed(*dtype)),
        ExprKind::Rule(Rule::DType(DTypeRule::Real), _) => Some(Element::Real),
        ExprKind::Rule(Rule::DType(DTypeRule::Opmath), _) => Some(Element::Opmath),
        _ if dtype.same_meaning(compute) => Some(Element::Dispatch),
        _ => None,
    }
}

fn fixed(dtype: DType) -> Element {
    Element::Fixed { kernel: dtype, accepted: DTypeSet::of(dtype) }
}
