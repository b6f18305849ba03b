//! Name resolution.

use std::ops::Range;

use opsmith_core::DType;

use super::{Checker, Mode};
use crate::diagnostics::catalogue;
use crate::model::expr::{Expr, ExprKind, IMAGINARY_UNIT, Variable};
use crate::model::{Arg, Element, Kind, Output, Ty};

/// Names defined everywhere.
const CONSTANTS: [(&str, f64); 3] = [("inf", f64::INFINITY), ("nan", f64::NAN), ("pi", std::f64::consts::PI)];

impl Checker<'_> {
    pub(super) fn name(&mut self, path: &syn::ExprPath, range: Range<usize>) -> Option<Expr> {
        let Some(ident) = path.path.get_ident() else {
            return self.refuse(catalogue::path_is_no_value(self.at(&range)));
        };
        let name = ident.to_string();
        if let Some((kind, ty)) = self.lookup(&name) {
            return Some(Expr { kind, ty, range });
        }
        let known = self.known_names();
        let span = self.at(&range);
        let gradients = self.scope.mode == Mode::Derivative;
        match name.as_str() {
            "result" if gradients && self.scope.outputs.len() > 1 => {
                let results: Vec<String> = self.result_names();
                self.refuse(catalogue::result_of_several(span, &results))
            }
            "grad" if gradients => self.refuse(catalogue::gradient_of_list(span)),
            _ => self.refuse(catalogue::name_unknown(span, &name, &known)),
        }
    }

    fn lookup(&self, name: &str) -> Option<(ExprKind, Ty)> {
        if let Some((_, ty)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Some((ExprKind::Variable(Variable::Local(name.to_owned())), ty.clone()));
        }
        if let Some(index) = self.scope.args.iter().position(|arg| arg.name == name) {
            return Some((ExprKind::Variable(Variable::Arg(index)), self.arg_type(&self.scope.args[index])));
        }
        match self.scope.mode {
            Mode::Derivative => {
                if let Some((variable, ty)) = self.gradient_name(name) {
                    return Some((ExprKind::Variable(variable), ty));
                }
            }
            Mode::Forward => {
                if let Some((variable, ty)) = self.tangent_name(name) {
                    return Some((ExprKind::Variable(variable), ty));
                }
            }
            Mode::FunctionDerivative if name == "result" => {
                return Some((ExprKind::Variable(Variable::Result(0)), Ty::new(Kind::Element)));
            }
            _ => {}
        }
        match name {
            "None" => return Some((ExprKind::None, Ty::new(Kind::None))),
            "True" => return Some((ExprKind::Bool(true), Ty::new(Kind::Bool))),
            "False" => return Some((ExprKind::Bool(false), Ty::new(Kind::Bool))),
            _ => {}
        }
        let in_formulas = matches!(
            self.scope.mode,
            Mode::Derivative | Mode::Forward | Mode::Decompose | Mode::FunctionDerivative
        );
        if name == IMAGINARY_UNIT && in_formulas {
            return Some((ExprKind::Imaginary, Ty::new(Kind::Scalar)));
        }
        if let Some((_, value)) = CONSTANTS.iter().find(|(known, _)| *known == name) {
            return Some((ExprKind::Float(*value), Ty::new(Kind::Float)));
        }
        DType::from_name(name).map(|dtype| (ExprKind::DType(dtype), Ty::new(Kind::DType)))
    }

    fn arg_type(&self, arg: &Arg) -> Ty {
        if !self.scope.mode.is_elementwise() || arg.ty.kind != Kind::Tensor {
            return arg.ty.clone();
        }
        Ty::new(match arg.element {
            Element::Fixed { kernel: DType::Bool, .. } => Kind::Bool,
            Element::Real => Kind::RealElement,
            _ => Kind::Element,
        })
    }

    fn gradient_name(&self, name: &str) -> Option<(Variable, Ty)> {
        let outputs = self.scope.outputs;
        let tensor_at = |index: usize| outputs.get(index).map(|output| output.ty.clone());
        let named = |wanted: &str| outputs.iter().position(|output| output.name.as_deref() == Some(wanted));
        // The gradients of a list are a list with optional items.
        let is_list = matches!(outputs, [only] if only.ty.kind == Kind::Tensors);
        match name {
            "grad" if !is_list => return Some((Variable::Grad(0), tensor_at(0)?)),
            "grads" => return Some((Variable::Grads, Ty::new(Kind::OptionalTensors))),
            "result" if outputs.len() == 1 => return Some((Variable::Result(0), tensor_at(0)?)),
            "grad_input_mask" => return Some((Variable::GradInputMask, Ty::new(Kind::Bools(None)))),
            _ => {}
        }
        if let Some(index) = named(name) {
            return Some((Variable::Result(index), tensor_at(index)?));
        }
        if let Some(index) = name.strip_prefix("grad_").and_then(named) {
            return Some((Variable::Grad(index), tensor_at(index)?.or_none()));
        }
        let index: usize = name.strip_prefix("result")?.parse().ok()?;
        Some((Variable::Result(index), tensor_at(index)?))
    }

    /// `self_t`, the tangent of an argument; `self_p`, the argument itself; `result`, an output.
    fn tangent_name(&self, name: &str) -> Option<(Variable, Ty)> {
        let argument = |name: &str| {
            let index = self.scope.args.iter().position(|arg| arg.name == name)?;
            let arg = &self.scope.args[index];
            arg.ty.holds_tensors().then_some((index, arg))
        };
        if let Some((index, arg)) = name.strip_suffix("_t").and_then(argument) {
            // A missing tangent counts as zeros beside others.
            let kind = if arg.ty.kind == Kind::Tensor { Kind::Tensor } else { Kind::Tensors };
            return Some((Variable::Tangent(index), Ty::new(kind)));
        }
        if let Some((index, arg)) = name.strip_suffix("_p").and_then(argument) {
            return Some((Variable::Arg(index), arg.ty.clone()));
        }
        match self.gradient_name(name) {
            Some((variable @ Variable::Result(_), ty)) => Some((variable, ty)),
            _ => None,
        }
    }

    /// `grads[i]`: the gradient of output `i`, which may be absent.
    pub(super) fn grads_index(&mut self, index: &syn::ExprIndex, range: Range<usize>) -> Option<Expr> {
        let position = self.expr(&index.index)?;
        let outputs = self.scope.outputs;
        match position.kind {
            ExprKind::Int(value) if (0..outputs.len() as i64).contains(&value) => {
                let ty = outputs[value as usize].ty.clone().or_none();
                Some(Expr { kind: ExprKind::Variable(Variable::Grad(value as usize)), ty, range })
            }
            _ => self.refuse(catalogue::gradient_unknown(self.at(&position.range), outputs.len())),
        }
    }

    fn known_names(&self) -> Vec<String> {
        let locals = self.locals.iter().map(|(name, _)| name.clone());
        locals.chain(names(self.scope.mode, self.scope.args, self.scope.outputs)).collect()
    }

    fn result_names(&self) -> Vec<String> {
        result_names(self.scope.outputs)
    }
}

/// The names of arguments, results and gradients in an expression of a kind; constants, dtypes and local names are further
/// ones.
pub fn names(mode: Mode, args: &[Arg], outputs: &[Output]) -> Vec<String> {
    let mut names: Vec<String> = args.iter().map(|arg| arg.name.clone()).collect();
    match mode {
        Mode::Derivative => {
            names.push("grad".into());
            let results = result_names(outputs);
            if results.len() > 1 {
                names.push("grads".into());
                let named = outputs.iter().filter_map(|output| output.name.as_ref());
                names.extend(named.map(|name| format!("grad_{name}")));
            }
            names.extend(results);
        }
        Mode::Forward => {
            let tensors = args.iter().filter(|arg| arg.ty.holds_tensors());
            names.extend(tensors.map(|arg| format!("{}_t", arg.name)));
            names.extend(result_names(outputs));
        }
        Mode::FunctionDerivative => names.push("result".into()),
        _ => {}
    }
    names
}

fn result_names(outputs: &[Output]) -> Vec<String> {
    let name = |(index, name): (usize, Option<&String>)| match name {
        Some(name) => name.clone(),
        None if outputs.len() == 1 => "result".to_owned(),
        None => format!("result{index}"),
    };
    outputs.iter().map(|output| output.name.as_ref()).enumerate().map(name).collect()
}

/// The spans of a gradient used both as optional and as present.
pub(super) fn mixed_gradients(expr: &Expr) -> Option<(Range<usize>, Range<usize>)> {
    let mut seen: Vec<(usize, bool, Range<usize>)> = Vec::new();
    expr.walk(&mut |part| {
        if let ExprKind::Variable(Variable::Grad(index)) = part.kind {
            seen.push((index, part.ty.optional, part.range.clone()));
        }
    });
    seen.iter().filter(|(_, optional, _)| *optional).find_map(|(index, _, range)| {
        let other = seen.iter().find(|(other, optional, _)| other == index && !optional)?;
        Some((range.clone(), other.2.clone()))
    })
}
