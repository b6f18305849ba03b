//! The description of one operator, for `opsmith explain`.
//!
//! In: a checked spec and its configuration. Out: [`DescribedOperator`], plain data that a command prints or writes as JSON.
//! Must not evaluate expressions, which needs the runtime.

pub mod source;
mod uses;
mod words;

use std::collections::HashMap;

use opsmith_core::{Backend, DType};
use serde::Serialize;

use opsmith_codegen::analysis::gradients::{second_order_refusal, tangent_refusal};
use opsmith_codegen::analysis::naming::Form;
use opsmith_codegen::analysis::reads::{ReadValue, reads};
use opsmith_codegen::code_places::CodePlaces;
use opsmith_codegen::config::Config;
use opsmith_codegen::emit::{self};
use opsmith_codegen::expr::print::print;
use opsmith_codegen::model::expr::{Expr, ExprKind};
use opsmith_codegen::model::{self, Body, Forward, Infer, KernelSource, Model, Op};
use opsmith_codegen::pipeline::Checked;

pub use uses::{Use, all_uses};
pub use words::{InWords, ResultInWords, in_words};

/// The description of an operator.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedOperator {
    /// Its full name.
    pub name: String,
    /// The signature.
    pub signature: String,
    /// The location of its declaration, `ops.yaml:12`.
    pub declared: String,
    /// The documentation.
    pub doc: String,
    /// The names for calls with boxed arguments, with the form of each.
    pub names: Vec<Name>,
    /// Rust operators that call it.
    pub operators: Vec<String>,
    /// Its Rust functions.
    pub functions: Vec<DescribedFunction>,
    /// The kernels or other bodies on each backend.
    pub kernels: Vec<DescribedKernel>,
    /// The inference rules of the outputs.
    pub inference: Option<Inference>,
    /// Conditions on the arguments.
    pub checks: Vec<String>,
    /// The lines of its formula; none if the entry has none.
    pub formula: Vec<String>,
    /// The composition of other operators.
    pub decomposes_to: Option<Decomposition>,
    /// Gradient formulas.
    pub derivatives: Vec<DescribedDerivative>,
    /// The source of the operator's gradients, in a word; empty if there are none.
    pub gradients_by: &'static str,
    /// The source of tangents in forward mode; empty if it is not supported.
    pub forward_by: &'static str,
    /// The formulas of tangents, as written.
    pub tangents: Vec<String>,
    /// The reason why gradients cannot be differentiated again, if there is one.
    pub second_order_refused: Option<String>,
    /// The operators that call it.
    pub used_by: Vec<Use>,
}

/// A name for calls with boxed arguments.
#[derive(Clone, Debug, Serialize)]
pub struct Name {
    /// The name.
    pub name: String,
    /// `functional`, `inplace` or `out`.
    pub form: &'static str,
}

/// A Rust function.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedFunction {
    /// `functional`, `inplace` or `out`.
    pub form: &'static str,
    /// Its declaration.
    pub function: String,
    /// The call as a method.
    pub method: Option<String>,
}

/// The body that computes the result for some dtypes of a backend.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedKernel {
    /// The backend whose tensors it takes, `CPU`; `any` if it is independent of the backend.
    pub backend: String,
    /// Its compute dtypes.
    pub dtypes: Vec<&'static str>,
    /// `Rust function`, `C++ function`, `expression`, `view`, `composition` or `host function`.
    pub kind: &'static str,
    /// The text in the spec.
    pub text: String,
    /// The location of its source, `kernels/src/cpu/linalg/mod.rs:32`.
    pub source: Option<String>,
    /// The required signature, for a hand-written function.
    pub signature: Option<String>,
    /// How a function for a device computes: its documentation up to the errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
}

/// The inference rules of the outputs.
#[derive(Clone, Debug, Serialize)]
pub struct Inference {
    /// The rule for each output's shape.
    pub shapes: Vec<DescribedRule>,
    /// The rule for each output's shape before a run, for data-dependent sizes.
    pub run_shapes: Vec<DescribedRule>,
    /// The data-dependent sizes, each with its upper bound.
    pub run_sizes: Vec<RunSize>,
    /// The rule for each output's dtype.
    pub dtypes: Vec<DescribedRule>,
    /// The rule for the dtype that selects the kernel.
    pub compute: DescribedRule,
}

/// A data-dependent size of a result.
#[derive(Clone, Debug, Serialize)]
pub struct RunSize {
    /// Its name in the rules of shapes before a run.
    pub name: String,
    /// Its upper bound.
    pub at_most: DescribedRule,
}

/// A rule of inference.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedRule {
    /// The expression.
    pub rule: String,
    /// The rule in words, if it has a name.
    pub meaning: Option<String>,
    /// The locations of the Rust functions that the rule calls.
    pub sources: Vec<String>,
}

/// A composition of other operators.
#[derive(Clone, Debug, Serialize)]
pub struct Decomposition {
    /// The expression.
    pub expression: String,
    /// The operators it calls.
    pub calls: Vec<String>,
    /// The location of its definition.
    pub source: Option<String>,
}

/// A gradient formula.
#[derive(Clone, Debug, Serialize)]
pub struct DescribedDerivative {
    /// The arguments whose gradients it gives.
    pub of: Vec<String>,
    /// The formula as written, or as derived from the expression of one element.
    pub formula: String,
    /// Whether it was derived.
    pub derived: bool,
    /// The arguments, results and attributes that a recorded call saves for it. Empty if it reads metadata only.
    pub saves: Vec<String>,
}

/// The description of an operator of the model.
pub fn describe(checked: &Checked, config: &Config, op: &Op) -> DescribedOperator {
    describe_with(checked, op, &mut Shared::new(checked, config))
}

/// The parts of a description that several of one spec share: sources, each read once, and uses.
pub struct Shared<'a> {
    sources: CodePlaces,
    uses: HashMap<&'a str, Vec<Use>>,
}

impl<'a> Shared<'a> {
    /// The shared parts for a spec.
    pub fn new(checked: &'a Checked, config: &Config) -> Shared<'a> {
        Shared { sources: CodePlaces::new(config), uses: all_uses(&checked.model) }
    }
}

/// As [`describe`], for several operators of one spec.
pub fn describe_with(checked: &Checked, op: &Op, shared: &mut Shared<'_>) -> DescribedOperator {
    let Shared { sources, uses } = shared;
    let model = &checked.model;
    let names = [
        (Some(&op.name), Form::Functional),
        (op.forms.inplace.as_ref(), Form::Inplace),
        (op.forms.out.as_ref(), Form::Out),
    ];
    let names = names
        .into_iter()
        .filter_map(|(name, form)| Some(Name { name: name?.clone(), form: form_name(form) }));
    let functions = emit::signatures(op).into_iter().map(|signature| DescribedFunction {
        form: form_name(signature.form),
        function: signature.function,
        method: signature.method,
    });
    let operators = op.operators.iter().map(|operator| {
        format!("{}{}", if operator.reversed { "reversed " } else { "" }, operator.symbol.spelling())
    });
    let inference = op
        .infer
        .as_ref()
        .map(|infer| describe_inference(infer, &mut |expr| describe_rule(expr, op, model, sources)));
    let decomposes_to = op.body.composite.as_ref().map(|body| Decomposition {
        expression: print(body, op, model),
        calls: called(body, model),
        source: source::of_key(checked, op, "decompose"),
    });
    DescribedOperator {
        name: op.name.clone(),
        signature: op.signature.clone(),
        declared: op.location.clone(),
        doc: op.doc.clone(),
        names: names.collect(),
        operators: operators.collect(),
        functions: functions.collect(),
        kernels: kernels(checked, op, sources),
        inference,
        checks: op.checks.iter().map(|check| check.text.clone()).collect(),
        formula: op
            .facts
            .formula
            .iter()
            .flat_map(|formula| &formula.lines)
            .map(|line| line.text.clone())
            .collect(),
        decomposes_to,
        derivatives: op.derivatives.iter().map(|derivative| describe_derivative(derivative, op)).collect(),
        gradients_by: op.gradient_source().word(),
        forward_by: match tangent_refusal(model, op) {
            None => op.forward.word(),
            Some(_) => "",
        },
        tangents: match &op.forward {
            Forward::Formulas(formulas) => {
                formulas.iter().map(|formula| formula.text.trim().to_owned()).collect()
            }
            _ => Vec::new(),
        },
        second_order_refused: second_order_refusal(model, op),
        used_by: uses.get(op.name.as_str()).cloned().unwrap_or_default(),
    }
}

/// The kernel that runs for a compute dtype on a backend, with the reason; the reason alone if there is none.
pub fn choose(
    op: &DescribedOperator,
    backend: Backend,
    dtype: Option<DType>,
) -> (Option<&DescribedKernel>, String) {
    let key = backend.key();
    if let Some(kernel) =
        op.kernels.iter().find(|kernel| kernel.backend == "any" && kernel.kind != "composition")
    {
        return (Some(kernel), format!("a {} serves every backend and dtype", kernel.kind));
    }
    let of_backend = || op.kernels.iter().filter(|kernel| kernel.backend == key);
    let fits = |kernel: &&DescribedKernel| dtype.is_none_or(|dtype| kernel.dtypes.contains(&dtype.name()));
    if let Some(kernel) = of_backend().find(fits) {
        let why = match dtype {
            Some(dtype) => format!("the table has a row for {key} and {dtype}"),
            None => format!("the table has a row for {key}; the dtypes are those it lists"),
        };
        return (Some(kernel), why);
    }
    let missing = match dtype {
        Some(dtype) => format!("no kernel for {key} and {dtype}"),
        None => format!("no kernel for {key}"),
    };
    match op.kernels.iter().find(|kernel| kernel.kind == "composition") {
        Some(kernel) => (Some(kernel), format!("{missing}, so the composition runs")),
        None => {
            let known: Vec<&str> = of_backend().flat_map(|kernel| kernel.dtypes.iter().copied()).collect();
            let there = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
            (None, format!("{missing}, and no composition: the call is an error; {key} has {there}"))
        }
    }
}

fn form_name(form: Form) -> &'static str {
    match form {
        Form::Functional => "functional",
        Form::Inplace => "inplace",
        Form::Out => "out",
    }
}

/// The bodies of an operator, in order of precedence.
fn kernels(checked: &Checked, op: &Op, sources: &mut CodePlaces) -> Vec<DescribedKernel> {
    let body = &op.body;
    let mut found = Vec::new();
    let any = |kind: &'static str, text: String, source: Option<String>| DescribedKernel {
        backend: "any".to_owned(),
        dtypes: Vec::new(),
        kind,
        text,
        source,
        signature: None,
        documentation: None,
    };
    if let Some(path) = &body.view {
        found.push(any("view", path.clone(), sources.rust(path)));
    }
    if let Some(path) = &body.host {
        found.push(any("host function", path.clone(), sources.rust(path)));
    }
    for kernel in &body.kernels {
        let (kind, source) = kind_and_source(body, kernel, sources);
        let signature = kernel_signature(op, kernel);
        found.push(DescribedKernel {
            signature,
            backend: kernel.backend.key().to_owned(),
            dtypes: body.dtypes[kernel.backend.index()].iter().map(DType::name).collect(),
            kind,
            text: kernel.text.clone(),
            source,
            documentation: source::documentation(kernel, sources),
        });
    }
    let loops = Backend::ALL.into_iter().filter(|backend| {
        body.has_loop(*backend) && !body.kernels.iter().any(|kernel| kernel.backend == *backend)
    });
    for (backend, expression) in loops.zip(body.pointwise.iter().cycle()) {
        found.push(DescribedKernel {
            backend: backend.key().to_owned(),
            dtypes: body.dtypes[backend.index()].iter().map(DType::name).collect(),
            kind: "expression",
            text: print(expression, op, &checked.model),
            signature: None,
            documentation: None,
            source: source::of_key(checked, op, "pointwise"),
        });
    }
    if let Some(expression) = &body.composite {
        found.push(any(
            "composition",
            print(expression, op, &checked.model),
            source::of_key(checked, op, "decompose"),
        ));
    }
    found
}

/// The kind of a hand-written kernel in words, and the location of its source.
fn kind_and_source(
    body: &Body,
    kernel: &model::Kernel,
    sources: &mut CodePlaces,
) -> (&'static str, Option<String>) {
    match &kernel.source {
        KernelSource::Rust { path, .. } => ("Rust function", sources.kernel(path, kernel.backend)),
        KernelSource::Foreign { file, symbol } => ("C or C++ function", sources.foreign(file, symbol)),
        KernelSource::Aot { file, symbol } => {
            let of_host = body.kernel_of_row(Backend::Cpu).is_some_and(|used| std::ptr::eq(used, kernel));
            let kind = match (kernel.backend, of_host) {
                (Backend::Cpu, _) => "custom kernel",
                (_, false) => "custom kernel on a device",
                (_, true) => "custom kernel on a device, for tensors of the host by copies",
            };
            (kind, sources.foreign(file, symbol))
        }
    }
}

/// The required type of a kernel.
fn kernel_signature(op: &Op, kernel: &model::Kernel) -> Option<String> {
    match &kernel.source {
        KernelSource::Rust { path, arguments } => {
            let name = path.rsplit("::").next().unwrap_or(path);
            Some(emit::rust_kernel_signature(op, name, arguments, kernel.backend))
        }
        KernelSource::Foreign { symbol, .. } => Some(emit::c_declaration(op, symbol)),
        // The interface determines its type.
        KernelSource::Aot { .. } => None,
    }
}

/// The inference rules, each described by a function.
fn describe_inference(infer: &Infer, rule: &mut dyn FnMut(&Expr) -> DescribedRule) -> Inference {
    Inference {
        shapes: infer.shapes.iter().map(&mut *rule).collect(),
        run_shapes: infer.run_shapes.iter().map(&mut *rule).collect(),
        run_sizes: infer
            .run_sizes
            .iter()
            .map(|(name, most)| RunSize { name: name.clone(), at_most: rule(most) })
            .collect(),
        dtypes: infer.dtypes.iter().map(&mut *rule).collect(),
        compute: rule(&infer.compute),
    }
}

fn describe_rule(expr: &Expr, op: &Op, model: &Model, sources: &mut CodePlaces) -> DescribedRule {
    let meaning = match &expr.kind {
        ExprKind::Rule(rule, _) => Some(rule.doc().to_owned()),
        ExprKind::DType(dtype) => Some(format!("always {dtype}")),
        ExprKind::Native(path, args) => emit::function_in_words(path, args, op, model),
        _ => None,
    };
    let mut natives = Vec::new();
    expr.walk(&mut |part| {
        if let ExprKind::Native(path, _) = &part.kind {
            natives.push(path.clone());
        }
    });
    let sources = natives.iter().map(|path| match sources.rust(path) {
        Some(place) => format!("{path} at {place}"),
        None => format!("{path}, which was not found"),
    });
    DescribedRule { rule: print(expr, op, model), meaning, sources: sources.collect() }
}

fn describe_derivative(derivative: &opsmith_codegen::model::Derivative, op: &Op) -> DescribedDerivative {
    let of = derivative.arguments.iter().map(|index| op.args[*index].name.clone()).collect();
    let saves = reads(&derivative.formula).values.into_iter().map(|place| match place {
        ReadValue::Arg(index) => op.args[index].name.clone(),
        ReadValue::Result(index) => match (&op.outputs[index].name, op.outputs.len()) {
            (Some(name), _) => name.clone(),
            (None, 1) => "result".to_owned(),
            (None, _) => format!("result{index}"),
        },
    });
    DescribedDerivative {
        of,
        formula: derivative.text.trim().to_owned(),
        derived: derivative.derived,
        saves: saves.collect(),
    }
}

/// The operators an expression calls, each once, in the order of their first call.
fn called(expr: &Expr, model: &Model) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    expr.walk(&mut |part| {
        if let ExprKind::Op(id, _) = part.kind
            && let Some(op) = model.ops.get(id.0)
            && !names.contains(&op.name)
        {
            names.push(op.name.clone());
        }
    });
    names
}
