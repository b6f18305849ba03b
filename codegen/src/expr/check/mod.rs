//! Resolves names and types of a parsed expression.
//!
//! In: a syntax tree, the place it stands in ([`Mode`]), the operator it belongs to. Out: a typed
//! tree, or diagnostics for everything that is wrong with it.

mod call;
mod coerce;
mod operators;

use std::ops::Range;

use opsmith_core::DType;
use syn::{Lit, Stmt};

use super::parse::{self, Places};
use super::{Expr, ExprKind, QUERIES, Query, Variable};
use crate::diagnostics::{Diagnostic, Diagnostics, Span, nearest};
use crate::model::{Arg, Element, Function, Kind, Op, Output, Ty};

/// The kinds of places an expression can stand in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// `shape:`: gives sizes.
    Shape,
    /// `dtype:` and `compute:`: give a dtype.
    DType,
    /// `check:`: gives a truth value.
    Check,
    /// `pointwise:`: gives one element.
    Pointwise,
    /// `derivatives:`: gives gradients.
    Derivative,
    /// `decompose:`: gives the operator's results.
    Decompose,
}

/// What an expression may refer to.
pub struct Scope<'a> {
    /// Every operator, for calls.
    pub ops: &'a OpTable<'a>,
    /// Every scalar function.
    pub functions: &'a [Function],
    /// The arguments of the operator the expression belongs to.
    pub args: &'a [Arg],
    /// Its results.
    pub outputs: &'a [Output],
    /// Where the expression stands.
    pub mode: Mode,
}

/// Operators by base name.
pub struct OpTable<'a> {
    ops: &'a [Op],
    by_base: std::collections::HashMap<&'a str, Vec<usize>>,
}

impl<'a> OpTable<'a> {
    /// Sorts operators by base name.
    pub fn new(ops: &'a [Op]) -> OpTable<'a> {
        let mut by_base: std::collections::HashMap<&str, Vec<usize>> = std::collections::HashMap::new();
        for (index, op) in ops.iter().enumerate() {
            by_base.entry(&op.base).or_default().push(index);
        }
        OpTable { ops, by_base }
    }

    /// The operators, in order.
    pub fn ops(&self) -> &'a [Op] {
        self.ops
    }

    /// The overloads of a base name. One that is a Rust keyword is called by its Rust function, which
    /// has an underscore: `where_`.
    pub fn overloads(&self, base: &str) -> &[usize] {
        let keyword = || base.strip_suffix('_').filter(|name| syn::parse_str::<syn::Ident>(name).is_err());
        let found = self.by_base.get(base).or_else(|| self.by_base.get(keyword()?));
        found.map_or(&[], Vec::as_slice)
    }

    /// Every base name.
    pub fn bases(&self) -> impl Iterator<Item = &'a str> {
        let mut bases: Vec<&str> = self.by_base.keys().copied().collect();
        bases.sort_unstable();
        bases.into_iter()
    }
}

/// Parses and checks one expression; `want` is the type its place needs.
///
/// Mistakes go to `diagnostics`, at the places `locate` gives for bytes of the text.
pub fn check(
    text: &str,
    scope: &Scope<'_>,
    want: &Ty,
    locate: &dyn Fn(Range<usize>) -> Span,
    diagnostics: &mut Diagnostics,
) -> Option<Expr> {
    let places = Places::new(text);
    let tree = match parse::parse(text, &places) {
        Ok(tree) => tree,
        Err(error) => {
            diagnostics.push(Diagnostic::error(
                "E0301",
                "this is not an expression",
                locate(error.range),
                error.message,
            ));
            return None;
        }
    };
    let mut checker = Checker { scope, places: &places, locate, diagnostics, locals: Vec::new() };
    let found = checker.expr(&tree)?;
    checker.coerce_or_report(found, want)
}

struct Checker<'a> {
    scope: &'a Scope<'a>,
    places: &'a Places,
    locate: &'a dyn Fn(Range<usize>) -> Span,
    diagnostics: &'a mut Diagnostics,
    locals: Vec<(String, Ty)>,
}

/// A diagnostic that is reported when it goes out of scope, so that callers can add to it.
struct Pending<'d> {
    diagnostics: &'d mut Diagnostics,
    diagnostic: Option<Diagnostic>,
}

impl Pending<'_> {
    fn help(mut self, help: impl Into<String>) {
        self.diagnostic = self.diagnostic.take().map(|diagnostic| diagnostic.with_help(help));
    }

    fn help_if(self, help: Option<String>) {
        if let Some(help) = help {
            self.help(help);
        }
    }

    fn secondary(mut self, span: Span, label: impl Into<String>) {
        self.diagnostic = self.diagnostic.take().map(|diagnostic| diagnostic.with_secondary(span, label));
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(diagnostic) = self.diagnostic.take() {
            self.diagnostics.push(diagnostic);
        }
    }
}

impl Checker<'_> {
    fn report(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        range: Range<usize>,
        label: impl Into<String>,
    ) -> Pending<'_> {
        let span = (self.locate)(range);
        let diagnostic = Some(Diagnostic::error(code, message, span, label));
        Pending { diagnostics: self.diagnostics, diagnostic }
    }

    fn expr(&mut self, tree: &syn::Expr) -> Option<Expr> {
        let range = self.places.of(tree);
        match tree {
            syn::Expr::Lit(literal) => self.literal(&literal.lit, range),
            syn::Expr::Path(path) => self.name(path, range),
            syn::Expr::Paren(inner) => self.expr(&inner.expr),
            syn::Expr::Group(inner) => self.expr(&inner.expr),
            syn::Expr::Reference(inner) => self.expr(&inner.expr),
            syn::Expr::Array(array) => self.list(array.elems.iter(), range),
            syn::Expr::Tuple(tuple) => self.tuple(tuple.elems.iter(), range),
            syn::Expr::Call(call) => self.call(call, range),
            syn::Expr::MethodCall(call) => self.method(call, range),
            syn::Expr::Binary(binary) => self.binary(binary, range),
            syn::Expr::Unary(unary) => self.unary(unary, range),
            syn::Expr::If(branch) => self.branch(branch, range),
            syn::Expr::Block(block) => self.block(&block.block, range),
            syn::Expr::Index(index) => self.index(index, range),
            _ => {
                self.report("E0302", "this syntax has no meaning in a spec", range, "not supported here")
                    .help("use names, numbers, calls, methods, operators, `if`/`else`, `[…]` lists and `{ let …; … }`");
                None
            }
        }
    }

    fn literal(&mut self, literal: &Lit, range: Range<usize>) -> Option<Expr> {
        let (kind, ty) = match literal {
            Lit::Int(value) => match value.base10_parse::<i64>() {
                Ok(value) => (ExprKind::Int(value), Kind::Int),
                Err(_) => {
                    self.report("E0303", "the number does not fit 64 bits", range, "too large");
                    return None;
                }
            },
            Lit::Float(value) => match value.base10_parse::<f64>() {
                Ok(value) => (ExprKind::Float(value), Kind::Float),
                Err(_) => {
                    self.report("E0303", "this is not a number", range, "cannot be read as a 64-bit float");
                    return None;
                }
            },
            Lit::Bool(value) => (ExprKind::Bool(value.value), Kind::Bool),
            Lit::Str(value) => (ExprKind::Str(value.value()), Kind::Str),
            _ => {
                self.report(
                    "E0303",
                    "this kind of literal has no meaning in a spec",
                    range,
                    "not a number, text or truth value",
                );
                return None;
            }
        };
        Some(Expr { kind, ty: Ty::new(ty), range })
    }

    fn name(&mut self, path: &syn::ExprPath, range: Range<usize>) -> Option<Expr> {
        let Some(ident) = path.path.get_ident() else {
            self.report("E0304", "a path is not a value", range, "only functions have paths");
            return None;
        };
        let name = ident.to_string();
        if let Some((kind, ty)) = self.lookup(&name) {
            return Some(Expr { kind, ty, range });
        }
        let known = self.known_names();
        let near = nearest(&name, known.iter().map(String::as_str)).map(str::to_owned);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.report("E0305", format!("nothing is called `{name}` here"), range, "unknown name").help(help);
        None
    }

    fn lookup(&self, name: &str) -> Option<(ExprKind, Ty)> {
        if let Some((_, ty)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Some((ExprKind::Variable(Variable::Local(name.to_owned())), ty.clone()));
        }
        if let Some(index) = self.scope.args.iter().position(|arg| arg.name == name) {
            return Some((ExprKind::Variable(Variable::Arg(index)), self.arg_type(&self.scope.args[index])));
        }
        if self.scope.mode == Mode::Derivative
            && let Some((variable, ty)) = self.gradient_name(name)
        {
            return Some((ExprKind::Variable(variable), ty));
        }
        let float = |value: f64| Some((ExprKind::Float(value), Ty::new(Kind::Float)));
        match name {
            "None" => return Some((ExprKind::None, Ty::new(Kind::None))),
            "True" => return Some((ExprKind::Bool(true), Ty::new(Kind::Bool))),
            "False" => return Some((ExprKind::Bool(false), Ty::new(Kind::Bool))),
            "inf" => return float(f64::INFINITY),
            "nan" => return float(f64::NAN),
            "pi" => return float(std::f64::consts::PI),
            _ => {}
        }
        DType::from_name(name).map(|dtype| (ExprKind::DType(dtype), Ty::new(Kind::DType)))
    }

    fn arg_type(&self, arg: &Arg) -> Ty {
        if self.scope.mode != Mode::Pointwise || arg.ty.kind != Kind::Tensor {
            return arg.ty.clone();
        }
        Ty::new(match arg.element {
            Element::Fixed(DType::Bool, _) => Kind::Bool,
            Element::Real => Kind::RealElement,
            _ => Kind::Element,
        })
    }

    fn gradient_name(&self, name: &str) -> Option<(Variable, Ty)> {
        let outputs = self.scope.outputs;
        let tensor_at = |index: usize| outputs.get(index).map(|output| output.ty.clone());
        let named = |wanted: &str| outputs.iter().position(|output| output.name.as_deref() == Some(wanted));
        if self.returns_list() {
            // Some tensors of a list may have no gradient.
            let grads = (Variable::Grads, Ty::new(Kind::OptionalTensors));
            return (name == "grads").then_some(grads);
        }
        match name {
            "grad" => return Some((Variable::Grad(0), tensor_at(0)?)),
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

    /// Whether the operator's one result is a list of tensors.
    fn returns_list(&self) -> bool {
        matches!(self.scope.outputs, [only] if only.ty.kind == Kind::Tensors)
    }

    fn known_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.locals.iter().map(|(name, _)| name.clone()).collect();
        names.extend(self.scope.args.iter().map(|arg| arg.name.clone()));
        if self.scope.mode == Mode::Derivative {
            if self.returns_list() {
                names.push("grads".into());
                return names;
            }
            names.push("grad".into());
            names.push("result".into());
            names.extend(self.scope.outputs.iter().filter_map(|output| output.name.clone()));
        }
        names
    }

    fn list<'t>(&mut self, items: impl Iterator<Item = &'t syn::Expr>, range: Range<usize>) -> Option<Expr> {
        // Check every item before giving up, so that all their mistakes are reported.
        let items: Vec<Option<Expr>> = items.map(|item| self.expr(item)).collect();
        let items: Vec<Expr> = items.into_iter().collect::<Option<_>>()?;
        let has = |kind: Kind| items.iter().any(|item| item.ty.kind == kind);
        let (item, list) = if items
            .iter()
            .any(|item| item.ty.kind == Kind::None || item.ty == Ty::new(Kind::Tensor).or_none())
        {
            (Ty::new(Kind::Tensor).or_none(), Kind::OptionalTensors)
        } else if has(Kind::Tensor) {
            (Ty::new(Kind::Tensor), Kind::Tensors)
        } else if has(Kind::Bool) {
            (Ty::new(Kind::Bool), Kind::Bools(None))
        } else if has(Kind::Scalar) {
            (Ty::new(Kind::Scalar), Kind::Scalars)
        } else if has(Kind::Float) {
            (Ty::new(Kind::Float), Kind::Floats)
        } else {
            (Ty::new(Kind::Int), Kind::Ints(None))
        };
        let items =
            items.into_iter().map(|found| self.coerce_or_report(found, &item)).collect::<Option<Vec<_>>>()?;
        Some(Expr { kind: ExprKind::List(items), ty: Ty::new(list), range })
    }

    fn tuple<'t>(&mut self, items: impl Iterator<Item = &'t syn::Expr>, range: Range<usize>) -> Option<Expr> {
        let items: Vec<Option<Expr>> = items.map(|item| self.expr(item)).collect();
        let items: Vec<Expr> = items.into_iter().collect::<Option<_>>()?;
        let ty = Ty::new(Kind::Tuple(items.iter().map(|item| item.ty.clone()).collect()));
        Some(Expr { kind: ExprKind::Tuple(items), ty, range })
    }

    fn branch(&mut self, branch: &syn::ExprIf, range: Range<usize>) -> Option<Expr> {
        let condition = self.expr(&branch.cond);
        let yes = self.block(&branch.then_branch, range.clone());
        let no = match &branch.else_branch {
            Some((_, no)) => self.expr(no),
            None => {
                self.report(
                    "E0306",
                    "`if` needs an `else` here",
                    range.clone(),
                    "has no value when the condition is false",
                );
                None
            }
        };
        let (condition, yes, no) = (condition?, yes?, no?);
        let condition = self.coerce_or_report(condition, &Ty::new(Kind::Bool))?;
        let (yes, no) = self.unify(yes, no)?;
        let ty = yes.ty.clone();
        Some(Expr { kind: ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no)), ty, range })
    }

    fn block(&mut self, block: &syn::Block, range: Range<usize>) -> Option<Expr> {
        let outer = self.locals.len();
        let result = self.statements(&block.stmts, range);
        self.locals.truncate(outer);
        result
    }

    fn statements(&mut self, statements: &[Stmt], range: Range<usize>) -> Option<Expr> {
        let mut bindings = Vec::new();
        for (index, statement) in statements.iter().enumerate() {
            match statement {
                Stmt::Local(local) => {
                    let syn::Pat::Ident(pattern) = &local.pat else {
                        let place = self.places.of(&local.pat);
                        self.report("E0302", "only a plain name can be bound here", place, "not a name");
                        return None;
                    };
                    let Some(init) = &local.init else {
                        let place = self.places.of(local);
                        self.report("E0302", "a name needs a value", place, "no value");
                        return None;
                    };
                    let value = self.expr(&init.expr)?;
                    let name = pattern.ident.to_string();
                    self.locals.push((name.clone(), value.ty.clone()));
                    bindings.push((name, value));
                }
                Stmt::Expr(tail, None) if index + 1 == statements.len() => {
                    let tail = self.expr(tail)?;
                    if bindings.is_empty() {
                        return Some(tail);
                    }
                    let ty = tail.ty.clone();
                    return Some(Expr { kind: ExprKind::Block(bindings, Box::new(tail)), ty, range });
                }
                other => {
                    let place = self.places.of(other);
                    self.report(
                        "E0302",
                        "this statement has no effect in a spec",
                        place,
                        "write `let name = …;` or a last expression",
                    );
                    return None;
                }
            }
        }
        self.report("E0306", "the block has no value", range, "ends without an expression");
        None
    }

    fn index(&mut self, index: &syn::ExprIndex, range: Range<usize>) -> Option<Expr> {
        // `grads[i]` is the gradient of output i.
        if let syn::Expr::Path(path) = &*index.expr
            && path.path.is_ident("grads")
            && self.scope.mode == Mode::Derivative
        {
            return self.grads_index(index, range);
        }
        let base = self.expr(&index.expr);
        let position = self.expr(&index.index);
        let (base, position) = (base?, position?);
        let position = self.coerce_or_report(position, &Ty::new(Kind::Int))?;
        let ty = match (&base.ty.kind, &position.kind) {
            (Kind::Ints(_), _) => Ty::new(Kind::Int),
            (Kind::Floats, _) => Ty::new(Kind::Float),
            (Kind::Bools(_), _) => Ty::new(Kind::Bool),
            (Kind::Tensors, _) => Ty::new(Kind::Tensor),
            (Kind::Tuple(items), ExprKind::Int(position)) if items.get(*position as usize).is_some() => {
                items[*position as usize].clone()
            }
            _ => {
                let found = base.ty.to_string();
                self.report("E0307", "this cannot be indexed", base.range, format!("a `{found}`"));
                return None;
            }
        };
        Some(Expr { kind: ExprKind::Index(Box::new(base), Box::new(position)), ty, range })
    }

    fn grads_index(&mut self, index: &syn::ExprIndex, range: Range<usize>) -> Option<Expr> {
        let position = self.expr(&index.index)?;
        let outputs = self.scope.outputs.len();
        match position.kind {
            ExprKind::Int(value) if (0..outputs as i64).contains(&value) => {
                let output = &self.scope.outputs[value as usize];
                let ty = output.ty.clone().or_none();
                Some(Expr { kind: ExprKind::Variable(Variable::Grad(value as usize)), ty, range })
            }
            _ => {
                self.report(
                    "E0308",
                    "there is no such gradient",
                    position.range,
                    format!("the operator has {outputs} outputs, numbered from 0"),
                );
                None
            }
        }
    }

    /// The row of the table of methods that are not operators.
    fn query(name: &str) -> Option<Query> {
        QUERIES.iter().find(|row| row.name == name).map(|row| row.query)
    }
}
