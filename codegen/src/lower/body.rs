//! The body of an operator: expression, kernels, view, composition.

use opsmith_core::rules::{DTypeRule, Rule};
use opsmith_core::{Backend, DTypeSet};

use super::derivatives::{self, Derivatives};
use super::infer::{self, Expressions};
use super::{
    Context, combinations, derived, dtypes, flops, forward, kernel, pointwise, results, samples, supplied,
    tolerance,
};
use crate::diagnostics::{Span, catalogue};
use crate::expr::check::{Mode, OpTable};
use crate::model::expr::{Expr, ExprKind};
use crate::model::{
    Body, CheckedCondition, Combination, Element, Forward, Infer, Kernel, KernelSource, Kind, Op, Sample,
    Tolerance,
};
use crate::spec::document::RawOp;
use crate::spec::document::keys::KeyName;
use crate::spec::schema::Schema;

/// The parts of an operator that need the heads of all operators.
#[derive(Clone, Default)]
pub(super) struct Lowered {
    checks: Vec<CheckedCondition>,
    present: Vec<Option<Expr>>,
    combinations: Vec<Combination>,
    infer: Option<Infer>,
    flops: Option<Expr>,
    body: Body,
    derivatives: Derivatives,
    forward: Forward,
    samples: Vec<Sample>,
    tolerances: Vec<Tolerance>,
}

impl Lowered {
    /// Calls `visit` with every expression.
    pub fn for_each_expr(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.checks.iter_mut().for_each(|check| visit(&mut check.condition));
        self.present.iter_mut().flatten().for_each(&mut *visit);
        if let Some(infer) = &mut self.infer {
            let Infer { length, shapes, dtypes, compute, function: _, run_sizes, run_shapes } = infer;
            length.iter_mut().chain(shapes).chain(dtypes).chain(run_shapes).for_each(&mut *visit);
            visit(compute);
            run_sizes.iter_mut().for_each(|(_, bound)| visit(bound));
        }
        self.body.pointwise.iter_mut().chain(&mut self.body.composite).for_each(&mut *visit);
        self.derivatives.formulas.iter_mut().for_each(|derivative| visit(&mut derivative.formula));
        if let Forward::Formulas(formulas) = &mut self.forward {
            formulas.iter_mut().flat_map(|formula| &mut formula.terms).for_each(&mut *visit);
        }
    }

    pub fn install(self, op: &mut Op) {
        if let Some(infer) = &self.infer {
            for (output, dtype) in op.outputs.iter_mut().zip(&infer.dtypes) {
                output.element = infer::output_element(dtype, &infer.compute).unwrap_or(Element::Any);
            }
        }
        for (output, present) in op.outputs.iter_mut().zip(self.present) {
            output.present = present;
        }
        op.combinations = self.combinations;
        op.checks = self.checks;
        op.infer = self.infer;
        op.flops = self.flops;
        op.body = self.body;
        op.derivatives = self.derivatives.formulas;
        op.non_differentiable = self.derivatives.non_differentiable;
        op.forward = self.forward;
        op.samples = self.samples;
        op.tolerances = self.tolerances;
    }
}

/// The parts of an entry that decide about its kernels.
struct Core {
    combinations: Vec<Combination>,
    infer: Option<Infer>,
    body: Body,
}

/// Lowers the kernels of an entry, with the types that they are called with.
fn lower_core(context: &mut Context<'_>, expressions: &Expressions<'_>, raw: &RawOp) -> Core {
    let op = expressions.op;
    let pointwise_text = raw.text(KeyName::Pointwise);
    let combinations = combinations::lower(context, op, raw);
    let infer = infer::lower(context, expressions, raw, pointwise_text.is_some(), &combinations);
    let infer = infer.unwrap_or(None);
    let mut body = Body { dtypes: dtypes::of_backends(context, raw), ..Body::default() };
    kernel::lower(context, op, raw, &mut body);
    if !combinations.is_empty() {
        body.dtypes = [combinations::chosen_by(&combinations); Backend::COUNT];
    }
    if infer.as_ref().is_some_and(|infer| {
        matches!(infer.compute.kind, ExprKind::Rule(Rule::DType(DTypeRule::PromoteFloat), _))
    }) {
        // Integers never reach these kernels: inference converts them to floats.
        let inexact = DTypeSet::INEXACT;
        body.dtypes = body.dtypes.map(|set| set.intersection(inexact));
    }
    if let Some(text) = &pointwise_text {
        body.pointwise = pointwise::lower(context, expressions, raw, text, infer.as_ref(), &body);
    }
    Core { combinations, infer, body }
}

/// The operator has no parts of its own: the target of an alias has them.
fn is_alias(op: &Op, raw: &RawOp) -> bool {
    op.alias_of.is_some() || raw.get(KeyName::AliasOf).is_some()
}

/// As [`lower`], of kernels and the presence of results alone.
pub(super) fn lower_tables(context: &mut Context<'_>, op: &Op, raw: &RawOp, table: &OpTable<'_>) -> Lowered {
    if is_alias(op, raw) {
        return Lowered::default();
    }
    let expressions = Expressions { op, table };
    let Core { combinations, infer, body } = lower_core(context, &expressions, raw);
    let present = results::present(context, &expressions, raw);
    Lowered { combinations, infer, body, present, ..Lowered::default() }
}

pub(super) fn lower(context: &mut Context<'_>, op: &Op, raw: &RawOp, table: &OpTable<'_>) -> Lowered {
    if is_alias(op, raw) {
        // The target operator has all of this, or its mistakes were reported.
        return Lowered::default();
    }
    let expressions = Expressions { op, table };
    let pointwise_text = raw.text(KeyName::Pointwise);
    let checks = infer::checks(context, &expressions, raw);
    let Core { combinations, infer, mut body } = lower_core(context, &expressions, raw);
    if let Some(text) = raw.text(KeyName::Decompose)
        && op.returns_tensors()
    {
        body.composite = expressions.check(context, &text, Mode::Decompose, &op.whole_type());
    }
    let flops = flops::lower(context, &expressions, raw);
    check_view(context, op, raw, &body);
    check_results(context, op, raw, &body);
    check_updates(context, op, raw, &body);
    refuse_contradictions(context, raw);
    require(context, op, raw, &body, infer.as_ref());
    let mistakes = context.diagnostics.count();
    let mut derivatives = derivatives::lower(context, &expressions, raw);
    // A part that is missing because of a mistake is not reported.
    let complete = raw.complete && context.diagnostics.count() == mistakes;
    if let Some(text) = pointwise_text.filter(|_| body.pointwise.is_some() && complete) {
        derived::complete(context, &expressions, &text, (infer.as_ref(), &body), &mut derivatives);
    }
    results::check_unread(context, op, raw, &derivatives.formulas);
    let forward = forward::lower(context, &expressions, raw, &derivatives);
    let samples = samples::lower(context, op, raw);
    let tolerances = tolerance::lower(context, raw);
    results::refuse_absent(context, op, raw, &derivatives.formulas);
    let present = results::present(context, &expressions, raw);
    Lowered { checks, infer, flops, body, derivatives, forward, samples, tolerances, present, combinations }
}

/// A view has its flag, its layout function, a base and one result.
fn check_view(context: &mut Context<'_>, op: &Op, raw: &RawOp, body: &Body) {
    let flag = raw.flag(KeyName::View) == Some(true);
    match (flag, body.view.is_some()) {
        (true, false) if raw.complete => {
            let place = raw.entry(KeyName::View).map_or(op.span, |entry| entry.value.span);
            context.push(catalogue::view_half(place, "there is no `dispatch: {View: …}`"));
        }
        (false, true) => {
            let place = key_in(raw, KeyName::Dispatch, "View").unwrap_or(op.span);
            context.push(catalogue::view_half(place, "there is no `view: true`"));
        }
        _ => {}
    }
    if !flag {
        return;
    }
    if !op.args.first().is_some_and(|arg| arg.ty.is_tensor()) {
        context.push(catalogue::view_signature(op.span, "the first argument is not a tensor"));
    }
    let one = matches!(op.outputs.as_slice(), [only] if only.ty.holds_tensors());
    if !one {
        context.push(catalogue::view_signature(op.span, "it does not return one tensor or list of tensors"));
    }
}

/// Checks that kernels can update a copy of the first argument.
fn check_updates(context: &mut Context<'_>, op: &Op, raw: &RawOp, body: &Body) {
    let Some(entry) = raw.entry(KeyName::Updates).filter(|_| op.facts.updates) else { return };
    let first = op.args.first().filter(|arg| arg.ty.kind == Kind::Tensor && !arg.ty.optional);
    let takes_it = |kernel: &&Kernel| match &kernel.source {
        KernelSource::Rust { arguments, .. } => arguments.contains(&0),
        KernelSource::Foreign { .. } | KernelSource::Aot { .. } => true,
    };
    let problem = if first.is_none() {
        "the first argument is not a tensor"
    } else if !matches!(op.outputs.as_slice(), [only] if only.ty.kind == Kind::Tensor && !only.ty.optional) {
        "the result is not one tensor"
    } else if body.kernels.is_empty() {
        "there is no kernel in `dispatch`"
    } else if let Some(kernel) = body.kernels.iter().find(takes_it) {
        context.push(catalogue::updates_kernel(kernel.span, entry.value.span));
        return;
    } else {
        return;
    };
    context.push(catalogue::updates_signature(entry.value.span, problem));
}

/// Checks that the body can produce the operator's results.
fn check_results(context: &mut Context<'_>, op: &Op, raw: &RawOp, body: &Body) {
    let single_tensors = op.returns_single_tensors();
    let is_sized = raw.get(KeyName::Length).is_some();
    let in_rust = is_sized || op.may_lack_results();
    let fits = |kernel: &Kernel| {
        (single_tensors || is_sized) && (!in_rust || matches!(kernel.source, KernelSource::Rust { .. }))
    };
    if let Some(kernel) = body.kernels.iter().find(|kernel| !fits(kernel)) {
        let place = returns_place(context, raw).unwrap_or(op.span);
        context.push(catalogue::kernel_results(kernel.span, place, &op.name));
    }
    if body.host.is_some() && op.returns_tensors() {
        let place = returns_place(context, raw).unwrap_or(op.span);
        let host = key_in(raw, KeyName::Dispatch, "Host").unwrap_or(op.span);
        context.push(catalogue::host_results(host, place));
    }
    if let Some(entry) = raw.entry(KeyName::Decompose).filter(|_| !op.returns_tensors()) {
        let place = returns_place(context, raw).unwrap_or(op.span);
        context.push(catalogue::decompose_results(entry.key.span, place));
    }
}

/// The span of the results in the signature.
fn returns_place(context: &Context<'_>, raw: &RawOp) -> Option<Span> {
    let schema: Schema = raw.parse_schema(context.sources, &mut crate::diagnostics::Diagnostics::new())?;
    Some(raw.func.span_within(schema.returns_range, context.sources))
}

/// Reports bodies that exclude each other.
fn refuse_contradictions(context: &mut Context<'_>, raw: &RawOp) {
    let view = key_in(raw, KeyName::Dispatch, "View");
    let others = [
        ("pointwise", raw.entry(KeyName::Pointwise).map(|entry| entry.key.span)),
        ("decompose", raw.entry(KeyName::Decompose).map(|entry| entry.key.span)),
        ("CPU", key_in(raw, KeyName::Dispatch, "CPU")),
    ];
    let Some(view) = view else { return };
    for (key, place) in others {
        if let Some(place) = place {
            context.push(catalogue::bodies_exclude(place, key, view, "View"));
        }
    }
}

/// The span of a key inside a mapping.
pub(super) fn key_in(raw: &RawOp, key: KeyName, inner: &str) -> Option<Span> {
    let entries = raw.get(key)?.as_map()?;
    entries.iter().find(|(known, _)| known.text == inner).map(|(known, _)| known.span)
}

/// Checks that an operator has a body, and that the dtypes its kernels write are known.
fn require(context: &mut Context<'_>, op: &Op, raw: &RawOp, body: &Body, infer: Option<&Infer>) {
    let has = |key: KeyName| raw.get(key).is_some();
    // A key that was dropped for a mistake may be the missing one.
    if !supplied::is_supplied(raw)
        && !has(KeyName::Pointwise)
        && !has(KeyName::Decompose)
        && !has(KeyName::Dispatch)
        && !has(KeyName::View)
        && raw.complete
    {
        context.push(catalogue::no_body(op.span, &op.name));
    }
    let sized = raw.get(KeyName::Length).is_some() || op.returns_single_tensors();
    if body.kernels.is_empty() || !sized {
        return;
    }
    let Some(infer) = infer else {
        if !has(KeyName::Shape) && !has(KeyName::Dtype) && !has(KeyName::Infer) && raw.complete {
            context.push(catalogue::kernel_without_shape(op.span, &op.name));
        }
        return;
    };
    for (index, dtype) in infer.dtypes.iter().enumerate() {
        let known = raw.get(KeyName::Combinations).is_some();
        if !known && infer::output_element(dtype, &infer.compute).is_none() {
            let place = raw.get(KeyName::Dtype).map_or(op.span, |node| node.span);
            context.push(catalogue::output_element_unknown(place, &op.name, index));
        }
    }
}
