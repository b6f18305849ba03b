//! Gradients of pointwise operators that declare none: the expression is differentiated.
//!
//! In: the text of a pointwise expression. Out: formulas, checked like written ones. If a derivative cannot be derived,
//! a gradient that reaches it is an error, never a silent zero.

use opsmith_core::DType;

use super::Context;
use super::derivatives::Derivatives;
use super::infer::{Expressions, output_element};
use super::symbolic::{Domain, Known, Lacking, Missing, Signature, Slope, Sym, Writer};
use crate::diagnostics::{Diagnostic, Diagnostics, catalogue};
use crate::expr::check::{Mode, Scope, check};
use crate::expr::{parse, path};
use crate::model::expr::{Expr, ExprKind};
use crate::model::{
    Arg, Backends, Body, Derivative, Element, Function, FunctionReturn, Infer, Kind, Op, Role, Ty,
};
use crate::spec::document::Text;

/// Adds formulas of the arguments that `found` does not mention.
pub(super) fn complete(
    context: &mut Context<'_>,
    expressions: &Expressions<'_>,
    text: &Text,
    (infer, body): (Option<&Infer>, &Body),
    found: &mut Derivatives,
) {
    let op = expressions.op;
    let Some(output) = infer.and_then(|infer| output_element(&infer.dtypes[0], &infer.compute)) else {
        return;
    };
    let tree = parse::tree(text.as_str());
    let Some(tree) = tree.filter(|_| op.outputs[0].differentiable && can_flow(output, body)) else { return };
    let functions = expressions.table.functions();
    let names = |complex: bool| Names { op, output, functions, complex };
    let cases = Cases {
        op,
        tree: &tree,
        real: some_dtype(body, |dtype| !dtype.is_complex() && dtype.is_differentiable())
            .then(|| names(false)),
        complex: some_dtype(body, DType::is_complex).then(|| names(true)),
        select: with_role(expressions, Role::Select),
        conjugate: with_role(expressions, Role::Conjugate),
    };
    let inputs = (0..op.args.len()).filter(|&index| {
        op.args[index].ty.is_tensor() && can_flow(op.args[index].element, body) && !found.mentions(index)
    });
    let inputs: Vec<usize> = inputs.collect();
    let written = !found.formulas.is_empty() || !found.non_differentiable.is_empty();
    for index in inputs {
        let (formula, text) = match cases.formula(&op.args[index].name) {
            Ok(None) => {
                found.non_differentiable.push(index);
                continue;
            }
            Ok(Some(formula)) => match checked(expressions, text, &formula) {
                Ok(expr) => (expr, formula),
                // Beside written formulas, derivation is optional, so its failure is no error.
                Err(Some(problem)) if written => {
                    refused(&format!("the derived gradient is not usable: {}", problem.message))
                }
                Err(problem) => {
                    let report = |problem: &Diagnostic| {
                        catalogue::derived_unusable(text.span(), &op.name, &formula, problem)
                    };
                    problem.iter().for_each(|problem| context.push(report(problem)));
                    continue;
                }
            },
            Err(reason) => refused(&reason),
        };
        found.formulas.push(derived(index, formula, text));
    }
    // In the order of the arguments, written or derived.
    found.formulas.sort_by_key(|formula| formula.arguments.first().copied());
}

/// Whether elements of this kind can have a gradient.
fn can_flow(element: Element, body: &Body) -> bool {
    match element {
        Element::NotTensor => false,
        Element::Fixed { accepted, .. } => accepted.iter().any(DType::is_differentiable),
        Element::Any => true,
        Element::Dispatch | Element::Real | Element::Opmath => some_dtype(body, DType::is_differentiable),
    }
}

fn some_dtype(body: &Body, holds: impl Fn(DType) -> bool) -> bool {
    body.dtypes.iter().any(|set| set.iter().any(&holds))
}

/// A formula that is an error when evaluated, and its text: a missing gradient is reported instead of ignored.
pub(super) fn refused(reason: &str) -> (Expr, String) {
    let kind = ExprKind::NotImplemented(reason.to_owned());
    let formula = Expr { kind, ty: Ty::new(Kind::Tensor), range: 0..0 };
    (formula, format!("not_implemented({reason:?})"))
}

/// A derived formula of one argument.
pub(super) fn derived(argument: usize, formula: Expr, text: String) -> Derivative {
    Derivative { arguments: vec![argument], formula, text, backends: Backends::ALL, derived: true }
}

/// The operator with a role, by its name in formulas. Overloads are found by base name, so any of them may have the
/// role.
fn with_role(expressions: &Expressions<'_>, role: Role) -> Option<String> {
    let op = expressions.table.with_role(role)?;
    // A Rust keyword gets an underscore.
    Some(if path::is_identifier(&op.base) { op.base.clone() } else { format!("{}_", op.base) })
}

/// The dtypes that an expression is differentiated for: real, complex, or both separately.
struct Cases<'a> {
    op: &'a Op,
    tree: &'a syn::Expr,
    real: Option<Names<'a>>,
    complex: Option<Names<'a>>,
    select: Option<String>,
    conjugate: Option<String>,
}

/// A slope, or the reason why there is none.
type Found = Result<Slope, String>;

impl Cases<'_> {
    /// The gradient with respect to one argument: `None` if the derivative is zero.
    fn formula(&self, by: &str) -> Result<Option<String>, String> {
        let body = Sym::read(self.tree).ok_or_else(syntax)?;
        let slope = |names: &Names<'_>| self.slope(&body, by, names);
        match (self.real.as_ref().map(slope), self.complex.as_ref().map(slope)) {
            (None, None) => Ok(None),
            (Some(found), None) => self.written(found, self.real.as_ref()),
            (None, Some(found)) => self.written(found, self.complex.as_ref()),
            (Some(real), Some(complex)) => self.both(real, complex),
        }
    }

    fn slope(&self, body: &Sym, by: &str, names: &Names<'_>) -> Found {
        let slope = body.slope(by, names).map_err(|Missing { function }| {
            format!("the scalar function `{function}` declares no derivative by what depends on `{by}`")
        })?;
        // The result is available under its name, unless an argument has that name.
        Ok(match self.op.arg_index("result") {
            None => slope.replace(body, &Sym::Name("result".to_owned())),
            Some(_) => slope,
        })
    }

    fn written(&self, found: Found, names: Option<&Names<'_>>) -> Result<Option<String>, String> {
        let (slope, Some(known)) = (found?, names) else { return Ok(None) };
        if slope.is_zero() {
            return Ok(None);
        }
        let grad = if self.op.arg_index("grad").is_some() { "grads[0].unwrap()" } else { "grad" };
        let writer = Writer { known, grad, select: self.select.clone(), conjugate: self.conjugate.clone() };
        writer.gradient(&slope).map(Some).map_err(|lacking| match lacking {
            Lacking::Select => {
                "its derivative chooses between elements, and no operator has `role: select`".to_owned()
            }
            Lacking::Conjugate => {
                "its derivative is conjugated for complex numbers, and no operator has `role: conjugate`"
                    .to_owned()
            }
        })
    }

    /// One formula for real and complex numbers if possible; otherwise one for each, so that real numbers have no cost
    /// from complex ones.
    fn both(&self, real: Found, complex: Found) -> Result<Option<String>, String> {
        if let (Ok(Slope::Plain(real)), Ok(Slope::Plain(one) | Slope::Holomorphic(one))) = (&real, &complex)
            && real == one
            && let Ok(formula) = self.written(complex.clone(), self.complex.as_ref())
        {
            return Ok(formula);
        }
        let (real, complex) =
            (self.written(real, self.real.as_ref()), self.written(complex, self.complex.as_ref()));
        if real == complex {
            return real;
        }
        let branch = |formula: Result<Option<String>, String>| match formula {
            Ok(Some(formula)) => formula,
            Ok(None) => "None".to_owned(),
            Err(reason) => refused(&reason).1,
        };
        Ok(Some(format!("if {} {{ {} }} else {{ {} }}", self.is_complex(), branch(complex), branch(real))))
    }

    /// The condition that the call computes complex numbers.
    fn is_complex(&self) -> String {
        let tells = self.complex.as_ref().is_some_and(|names| names.output == Element::Dispatch);
        if tells && self.op.arg_index("result").is_none() {
            return "result.is_complex()".to_owned();
        }
        let asked = |arg: &Arg| match (&arg.ty.kind, arg.ty.optional) {
            (Kind::Tensor, false) if arg.element == Element::Dispatch => {
                Some(format!("{}.is_complex()", arg.name))
            }
            (Kind::Scalar, false) => Some(format!("{}.is_complex()", arg.name)),
            (Kind::Scalar, true) => Some(format!("{0}.is_some() && {0}.unwrap().is_complex()", arg.name)),
            _ => None,
        };
        let asked: Vec<String> = self.op.args.iter().filter_map(asked).collect();
        if asked.is_empty() { "false".to_owned() } else { asked.join(" || ") }
    }
}

fn syntax() -> String {
    "its expression has syntax that cannot be differentiated; write `derivatives`".to_owned()
}

/// The formula as a typed expression, or its first mistake, unless that belongs to another entry.
fn checked(
    expressions: &Expressions<'_>,
    text: &Text,
    formula: &str,
) -> Result<Expr, Option<Box<Diagnostic>>> {
    let scope = Scope {
        ops: expressions.table,
        args: &expressions.op.args,
        outputs: &expressions.op.outputs,
        mode: Mode::Derivative,
        locals: &[],
    };
    let mut problems = Diagnostics::new();
    let want = Ty::new(Kind::Tensor).or_none();
    let expr = check(formula, &scope, &want, &|_| text.span(), &mut problems);
    match (problems.sorted().next(), expr) {
        (None, Some(expr)) => Ok(expr),
        (problem, _) => Err(problem.cloned().map(Box::new)),
    }
}

/// The names in an operator's expression, for real or complex computation.
struct Names<'a> {
    op: &'a Op,
    /// The elements of the result.
    output: Element,
    functions: &'a [Function],
    /// Whether elements are complex numbers.
    complex: bool,
}

impl Names<'_> {
    fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|known| known.name == name)
    }

    fn of_element(&self, element: Element) -> Domain {
        match element {
            Element::Fixed { kernel: DType::Bool, .. } => Domain::Plain,
            Element::Fixed { kernel, .. } if kernel.is_complex() => Domain::Complex,
            Element::Fixed { .. } | Element::Real => Domain::Real,
            _ if self.complex => Domain::Complex,
            _ => Domain::Real,
        }
    }
}

fn algebra(text: &str) -> Option<Sym> {
    Sym::read(&parse::tree(text)?)
}

impl Known for Names<'_> {
    fn derivative(&self, function: &str, parameter: usize) -> Option<(Sym, Vec<String>)> {
        let function = self.function(function)?;
        let text = function.derivatives.get(parameter)?.as_ref()?;
        Some((algebra(text)?, function.params.clone()))
    }

    fn wirtinger(&self, function: &str, parameter: usize) -> Option<([Sym; 2], Vec<String>)> {
        let function = self.function(function)?;
        let [by, by_conjugate] = function.wirtinger.get(parameter)?.as_ref()?;
        Some(([algebra(by)?, algebra(by_conjugate)?], function.params.clone()))
    }

    fn signature(&self, function: &str) -> Option<Signature> {
        let function = self.function(function)?;
        let returns = match function.returns {
            FunctionReturn::Element if self.complex => Domain::Complex,
            FunctionReturn::Element | FunctionReturn::Real => Domain::Real,
            FunctionReturn::Bool => Domain::Plain,
        };
        Some(Signature { returns, takes_real: function.takes_real() })
    }

    fn operator(&self, function: &str) -> String {
        let operator = self.function(function).and_then(|function| function.operator.clone());
        operator.unwrap_or_else(|| function.to_owned())
    }

    fn result(&self) -> Domain {
        self.of_element(self.output)
    }

    fn domain(&self, name: &str) -> Domain {
        if name == "result" && self.op.arg_index(name).is_none() {
            return self.of_element(self.output);
        }
        match self.op.arg_index(name).map(|index| &self.op.args[index]) {
            Some(arg) if arg.ty.holds_tensors() => self.of_element(arg.element),
            Some(arg) if arg.ty.kind == Kind::Scalar && self.complex => Domain::Scalar,
            _ => Domain::Plain,
        }
    }

    fn is_integer(&self, name: &str) -> bool {
        self.op.args.iter().any(|arg| arg.name == name && arg.ty.kind == Kind::Int)
    }

    fn is_tensor(&self, name: &str) -> bool {
        name == "result" || self.op.args.iter().any(|arg| arg.name == name && arg.ty.holds_tensors())
    }
}
