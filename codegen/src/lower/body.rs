//! What computes an operator: expression, kernels, view, composition.

use std::path::PathBuf;

use opsmith_core::{Backend, DType, DTypeSet};

use super::Context;
use super::derivatives::{self, Derivatives};
use super::derived;
use super::infer::{self, Expressions};
use crate::diagnostics::{Diagnostic, nearest};
use crate::expr::check::{Mode, OpTable};
use crate::expr::{Expr, ExprKind, Variable};
use crate::model::{Body, Check, Element, Function, Infer, Kernel, KernelSource, Kind, Op, Ty};
use crate::spec::document::{RawOp, Text};

/// The parts of an operator that need the heads of all.
pub(super) struct Lowered {
    checks: Vec<Check>,
    infer: Option<Infer>,
    body: Body,
    derivatives: Derivatives,
}

impl Lowered {
    pub fn install(self, op: &mut Op) {
        if let Some(infer) = &self.infer {
            for (output, dtype) in op.outputs.iter_mut().zip(&infer.dtypes) {
                output.element = infer::output_element(dtype, &infer.compute).unwrap_or(Element::Any);
            }
        }
        op.checks = self.checks;
        op.infer = self.infer;
        op.body = self.body;
        op.derivatives = self.derivatives.formulas;
        op.non_differentiable = self.derivatives.non_differentiable;
    }
}

pub(super) fn lower(
    context: &mut Context<'_>,
    op: &Op,
    raw: &RawOp,
    table: &OpTable<'_>,
    functions: &[Function],
) -> Lowered {
    let expressions = Expressions { op, table, functions };
    let pointwise_text = raw.text("pointwise");
    let checks = infer::checks(context, &expressions, raw);
    let infer = infer::lower(context, &expressions, raw, pointwise_text.is_some());
    let mut body = Body { dtypes: dtypes(context, raw), ..Body::default() };
    dispatch(context, op, raw, &mut body);
    if infer.as_ref().is_some_and(|infer| matches!(infer.compute.kind, ExprKind::Rule("promote_float", _))) {
        // Integers never reach these kernels: inference has made them floats.
        let inexact = DTypeSet::from_name("inexact").unwrap_or_default();
        body.dtypes = body.dtypes.map(|set| set.intersection(inexact));
    }
    if let Some(text) = &pointwise_text {
        body.pointwise = pointwise(context, &expressions, text, infer.as_ref(), functions, &body);
    }
    if let Some(text) = raw.text("decompose") {
        body.composite = expressions.check(context, &text, Mode::Decompose, &op.result_type());
    }
    require_body(context, op, raw, &body, infer.as_ref());
    let derivatives = match (raw.get("derivatives"), raw.text("pointwise")) {
        (None, Some(text)) if body.pointwise.is_some() => {
            derived::lower(context, &expressions, &text, infer.as_ref(), &body)
        }
        _ => derivatives::lower(context, &expressions, raw),
    };
    Lowered { checks, infer, body, derivatives }
}

/// `dtypes: floating`, `dtypes: [float32, float64]`, `dtypes: {CPU: all, CUDA: [float32]}`
fn dtypes(context: &mut Context<'_>, raw: &RawOp) -> [DTypeSet; Backend::COUNT] {
    let all = DTypeSet::from_name("all").unwrap_or_default();
    let Some(node) = raw.get("dtypes") else { return [all; Backend::COUNT] };
    let Some(entries) = node.as_map() else {
        let set =
            raw.texts("dtypes").iter().fold(DTypeSet::EMPTY, |set, text| set.union(dtype_set(context, text)));
        return [set; Backend::COUNT];
    };
    let mut sets = [DTypeSet::EMPTY; Backend::COUNT];
    for (key, value) in entries {
        let Some(backend) = Backend::from_key(&key.text) else {
            unknown_backend(context, &key.text, key.span);
            continue;
        };
        let texts: Vec<Text> = match value.as_seq() {
            Some(items) => items.iter().map(|node| Text { node: node.clone() }).collect(),
            None => vec![Text { node: value.clone() }],
        };
        for text in &texts {
            sets[backend.index()] = sets[backend.index()].union(dtype_set(context, text));
        }
    }
    sets
}

/// A dtype or a named set.
pub(super) fn dtype_set(context: &mut Context<'_>, text: &Text) -> DTypeSet {
    DTypeSet::from_name(text.as_str()).unwrap_or_else(|| {
        let names =
            DTypeSet::NAMED.iter().map(|(name, _)| *name).chain(DType::ALL.iter().map(|dtype| dtype.name()));
        let near = nearest(text.as_str(), names).map(|near| format!("did you mean `{near}`?"));
        let sets: Vec<&str> = DTypeSet::NAMED.iter().map(|(name, _)| *name).collect();
        context.diagnostics.push(
            Diagnostic::error(
                "E0407",
                format!("there is no dtype `{}`", text.as_str()),
                text.span(),
                "unknown",
            )
            .with_help(format!("use dtype names such as `float32`, or a set: {}", sets.join(", ")))
            .with_help_if(near),
        );
        DTypeSet::EMPTY
    })
}

fn unknown_backend(context: &mut Context<'_>, key: &str, span: crate::diagnostics::Span) {
    let keys: Vec<&str> = Backend::ALL.iter().map(|backend| backend.key()).chain(["View", "Host"]).collect();
    let help = match nearest(key, keys.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys are: {}", keys.join(", ")),
    };
    context.diagnostics.push(
        Diagnostic::error("E0450", format!("there is no backend `{key}`"), span, "unknown backend")
            .with_help(help),
    );
}

fn dispatch(context: &mut Context<'_>, op: &Op, raw: &RawOp, body: &mut Body) {
    let is_view = raw.flag("view") == Some(true);
    for (key, text) in raw.text_map("dispatch") {
        match key.text.as_str() {
            "View" => body.view = Some(text.as_str().to_owned()),
            "Host" => body.host = Some(text.as_str().to_owned()),
            name => match Backend::from_key(name) {
                Some(backend) => {
                    let Some(source) = kernel_source(context, op, &text) else { continue };
                    body.kernels.push(Kernel {
                        backend,
                        source,
                        text: text.as_str().to_owned(),
                        span: text.span(),
                    });
                }
                None => unknown_backend(context, name, key.span),
            },
        }
    }
    if let Some(entry) = raw.entry("view")
        && is_view != body.view.is_some()
    {
        context.diagnostics.push(
            Diagnostic::error(
                "E0451",
                "a view needs a layout function",
                entry.value.span,
                "`view: true` without `dispatch: {View: …}`",
            )
            .with_help(
                "name the function that gives the output's layout: `dispatch: {View: views::transpose}`",
            ),
        );
    }
}

/// `linalg::mm` is Rust, `fill::full(size, value)` too; `kernels/cpu/flip.cc:flip` is a function in a
/// file.
fn kernel_source(context: &mut Context<'_>, op: &Op, text: &Text) -> Option<KernelSource> {
    let written = text.as_str().trim();
    if let Some((path, list)) = written.strip_suffix(')').and_then(|call| call.split_once('(')) {
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        let arguments: Vec<Option<usize>> =
            names.map(|name| kernel_argument(context, op, text, name)).collect();
        let arguments = arguments.into_iter().collect::<Option<_>>()?;
        return Some(KernelSource::Rust { path: path.trim().to_owned(), arguments });
    }
    if let Some((file, symbol)) = written.rsplit_once(':')
        && !file.ends_with(':')
    {
        return Some(KernelSource::Foreign { file: PathBuf::from(file), symbol: symbol.trim().to_owned() });
    }
    Some(KernelSource::Rust { path: written.to_owned(), arguments: (0..op.args.len()).collect() })
}

fn kernel_argument(context: &mut Context<'_>, op: &Op, text: &Text, name: &str) -> Option<usize> {
    let found = op.arg_index(name);
    if found.is_none() {
        let names: Vec<&str> = op.args.iter().map(|arg| arg.name.as_str()).collect();
        let help = match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the arguments are: {}", names.join(", ")),
        };
        context.diagnostics.push(
            Diagnostic::error(
                "E0457",
                format!("`{}` has no argument `{name}` to give to the kernel", op.name),
                text.span(),
                "names an argument that does not exist",
            )
            .with_help(help),
        );
    }
    found
}

fn pointwise(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    text: &Text,
    infer: Option<&Infer>,
    functions: &[Function],
    body: &Body,
) -> Option<Expr> {
    let op = expressions.op;
    if !matches!(op.outputs.as_slice(), [only] if only.ty.is_tensor()) {
        context.diagnostics.push(
            Diagnostic::error(
                "E0452",
                "a pointwise operator returns one tensor",
                text.span(),
                format!("`{}` does not", op.name),
            )
            .with_help("write a kernel for operators with other results"),
        );
        return None;
    }
    let element = infer
        .and_then(|infer| infer::output_element(infer.dtypes.first()?, &infer.compute))
        .unwrap_or(Element::Dispatch);
    let want = match element {
        Element::Fixed(DType::Bool, _) => Kind::Bool,
        Element::Real => Kind::RealElement,
        _ => Kind::Element,
    };
    let expr = expressions.check(context, text, Mode::Pointwise, &Ty::new(want))?;
    let mut fine = true;
    expr.walk(&mut |part| {
        let ExprKind::Function(id, args) = &part.kind else { return };
        let function = &functions[id.0];
        let on_masks = !args.is_empty() && args.iter().all(|arg| arg.ty.kind == Kind::Bool);
        let missing: Vec<&str> = body.dtypes[0]
            .iter()
            .filter(|dtype| !function.dtypes.contains(*dtype))
            .map(DType::name)
            .collect();
        if !missing.is_empty() && !on_masks {
            fine = false;
            context.diagnostics.push(
                Diagnostic::error(
                    "E0453",
                    format!("`{}` is not defined for every dtype of `{}`", function.name, op.name),
                    text.span_within(part.range.clone(), context.sources),
                    format!("not for {}", missing.join(", ")),
                )
                .with_secondary(function.span, "declared here")
                .with_help("narrow `dtypes`, or compute in floats with `dtype: promote_float(…)`"),
            );
        }
    });
    fine &= reads_elementwise(context, op, text, infer, &expr);
    fine.then_some(expr)
}

/// Whether the loop finds an element of every tensor it reads: each broadcasts to the output's shape,
/// and has the element type the loop is made for.
fn reads_elementwise(
    context: &mut Context<'_>,
    op: &Op,
    text: &Text,
    infer: Option<&Infer>,
    expr: &Expr,
) -> bool {
    let read = op.read_tensors(expr);
    let in_shape = |index: usize| match infer.map(|infer| &infer.shapes[0].kind) {
        Some(ExprKind::Rule("broadcast" | "follow", operands)) => operands
            .iter()
            .any(|operand| matches!(operand.kind, ExprKind::Variable(Variable::Arg(arg)) if arg == index)),
        _ => false,
    };
    if let Some(&outside) = read.iter().find(|&&index| !in_shape(index)) {
        let name = &op.args[outside].name;
        let names: Vec<&str> = read.iter().map(|&index| op.args[index].name.as_str()).collect();
        context.diagnostics.push(
            Diagnostic::error(
                "E0458",
                format!("`{name}` need not have the shape of `{}`'s output", op.name),
                text.span(),
                "reads an element of it for each element of the output",
            )
            .with_help(format!("write `shape: broadcast({})`, or leave `shape` out", names.join(", "))),
        );
        return false;
    }
    let is_copy = matches!(expr.kind, ExprKind::Variable(_));
    if let Some(&any) = read.iter().find(|&&index| op.args[index].element == Element::Any && !is_copy) {
        context.diagnostics.push(
            Diagnostic::error(
                "E0459",
                format!("`{}` of `{}` has no dtype to compute in", op.args[any].name, op.name),
                text.span(),
                "an argument of any dtype can be copied, but not computed with",
            )
            .with_help("remove it from `types`; it is then converted to the dtype that chooses the kernel"),
        );
        return false;
    }
    true
}

fn require_body(context: &mut Context<'_>, op: &Op, raw: &RawOp, body: &Body, infer: Option<&Infer>) {
    let place = raw.func.span();
    let has = |key: &str| raw.get(key).is_some();
    if !has("pointwise")
        && !has("dispatch")
        && !has("decompose")
    {
        context.diagnostics.push(
            Diagnostic::error("E0454", format!("nothing computes `{}`", op.name), place, "no body")
                .with_help("add `pointwise: …`, `dispatch: {CPU: …}` or `decompose: …`"),
        );
    }
    if !body.kernels.is_empty() && !has("shape") && infer.is_none() {
        context.diagnostics.push(
            Diagnostic::error(
                "E0455",
                format!("the kernels of `{}` need a shape to write", op.name),
                place,
                "`shape` is missing",
            )
            .with_help("add `shape:` and `dtype:`; kernels write into outputs that inference has sized"),
        );
    }
    if let Some(infer) = infer
        && !body.kernels.is_empty()
    {
        for (index, dtype) in infer.dtypes.iter().enumerate() {
            if infer::output_element(dtype, &infer.compute).is_none() {
                context.diagnostics.push(
                    Diagnostic::error(
                        "E0456",
                        format!(
                            "the element type of output {index} of `{}` is not known to its kernels",
                            op.name
                        ),
                        raw.get("dtype").map_or(place, |node| node.span),
                        "differs from the dtype that chooses the kernel",
                    )
                    .with_help("set `compute:` to the same rule, or give the output a fixed dtype"),
                );
            }
        }
    }
}
