//! Expressions as formulas.
//!
//! In: a typed expression of an operator. Out: [`Math`]. The gradient of a result y is written ∂L/∂y, where L is the scalar
//! that is differentiated; of complex numbers it is the gradient by real and imaginary part, as in the runtime.

use opsmith_codegen::model::expr::{Expr, ExprKind, QUERIES, Query, Variable};
use opsmith_codegen::model::{Kind, Model, Op, Operation};

use super::functions::{call_of, constant, statement};
use super::mathml::{
    Level, Math, below, between, call, cases, commas, conjugate, difference_of, infix, lines, negate, not,
    number, operator_sign, product_of, quotient, subscript, sum_of, words,
};
use super::names::{function, name, upright};
use crate::scalar;

/// Writes the expressions of one operator.
pub(super) struct Writer<'a> {
    pub model: &'a Model,
    pub op: &'a Op,
    /// The formulas of the arguments, if the expression is that of a called operator.
    pub bound: Option<&'a [Math]>,
    /// The sign of products of elements: `⊙` where products of matrices are near.
    pub product: &'static str,
}

impl<'a> Writer<'a> {
    /// A writer of an expression, which decides the sign of its products.
    pub fn of(model: &'a Model, op: &'a Op, expr: &Expr) -> Writer<'a> {
        let mut has_products = false;
        expr.walk(&mut |part| {
            if let ExprKind::Op(id, _) = part.kind {
                has_products |= model.ops.get(id.0).is_some_and(super::calls::is_product);
            }
        });
        Writer { product: if has_products { "⊙" } else { "⋅" }, ..Writer::new(model, op) }
    }

    /// A writer of formulas about an operator, in which products are of numbers.
    pub fn new(model: &'a Model, op: &'a Op) -> Writer<'a> {
        Writer { model, op, bound: None, product: "⋅" }
    }

    pub fn math(&self, expr: &Expr) -> Math {
        match &expr.kind {
            ExprKind::Variable(variable) => self.variable(variable),
            ExprKind::Int(value) => number(*value as f64),
            ExprKind::Float(value) => match scalar::constant(*value) {
                Some(known) => constant(known),
                None => number(*value),
            },
            ExprKind::Imaginary => upright("i").compact(),
            ExprKind::Bool(value) => truth(*value),
            ExprKind::Str(text) => Math::atom(words(&format!("“{text}”"))),
            ExprKind::MemoryFormat(format) => upright(format.ident()),
            ExprKind::DType(dtype) => upright(dtype.name()),
            ExprKind::None => upright("none"),
            ExprKind::List(items) => between("[", commas(self.each(items)), "]"),
            ExprKind::Tuple(items) => between("(", commas(self.each(items)), ")"),
            ExprKind::Op(id, args) => match self.model.ops.get(id.0) {
                Some(called) => self.operator(called, args),
                None => call(upright("?"), self.each(args)),
            },
            ExprKind::Function(id, args) => match self.model.functions.get(id.0) {
                Some(function) => call_of(function, self.each(args)),
                None => call(upright("?"), self.each(args)),
            },
            ExprKind::Rule(rule, args) => call(function(rule.name()), self.each(args)),
            ExprKind::Native(path, args) => {
                call(upright(path.rsplit("::").next().unwrap_or(path)), self.each(args))
            }
            ExprKind::Query(query, base, args) => self.query(*query, base, args),
            ExprKind::Binary(symbol, a, b) => self.binary(*symbol, self.math(a), self.math(b), expr),
            ExprKind::Logical(and, a, b) => {
                let (symbol, level) = if *and { ("∧", Level::And) } else { ("∨", Level::Or) };
                infix(self.math(a), symbol, self.math(b), level)
            }
            ExprKind::Unary(Operation::Not, operand) => self.opposite(operand),
            ExprKind::Unary(_, operand) => self.negative(self.math(operand)),
            ExprKind::If(..) => {
                let mut rows = self.rows(expr);
                if rows.len() == 1 { rows.remove(0).0 } else { cases(rows) }
            }
            ExprKind::Block(bindings, tail) => self.block(bindings, tail),
            ExprKind::Index(base, position) => subscript(self.math(base), self.math(position)),
            ExprKind::Map(list, names, item) => self.map(list, names, item),
            ExprKind::NotImplemented(why) => Math::atom(words(&format!("not implemented: {why}"))),
            ExprKind::Opaque(text) => Math::atom(words(text)),
            ExprKind::Convert(inner) => self.math(inner),
        }
    }

    /// A list, of which each part is made of an item of another: `[f(x)]` with `x ∈ list` or `x = list_i` below.
    fn map(&self, list: &Expr, names: &[String], item: &Expr) -> Math {
        let list = self.math(list);
        let below = match names {
            [item, position] => infix(name(item), "=", subscript(list, name(position)), Level::Compare),
            [item, ..] => infix(name(item), "∈", list, Level::Compare),
            [] => list,
        };
        subscript(between("[", self.math(item), "]"), below)
    }

    pub fn each(&self, items: &[Expr]) -> Vec<Math> {
        items.iter().map(|item| self.math(item)).collect()
    }

    /// The name of a result: y, if it is the only one and has no other.
    pub fn result(&self, index: usize) -> Math {
        let free = |letter: &str| self.op.arg_index(letter).is_none();
        match self.op.outputs.get(index).and_then(|output| output.name.as_deref()) {
            Some(given) => name(given),
            None if !free("y") => name(&self.op.result_name(index)),
            None if self.op.outputs.len() == 1 => name("y"),
            None => subscript(name("y"), number(index as f64)),
        }
    }

    /// ∂L/∂x
    pub fn gradient(&self, of: Math) -> Math {
        let loss = if self.op.arg_index("L").is_none() { "L" } else { "loss" };
        let delta = || Math::atom(operator_sign("∂"));
        let fraction = |top: Math, bottom: Math| {
            quotient(
                Math::atom(format!("{}{}", delta().xml, top.xml)),
                Math::atom(format!("{}{}", delta().xml, bottom.xml)),
            )
        };
        fraction(name(loss), of)
    }

    fn variable(&self, variable: &Variable) -> Math {
        match variable {
            Variable::Arg(index) => match self.bound.and_then(|bound| bound.get(*index)) {
                Some(bound) => bound.clone(),
                None => self.op.args.get(*index).map_or_else(|| upright("?"), |arg| name(&arg.name)),
            },
            Variable::Grad(index) => self.gradient(self.result(*index)),
            Variable::Grads => self.gradient(self.result(0)),
            Variable::Tangent(index) => {
                below(self.op.args.get(*index).map_or_else(|| upright("?"), |arg| name(&arg.name)), "˙")
            }
            Variable::Result(index) => self.result(*index),
            Variable::GradInputMask => name("mask"),
            Variable::Local(text) => name(text),
        }
    }

    /// `-x`; of a product, of its first factor.
    pub fn negative(&self, operand: Math) -> Math {
        match operand.number {
            Some(value) if operand.level == Level::Atom && value > 0.0 => number(-value),
            _ => negate(operand),
        }
    }

    /// An operation between numbers, elements or, by the operators that stand for the symbols, tensors.
    pub fn binary(&self, symbol: Operation, a: Math, b: Math, expr: &Expr) -> Math {
        // Defaults of called operators leave factors 1 and terms 0 behind.
        let is = |math: &Math, value: f64| self.bound.is_some() && math.number == Some(value);
        let of_truth = expr.ty.kind == Kind::Bool;
        if let (Some(a), Some(b), true) = (a.number, b.number, self.bound.is_some()) {
            match symbol {
                Operation::Eq => return truth(a == b),
                Operation::Ne => return truth(a != b),
                _ => {}
            }
        }
        match symbol {
            Operation::Add if is(&a, 0.0) => b,
            Operation::Add if is(&b, 0.0) => a,
            Operation::Add => sum_of(a, b),
            Operation::Sub if is(&b, 0.0) => a,
            Operation::Sub => difference_of(a, b),
            Operation::Mul if is(&a, 1.0) => b,
            Operation::Mul if is(&b, 1.0) => a,
            Operation::Mul => self.multiplied(a, b),
            Operation::Div if is(&b, 1.0) => a,
            Operation::Div => match stripped(&a) {
                Some(positive) if a.level >= Level::Negative => negate(quotient(positive, b)),
                _ => quotient(a, b),
            },
            Operation::Rem => infix(a, "mod", b, Level::Infix),
            Operation::BitAnd => infix(a, "∧", b, if of_truth { Level::And } else { Level::Infix }),
            Operation::BitOr => infix(a, "∨", b, if of_truth { Level::Or } else { Level::Infix }),
            Operation::BitXor => infix(a, "⊻", b, Level::Infix),
            Operation::Eq => infix(a, "=", b, Level::Compare),
            Operation::Ne => infix(a, "≠", b, Level::Compare),
            Operation::Lt => infix(a, "<", b, Level::Compare),
            Operation::Le => infix(a, "≤", b, Level::Compare),
            Operation::Gt => infix(a, ">", b, Level::Compare),
            Operation::Ge => infix(a, "≥", b, Level::Compare),
            Operation::Neg => self.negative(a),
            Operation::Not => not(a),
        }
    }

    /// A product; the minus sign of its first factor stands before it.
    fn multiplied(&self, a: Math, b: Math) -> Math {
        match stripped(&a) {
            Some(positive) if a.level >= Level::Negative => negate(product_of(positive, b, self.product)),
            _ => product_of(a, b, self.product),
        }
    }

    /// `!a`, as the opposite comparison where there is one.
    fn opposite(&self, operand: &Expr) -> Math {
        let stripped = match &operand.kind {
            ExprKind::Convert(inner) => inner,
            _ => operand,
        };
        match &stripped.kind {
            ExprKind::Query(Query::IsSome, base, _) => statement(self.math(base), "is absent"),
            ExprKind::Query(Query::IsNone, base, _) => statement(self.math(base), "is given"),
            ExprKind::Query(Query::IsComplex, base, _) => statement(self.math(base), "is not complex"),
            ExprKind::Binary(Operation::Eq, a, b) => infix(self.math(a), "≠", self.math(b), Level::Compare),
            _ => not(self.math(operand)),
        }
    }

    /// The rows of a choice; one inside the last branch goes on in the same table.
    fn rows(&self, expr: &Expr) -> Vec<(Math, Option<Math>)> {
        let mut rows = Vec::new();
        let mut rest = expr;
        loop {
            match &rest.kind {
                ExprKind::If(condition, yes, no) => {
                    let condition = self.math(condition);
                    match condition.number.filter(|_| self.bound.is_some()) {
                        Some(0.0) => rest = no,
                        Some(_) => rest = yes,
                        None => {
                            rows.push((self.math(yes), Some(condition)));
                            rest = no;
                        }
                    }
                }
                ExprKind::Convert(inner) if matches!(inner.kind, ExprKind::If(..)) => rest = inner,
                _ => {
                    rows.push((self.math(rest), None));
                    return rows;
                }
            }
        }
    }

    /// A value with its bindings, a line each: inside a formula the value stands first.
    fn block(&self, bindings: &[(String, Expr)], tail: &Expr) -> Math {
        let of = bindings.iter().map(|(text, value)| (name(text), self.math(value))).collect();
        let value = self.math(tail).at_least(Level::Or);
        Math::new(format!("{}{}{}", value.xml, words(" where "), lines(of).xml), Level::Rows)
    }

    fn query(&self, query: Query, base: &Expr, args: &[Expr]) -> Math {
        let x = || self.math(base);
        let of_argument = |index: usize| args.get(index).map(|arg| self.math(arg));
        match (query, of_argument(0)) {
            (Query::Size, Some(dim)) => call(subscript(upright("size"), dim), vec![x()]),
            (Query::Len, _) => between("|", x(), "|"),
            (Query::IsSome, _) => statement(x(), "is given"),
            (Query::IsNone, _) => statement(x(), "is absent"),
            (Query::Unwrap, _) => x(),
            (Query::UnwrapOr, Some(other)) => {
                let (x, other) = (x().at_least(Level::Compare), other.at_least(Level::Compare));
                Math::new(format!("{}{}{}", x.xml, words(" or else "), other.xml), Level::Rows)
            }
            (Query::Conj, _) => conjugate(x()),
            (Query::IsZero, _) => infix(x(), "=", number(0.0), Level::Compare),
            (Query::IsComplex, _) => statement(x(), "is complex"),
            (Query::IsFloat, _) => statement(x(), "is real floating point"),
            (Query::IsInt, _) => statement(x(), "is an integer"),
            (Query::IsContiguous, _) => statement(x(), "is contiguous"),
            (Query::Contains, Some(item)) => infix(item, "∈", x(), Level::Compare),
            (_, first) => {
                let label = QUERIES.iter().find(|row| row.query == query).map_or("?", |row| row.name);
                let rest = args.iter().skip(1).map(|arg| self.math(arg));
                call(upright(label), [x()].into_iter().chain(first).chain(rest).collect())
            }
        }
    }
}

/// A truth value.
fn truth(value: bool) -> Math {
    Math { number: Some(f64::from(u8::from(value))), ..upright(if value { "true" } else { "false" }) }
}

/// A formula without the minus sign that it begins with.
fn stripped(math: &Math) -> Option<Math> {
    let minus = operator_sign("−");
    let xml = math.xml.strip_prefix(minus.as_str()).filter(|_| math.is_negative)?;
    Some(match math.number {
        Some(value) if math.level == Level::Negative => number(-value),
        _ => Math { is_negative: false, xml: xml.to_owned(), ..Math::new(String::new(), Level::Product) },
    })
}
