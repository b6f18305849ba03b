//! Calls: operators by name and overload, scalar functions, inference rules, questions about
//! metadata, hand-written Rust functions.

use std::ops::Range;

use opsmith_core::rules::{self, Rule, RuleParam};

use super::operators::cost;
use super::{Checker, Mode};
use crate::diagnostics::nearest;
use crate::expr::{Expr, ExprKind, QUERIES, Query};
use crate::model::{Default, FunctionId, FunctionReturn, Kind, OpId, Ty};

/// An argument given by name: `keepdim = true`.
type Named = (String, Expr);

impl Checker<'_> {
    pub(super) fn call(&mut self, call: &syn::ExprCall, range: Range<usize>) -> Option<Expr> {
        let syn::Expr::Path(path) = &*call.func else {
            let place = self.places.of(&call.func);
            self.report("E0302", "only names can be called", place, "not a name");
            return None;
        };
        let place = self.places.of(&call.func);
        if path.path.is_ident("not_implemented") && self.scope.mode == Mode::Derivative {
            return self.not_implemented(call, range);
        }
        let (args, named) = self.arguments(call.args.iter())?;
        if path.path.segments.len() > 1 {
            let text: Vec<String> =
                path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            return self.native(text.join("::"), args, place, range);
        }
        let name = path.path.get_ident()?.to_string();
        match self.scope.mode {
            Mode::Shape => match rules::shape_rule(&name) {
                Some(rule) => self.rule(rule, args, Ty::new(Kind::Ints(None)), range),
                None => {
                    self.unknown_call(&name, place, rules::SHAPE_RULES.iter().map(|rule| rule.name).collect())
                }
            },
            Mode::DType => match rules::dtype_rule(&name) {
                Some(rule) => self.rule(rule, args, Ty::new(Kind::DType), range),
                None => {
                    self.unknown_call(&name, place, rules::DTYPE_RULES.iter().map(|rule| rule.name).collect())
                }
            },
            Mode::Pointwise => self.function(&name, args, place, range),
            Mode::Check => self.unknown_call(&name, place, Vec::new()),
            Mode::Derivative | Mode::Decompose => self.overloaded(&name, args, named, place, range),
        }
    }

    pub(super) fn method(&mut self, call: &syn::ExprMethodCall, range: Range<usize>) -> Option<Expr> {
        let name = call.method.to_string();
        let place = self.places.of(&call.method);
        let receiver = self.expr(&call.receiver);
        let arguments = self.arguments(call.args.iter());
        let (receiver, (mut args, named)) = (receiver?, arguments?);
        if let Some(query) = Self::query(&name)
            && let Some(ty) = query_type(query, &receiver.ty)
        {
            return self.query_call(query, ty, receiver, args, range);
        }
        if receiver.ty.kind == Kind::Tensor && matches!(self.scope.mode, Mode::Derivative | Mode::Decompose) {
            args.insert(0, receiver);
            return self.overloaded(&name, args, named, place, range);
        }
        let known: Vec<&str> = QUERIES
            .iter()
            .filter(|row| query_type(row.query, &receiver.ty).is_some())
            .map(|row| row.name)
            .collect();
        let help = match nearest(&name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("a `{}` has: {}", receiver.ty, known.join(", ")),
        };
        let label = format!("not a method of `{}` here", receiver.ty);
        self.report("E0320", format!("there is no method `{name}`"), place, label).help(help);
        None
    }

    fn arguments<'t>(
        &mut self,
        args: impl Iterator<Item = &'t syn::Expr>,
    ) -> Option<(Vec<Expr>, Vec<Named>)> {
        let (mut positional, mut named, mut failed) = (Vec::new(), Vec::new(), false);
        for arg in args {
            match arg {
                syn::Expr::Assign(assign) => {
                    let name = match &*assign.left {
                        syn::Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
                        _ => None,
                    };
                    match (name, self.expr(&assign.right)) {
                        (Some(name), Some(value)) => named.push((name, value)),
                        _ => failed = true,
                    }
                }
                other => match self.expr(other) {
                    Some(value) if named.is_empty() => positional.push(value),
                    Some(value) => {
                        self.report(
                            "E0321",
                            "a positional argument follows a named one",
                            value.range,
                            "give it by name, or first",
                        );
                        failed = true;
                    }
                    None => failed = true,
                },
            }
        }
        (!failed).then_some((positional, named))
    }

    fn not_implemented(&mut self, call: &syn::ExprCall, range: Range<usize>) -> Option<Expr> {
        let reason = match call.args.first() {
            Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) => text.value(),
            _ => {
                self.report(
                    "E0322",
                    "`not_implemented` needs a reason",
                    range,
                    "write `not_implemented(\"why\")`",
                );
                return None;
            }
        };
        Some(Expr { kind: ExprKind::NotImplemented(reason), ty: Ty::new(Kind::Tensor), range })
    }

    fn unknown_call(&mut self, name: &str, place: Range<usize>, known: Vec<&'static str>) -> Option<Expr> {
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => {
                "conditions can use methods such as `size`, `dim` and `dtype`".to_owned()
            }
            None => format!("the rules are: {}; or name a Rust function by its path", known.join(", ")),
        };
        self.report("E0323", format!("there is no rule `{name}`"), place, "unknown").help(help);
        None
    }

    fn native(
        &mut self,
        path: String,
        args: Vec<Expr>,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let ty = match self.scope.mode {
            Mode::Shape => Kind::Ints(None),
            Mode::DType => Kind::DType,
            Mode::Check => Kind::Bool,
            // What sizes, dimensions and the like are made into; `coerce` gives it another plain type
            // where one is wanted.
            Mode::Derivative | Mode::Decompose => Kind::Ints(None),
            Mode::Pointwise => {
                self.report(
                    "E0324",
                    "a Rust function cannot be called here",
                    place,
                    "a kernel for every backend is made from this expression",
                )
                .help("declare a scalar function under `functions:`");
                return None;
            }
        };
        Some(Expr { kind: ExprKind::Native(path, args), ty: Ty::new(ty), range })
    }

    fn rule(&mut self, rule: &'static Rule, args: Vec<Expr>, ty: Ty, range: Range<usize>) -> Option<Expr> {
        let kind = ExprKind::Rule(rule.name, args);
        let ExprKind::Rule(_, args) = kind else { return None };
        if let [RuleParam::Operands] = rule.params {
            if args.is_empty() {
                self.report("E0325", format!("`{}` needs operands", rule.name), range, "none given");
                return None;
            }
            return Some(Expr { kind: ExprKind::Rule(rule.name, args), ty, range });
        }
        if args.len() != rule.params.len() {
            let (want, found) = (rule.params.len(), args.len());
            self.report(
                "E0325",
                format!("`{}` takes {want} arguments", rule.name),
                range,
                format!("{found} given"),
            )
            .help(format!("it gives {}", rule.doc));
            return None;
        }
        let mut converted = Vec::new();
        for (arg, param) in args.into_iter().zip(rule.params) {
            let want = match param {
                RuleParam::Operands | RuleParam::Tensor => Ty::new(Kind::Tensor),
                RuleParam::Tensors => Ty::new(Kind::Tensors),
                RuleParam::Int => Ty::new(Kind::Int),
                RuleParam::Ints => Ty::new(Kind::Ints(None)),
                RuleParam::OptionalInts => Ty::new(Kind::Ints(None)).or_none(),
                RuleParam::Bool => Ty::new(Kind::Bool),
                RuleParam::OptionalDType => Ty::new(Kind::DType).or_none(),
            };
            converted.push(self.coerce_or_report(arg, &want)?);
        }
        Some(Expr { kind: ExprKind::Rule(rule.name, converted), ty, range })
    }

    fn function(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let Some(index) = self.scope.functions.iter().position(|function| function.name == name) else {
            let near = nearest(name, self.scope.functions.iter().map(|function| function.name.as_str()));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "pointwise expressions call scalar functions; declare one under `functions:`".to_owned()
                }
            };
            self.report("E0326", format!("there is no scalar function `{name}`"), place, "unknown")
                .help(help);
            return None;
        };
        let function = &self.scope.functions[index];
        if args.len() != function.params.len() {
            let want = function.params.len();
            self.report(
                "E0325",
                format!("`{name}` takes {want} arguments"),
                range,
                format!("{} given", args.len()),
            );
            return None;
        }
        let returns = match function.returns {
            FunctionReturn::Element => Kind::Element,
            FunctionReturn::Real => Kind::RealElement,
            FunctionReturn::Bool => Kind::Bool,
        };
        let mut converted = Vec::new();
        for arg in args {
            // A truth value keeps its type: logic on masks is meant as such.
            let want = if arg.ty.kind == Kind::Bool { Ty::new(Kind::Bool) } else { Ty::new(Kind::Element) };
            converted.push(self.coerce_or_report(arg, &want)?);
        }
        Some(Expr { kind: ExprKind::Function(FunctionId(index), converted), ty: Ty::new(returns), range })
    }

    /// A call of an operator by base name: the overload whose types fit best, the first on a tie.
    fn overloaded(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        named: Vec<Named>,
        place: Range<usize>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let overloads = self.scope.ops.overloads(name);
        if overloads.is_empty() {
            let near = nearest(name, self.scope.ops.bases());
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "formulas call operators of this spec and of the libraries it builds on".to_owned(),
            };
            self.report("E0327", format!("there is no operator `{name}`"), place, "unknown").help(help);
            return None;
        }
        let mut best: Option<(usize, usize)> = None;
        for &index in overloads {
            if let Some(total) = self.overload_cost(index, &args, &named)
                && best.is_none_or(|(least, _)| total < least)
            {
                best = Some((total, index));
            }
        }
        if let Some((_, index)) = best {
            return self.op_call(OpId(index), args, named, range);
        }
        let given: Vec<String> = args
            .iter()
            .map(|arg| arg.ty.to_string())
            .chain(named.iter().map(|(name, value)| format!("{name} = {}", value.ty)))
            .collect();
        let candidates: Vec<String> =
            overloads.iter().map(|&index| format!("`{}`", self.scope.ops.ops()[index].signature)).collect();
        self.report(
            "E0328",
            format!("no overload of `{name}` takes these arguments"),
            range,
            format!("({})", given.join(", ")),
        )
        .help(format!("there is {}", candidates.join(" and ")));
        None
    }

    fn overload_cost(&self, index: usize, args: &[Expr], named: &[Named]) -> Option<usize> {
        let op = &self.scope.ops.ops()[index];
        if args.len() > op.args.len() {
            return None;
        }
        let mut total = 0;
        for (position, param) in op.args.iter().enumerate() {
            let given = args
                .get(position)
                .or_else(|| named.iter().find(|(name, _)| *name == param.name).map(|(_, value)| value));
            match given {
                Some(value) => total += cost(self.fit(value, &param.ty))?,
                None if param.default.is_some() => {}
                None => return None,
            }
        }
        let all_known =
            named.iter().all(|(name, _)| op.arg_index(name).is_some_and(|position| position >= args.len()));
        all_known.then_some(total)
    }

    /// The call with every argument in place: given, or the default.
    pub(super) fn op_call(
        &mut self,
        id: OpId,
        args: Vec<Expr>,
        named: Vec<Named>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let op = &self.scope.ops.ops()[id.0];
        let mut given = args.into_iter();
        let mut named = named;
        let mut complete = Vec::new();
        for param in &op.args {
            let value = given.next().or_else(|| {
                let position = named.iter().position(|(name, _)| *name == param.name)?;
                Some(named.swap_remove(position).1)
            });
            let value = match value {
                Some(value) => value,
                None => default_expr(param.default.as_ref()?, range.clone()),
            };
            complete.push(self.coerce_or_report(value, &param.ty)?);
        }
        Some(Expr { kind: ExprKind::Op(id, complete), ty: op.result_type(), range })
    }

    fn query_call(
        &mut self,
        query: Query,
        ty: Ty,
        receiver: Expr,
        args: Vec<Expr>,
        range: Range<usize>,
    ) -> Option<Expr> {
        let wanted: Vec<Ty> = match query {
            Query::Size | Query::Contains | Query::SizesAlong => vec![Ty::new(Kind::Int)],
            Query::Concat => vec![Ty::new(Kind::Ints(None))],
            Query::UnwrapOr => vec![receiver.ty.required()],
            _ => Vec::new(),
        };
        if args.len() != wanted.len() {
            let label = format!("{} given", args.len());
            self.report("E0325", format!("this method takes {} arguments", wanted.len()), range, label);
            return None;
        }
        let args: Vec<Option<Expr>> =
            args.into_iter().zip(&wanted).map(|(arg, want)| self.coerce_or_report(arg, want)).collect();
        let args = args.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Expr { kind: ExprKind::Query(query, Box::new(receiver), args), ty, range })
    }
}

/// A default as the expression a caller would have written.
fn default_expr(default: &Default, range: Range<usize>) -> Expr {
    let list = |items: Vec<ExprKind>, item: Kind, list: Kind| {
        let items = items
            .into_iter()
            .map(|kind| Expr { kind, ty: Ty::new(item.clone()), range: range.clone() })
            .collect();
        (ExprKind::List(items), list)
    };
    let (kind, ty) = match default {
        Default::None => (ExprKind::None, Kind::None),
        Default::Bool(value) => (ExprKind::Bool(*value), Kind::Bool),
        Default::Int(value) => (ExprKind::Int(*value), Kind::Int),
        Default::Float(value) => (ExprKind::Float(*value), Kind::Float),
        Default::Str(value) => (ExprKind::Str(value.clone()), Kind::Str),
        Default::DType(value) => (ExprKind::DType(*value), Kind::DType),
        Default::Ints(values) => {
            list(values.iter().map(|value| ExprKind::Int(*value)).collect(), Kind::Int, Kind::Ints(None))
        }
        Default::Floats(values) => {
            list(values.iter().map(|value| ExprKind::Float(*value)).collect(), Kind::Float, Kind::Floats)
        }
        Default::Bools(values) => {
            list(values.iter().map(|value| ExprKind::Bool(*value)).collect(), Kind::Bool, Kind::Bools(None))
        }
        Default::MemoryFormat(name) => (ExprKind::Str((*name).to_owned()), Kind::MemoryFormat),
    };
    Expr { kind, ty: Ty::new(ty), range }
}

/// The type of a question's answer, if the receiver has that question.
fn query_type(query: Query, receiver: &Ty) -> Option<Ty> {
    let tensor = receiver.is_tensor();
    let dtype = *receiver == Ty::new(Kind::DType);
    let list = !receiver.optional
        && matches!(
            receiver.kind,
            Kind::Ints(_)
                | Kind::Floats
                | Kind::Bools(_)
                | Kind::Tensors
                | Kind::OptionalTensors
                | Kind::Scalars
        );
    let number = receiver.is_number();
    let ints = !receiver.optional && matches!(receiver.kind, Kind::Ints(_));
    let kind = match query {
        Query::Sizes | Query::Strides if tensor => Kind::Ints(None),
        Query::Size | Query::Dim | Query::Numel | Query::StorageOffset if tensor => Kind::Int,
        Query::IsContiguous if tensor => Kind::Bool,
        Query::DType if tensor => Kind::DType,
        Query::Device if tensor => Kind::Device,
        Query::IsComplex | Query::IsFloat | Query::IsInt if tensor || dtype => Kind::Bool,
        Query::Len if list => Kind::Int,
        Query::SizesAlong if *receiver == Ty::new(Kind::Tensors) => Kind::Ints(None),
        Query::IsSome | Query::IsNone if receiver.optional => Kind::Bool,
        Query::Unwrap | Query::UnwrapOr if receiver.optional => return Some(receiver.required()),
        Query::Conj if number => return Some(receiver.clone()),
        Query::IsZero if number => Kind::Bool,
        Query::Contains if ints => Kind::Bool,
        Query::Concat if ints => Kind::Ints(None),
        _ => return None,
    };
    Some(Ty::new(kind))
}
