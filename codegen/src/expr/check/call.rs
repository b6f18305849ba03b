//! Calls by name: scalar functions, inference rules, hand-written Rust functions. Calls of operators
//! are in `overload`, of methods in `query`.

use std::ops::Range;

use opsmith_core::rules::{DTYPE_RULES, Rule, RuleParam, SHAPE_RULES};

use super::{Checker, Mode};
use crate::diagnostics::catalogue;
use crate::expr::path;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{FunctionReturn, Kind, Ty};

/// The arguments of a call.
pub(super) struct Given {
    pub positional: Vec<Expr>,
    pub named: Vec<Named>,
}

/// An argument given by name: `keepdim = true`.
pub(super) struct Named {
    pub name: String,
    pub value: Expr,
    /// The bytes of the name.
    pub place: Range<usize>,
}

impl Checker<'_> {
    pub(super) fn call(&mut self, call: &syn::ExprCall, range: Range<usize>) -> Option<Expr> {
        let place = self.places.of(&call.func);
        let syn::Expr::Path(path) = &*call.func else {
            return self.refuse(catalogue::call_of_no_name(self.at(&place)));
        };
        let refusal: Option<fn(String) -> ExprKind> = match () {
            () if !matches!(self.scope.mode, Mode::Derivative | Mode::Forward) => None,
            () if path.path.is_ident("not_implemented") => Some(ExprKind::NotImplemented),
            () if path.path.is_ident("opaque") => Some(ExprKind::Opaque),
            () => None,
        };
        if let Some(kind) = refusal {
            return self.refusal(kind, call, range);
        }
        let given = self.arguments(call.args.iter());
        let Some(name) = path.path.get_ident().map(ToString::to_string) else {
            return self.native(&path.path, given?, place, range);
        };
        match self.scope.mode {
            Mode::Shape | Mode::Operations => self.rule(&name, SHAPE_RULES, given?, place, range),
            Mode::DType => self.rule(&name, DTYPE_RULES, given?, place, range),
            Mode::Pointwise | Mode::FunctionDerivative => self.function(&name, given?, place, range),
            Mode::Check => self.refuse(catalogue::call_in_condition(self.at(&place), &name)),
            Mode::Derivative | Mode::Forward | Mode::Decompose => {
                self.overloaded(&name, given?, place, range)
            }
        }
    }

    pub(super) fn arguments<'t>(&mut self, args: impl Iterator<Item = &'t syn::Expr>) -> Option<Given> {
        let mut given = Given { positional: Vec::new(), named: Vec::new() };
        let mut fine = Some(());
        for arg in args {
            match arg {
                syn::Expr::Assign(assign) => {
                    let place = self.places.of(&assign.left);
                    let name = match &*assign.left {
                        syn::Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
                        _ => None,
                    };
                    let value = self.expr(&assign.right);
                    match (name, value) {
                        (Some(name), Some(value)) => given.named.push(Named { name, value, place }),
                        (Some(_), None) => fine = None,
                        (None, _) => {
                            let span = self.at(&place);
                            fine = self
                                .refuse(catalogue::syntax_without_meaning(span, "not an argument's name"));
                        }
                    }
                }
                other => match self.expr(other) {
                    Some(value) if given.named.is_empty() => given.positional.push(value),
                    Some(value) => {
                        fine = self.refuse(catalogue::positional_after_named(self.at(&value.range)));
                    }
                    None => fine = None,
                },
            }
        }
        fine.map(|()| given)
    }

    /// The positional arguments of a function without names for them.
    pub(super) fn unnamed(&mut self, given: Given) -> Option<Vec<Expr>> {
        match given.named.first() {
            Some(named) => self.refuse(catalogue::named_argument_not_here(self.at(&named.place))),
            None => Some(given.positional),
        }
    }

    /// `not_implemented("why")` and `opaque("a formula in another language")`.
    fn refusal(
        &mut self,
        kind: fn(String) -> ExprKind,
        call: &syn::ExprCall,
        range: Range<usize>,
    ) -> Option<Expr> {
        let callee = &call.func;
        let name = quote::quote!(#callee).to_string();
        let mut args = call.args.iter();
        let reason = match (args.next(), args.next()) {
            (Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })), None) => text.value(),
            _ => return self.refuse(catalogue::not_implemented_without_reason(self.at(&range), &name)),
        };
        Some(Expr { kind: kind(reason), ty: Ty::new(Kind::Tensor), range })
    }

    fn native(
        &mut self,
        path: &syn::Path,
        given: Given,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let ty = match self.scope.mode {
            Mode::Shape => Kind::Ints(None),
            Mode::Operations => Kind::Int,
            Mode::DType => Kind::DType,
            Mode::Check => Kind::Bool,
            // Sizes, dimensions and similar results have this type; `coerce` converts it to another plain type if one
            // is required.
            Mode::Derivative | Mode::Forward | Mode::Decompose => Kind::Ints(None),
            Mode::Pointwise | Mode::FunctionDerivative => {
                return self.refuse(catalogue::native_not_here(self.at(&place)));
            }
        };
        let args = self.unnamed(given)?;
        let text: String = quote::quote!(#path).to_string().split_whitespace().collect();
        if let Err(problem) = path::check(&text) {
            // The text is the path with blanks removed.
            let place = match place.len() == text.len() {
                true => place.start + problem.range.start..place.start + problem.range.end,
                false => place,
            };
            return self.refuse(catalogue::path_malformed(self.at(&place), problem.label, "kernels crate"));
        }
        Some(Expr { kind: ExprKind::Native(text, args), ty: Ty::new(ty), range })
    }

    fn rule(
        &mut self,
        name: &str,
        table: &'static [Rule],
        given: Given,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let Some(&rule) = table.iter().find(|rule| rule.name() == name) else {
            let known: Vec<&str> = table.iter().map(|rule| rule.name()).collect();
            return self.refuse(catalogue::rule_unknown(self.at(&place), name, &known));
        };
        let args = self.unnamed(given)?;
        let args = match rule.params() {
            [RuleParam::Operands] => self.operands(rule, args, &range)?,
            params => {
                if args.len() != params.len() {
                    let span = self.at(&range);
                    let types: Vec<String> =
                        params.iter().map(|param| parameter_type(*param).to_string()).collect();
                    let hint = format!("`{name}({})` gives {}", types.join(", "), rule.doc());
                    let what = format!("`{name}`");
                    let found = args.len();
                    return self.refuse(catalogue::argument_count(
                        span,
                        &what,
                        params.len(),
                        found,
                        Some(&hint),
                    ));
                }
                let args: Vec<Option<Expr>> = args
                    .into_iter()
                    .zip(params)
                    .map(|(arg, param)| self.coerce_or_report(arg, &parameter_type(*param)))
                    .collect();
                args.into_iter().collect::<Option<Vec<_>>>()?
            }
        };
        Some(Expr::rule(rule, args, range))
    }

    /// The operands of a rule with any number of them: tensors, and numbers in rules for dtypes.
    fn operands(&mut self, rule: Rule, args: Vec<Expr>, range: &Range<usize>) -> Option<Vec<Expr>> {
        let numbers = matches!(rule, Rule::DType(_));
        if args.is_empty() {
            return self.refuse(catalogue::rule_without_operands(self.at(range), rule.name()));
        }
        let mut fine = Some(());
        for arg in &args {
            let looks_at = match arg.ty.kind {
                Kind::Tensor | Kind::Tensors => true,
                Kind::Scalar | Kind::Int | Kind::Float | Kind::Bool => numbers,
                _ => false,
            };
            if !looks_at {
                let span = self.at(&arg.range);
                fine = self.refuse(catalogue::rule_operand(span, rule.name(), &arg.ty.to_string(), numbers));
            }
        }
        fine.map(|()| args)
    }

    fn function(
        &mut self,
        name: &str,
        given: Given,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let Some((id, function)) = self.scope.ops.function(name) else {
            if self.scope.ops.is_broken(name) {
                return None;
            }
            let known: Vec<&str> =
                self.scope.ops.functions().iter().map(|function| function.name.as_str()).collect();
            return self.refuse(catalogue::function_unknown(self.at(&place), name, &known));
        };
        let args = self.unnamed(given)?;
        let want = function.params.len();
        if args.len() != want {
            let (span, what) = (self.at(&range), format!("`{name}`"));
            return self.refuse(catalogue::argument_count(span, &what, want, args.len(), None));
        }
        let returns = match function.returns {
            FunctionReturn::Element => Kind::Element,
            FunctionReturn::Real => Kind::RealElement,
            FunctionReturn::Bool => Kind::Bool,
        };
        // Masks keep their type: logic on them is intended.
        let on_masks = !args.is_empty() && args.iter().all(|arg| arg.ty.kind == Kind::Bool);
        // So do real numbers, if the function is defined on them.
        let is_real = |arg: &Expr| matches!(arg.ty.kind, Kind::Int | Kind::Float | Kind::RealElement);
        let beside_real = |arg: &Expr| is_real(arg) || arg.ty.kind == Kind::Scalar;
        let on_reals = self.scope.mode == Mode::Pointwise
            && function.takes_real()
            && (args.iter().all(is_real)
                || args.iter().all(beside_real) && args.iter().any(|arg| arg.ty.kind == Kind::RealElement));
        let (want, returns) = match returns {
            _ if on_masks => (Kind::Bool, Kind::Bool),
            Kind::Element if on_reals => (Kind::RealElement, Kind::RealElement),
            other if on_reals => (Kind::RealElement, other),
            other => (Kind::Element, other),
        };
        let want = Ty::new(want);
        let args: Vec<Option<Expr>> = args.into_iter().map(|arg| self.coerce_or_report(arg, &want)).collect();
        let args = args.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Expr { kind: ExprKind::Function(id, args), ty: Ty::new(returns), range })
    }
}

fn parameter_type(param: RuleParam) -> Ty {
    match param {
        RuleParam::Operands | RuleParam::Tensor => Ty::new(Kind::Tensor),
        RuleParam::Tensors => Ty::new(Kind::Tensors),
        RuleParam::Int => Ty::new(Kind::Int),
        RuleParam::Ints => Ty::new(Kind::Ints(None)),
        RuleParam::OptionalInts => Ty::new(Kind::Ints(None)).or_none(),
        RuleParam::Bool => Ty::new(Kind::Bool),
        RuleParam::OptionalDType => Ty::new(Kind::DType).or_none(),
    }
}
