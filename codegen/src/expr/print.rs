//! Typed expressions back to text, in the spec's syntax.
//!
//! In: an expression and its operator. Out: one line. Called operators have their full names, and default arguments are
//! written out, so equal texts mean equal expressions.

use crate::model::expr::{Expr, ExprKind, IMAGINARY_UNIT, QUERIES, Variable};
use crate::model::{Model, Op, Operation};

/// The expression in one line.
pub fn print(expr: &Expr, op: &Op, model: &Model) -> String {
    Printer { op, model }.text(expr)
}

struct Printer<'a> {
    op: &'a Op,
    model: &'a Model,
}

impl Printer<'_> {
    fn text(&self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Variable(variable) => self.variable(variable),
            ExprKind::Int(value) => value.to_string(),
            ExprKind::Float(value) => format!("{value:?}"),
            ExprKind::Imaginary => IMAGINARY_UNIT.to_owned(),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Str(text) => format!("{text:?}"),
            ExprKind::MemoryFormat(format) => format!("{:?}", format.ident()),
            ExprKind::DType(dtype) => dtype.name().to_owned(),
            ExprKind::None => "None".to_owned(),
            ExprKind::List(items) => format!("[{}]", self.list(items)),
            ExprKind::Tuple(items) => format!("({})", self.list(items)),
            ExprKind::Op(id, args) => {
                let name = self.model.ops.get(id.0).map_or("?", |op| op.name.as_str());
                format!("{name}({})", self.list(args))
            }
            ExprKind::Function(id, args) => {
                let name = self.model.functions.get(id.0).map_or("?", |function| function.name.as_str());
                format!("{name}({})", self.list(args))
            }
            ExprKind::Rule(rule, args) => format!("{}({})", rule.name(), self.list(args)),
            ExprKind::Native(path, args) => format!("{path}({})", self.list(args)),
            ExprKind::Query(query, base, args) => {
                let name = QUERIES.iter().find(|row| row.query == *query).map_or("?", |row| row.name);
                format!("{}.{name}({})", self.operand(base), self.list(args))
            }
            ExprKind::Binary(symbol, a, b) => {
                format!("{} {} {}", self.operand(a), symbol.spelling(), self.operand(b))
            }
            ExprKind::Logical(and, a, b) => {
                format!("{} {} {}", self.operand(a), if *and { "&&" } else { "||" }, self.operand(b))
            }
            ExprKind::Unary(symbol, operand) => {
                let sign = if *symbol == Operation::Neg { "-" } else { "!" };
                format!("{sign}{}", self.operand(operand))
            }
            ExprKind::If(condition, yes, no) => {
                format!("if {} {{ {} }} else {{ {} }}", self.text(condition), self.text(yes), self.text(no))
            }
            ExprKind::Block(bindings, tail) => {
                let bindings: String = bindings
                    .iter()
                    .map(|(name, value)| format!("let {name} = {}; ", self.text(value)))
                    .collect();
                format!("{{ {bindings}{} }}", self.text(tail))
            }
            ExprKind::Index(base, position) => format!("{}[{}]", self.operand(base), self.text(position)),
            ExprKind::Map(list, names, item) => {
                format!("{}.map(|{}| {})", self.operand(list), names.join(", "), self.text(item))
            }
            ExprKind::NotImplemented(why) => format!("not_implemented({why:?})"),
            ExprKind::Opaque(text) => format!("opaque({text:?})"),
            ExprKind::Convert(inner) => self.text(inner),
        }
    }

    fn list(&self, items: &[Expr]) -> String {
        items.iter().map(|item| self.text(item)).collect::<Vec<_>>().join(", ")
    }

    /// An operand, in brackets unless it is atomic.
    fn operand(&self, expr: &Expr) -> String {
        let text = self.text(expr);
        match &expr.kind {
            ExprKind::Convert(inner) => self.operand(inner),
            ExprKind::Binary(..) | ExprKind::Logical(..) | ExprKind::Unary(..) | ExprKind::If(..) => {
                format!("({text})")
            }
            _ => text,
        }
    }

    fn variable(&self, variable: &Variable) -> String {
        let name = |index: usize| self.op.args.get(index).map_or("?", |arg| arg.name.as_str()).to_owned();
        let one = self.op.outputs.len() == 1;
        match variable {
            Variable::Arg(index) => name(*index),
            Variable::Grad(_) if one => "grad".to_owned(),
            Variable::Grad(index) => format!("grads[{index}]"),
            Variable::Grads => "grads".to_owned(),
            Variable::Result(_) if one => "result".to_owned(),
            Variable::Result(index) => match &self.op.outputs[*index].name {
                Some(name) => name.clone(),
                None => format!("result{index}"),
            },
            Variable::GradInputMask => "grad_input_mask".to_owned(),
            Variable::Tangent(index) => format!("{}_t", name(*index)),
            Variable::Local(name) => name.clone(),
        }
    }
}
