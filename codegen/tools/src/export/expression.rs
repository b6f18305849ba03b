//! Expressions as trees of JSON.
//!
//! Each node has its kind `is`, its `type`, and its parts under names that depend on `is`.

use serde_json::{Value, json};

use opsmith_codegen::model::expr::{Expr, ExprKind, QUERIES, Variable};
use opsmith_codegen::model::{Model, Op};

/// An expression of an operator.
pub fn expression(expr: &Expr, op: &Op, model: &Model) -> Value {
    let each = |items: &[Expr]| items.iter().map(|item| expression(item, op, model)).collect::<Vec<_>>();
    let one = |item: &Expr| expression(item, op, model);
    let mut value = match &expr.kind {
        ExprKind::Variable(variable) => self::variable(variable, op),
        ExprKind::Int(value) => json!({ "is": "int", "value": value }),
        ExprKind::Float(value) if value.is_finite() => json!({ "is": "float", "value": value }),
        ExprKind::Float(value) => json!({ "is": "float", "value": value.to_string() }),
        ExprKind::Imaginary => json!({ "is": "imaginary" }),
        ExprKind::Bool(value) => json!({ "is": "bool", "value": value }),
        ExprKind::Str(text) => json!({ "is": "str", "value": text }),
        ExprKind::MemoryFormat(format) => json!({ "is": "str", "value": format.ident() }),
        ExprKind::DType(dtype) => json!({ "is": "dtype", "value": dtype.name() }),
        ExprKind::None => json!({ "is": "none" }),
        ExprKind::List(items) => json!({ "is": "list", "items": each(items) }),
        ExprKind::Tuple(items) => json!({ "is": "tuple", "items": each(items) }),
        ExprKind::Op(id, args) => {
            let name = model.ops.get(id.0).map(|op| op.name.as_str());
            json!({ "is": "operator", "name": name, "arguments": each(args) })
        }
        ExprKind::Function(id, args) => {
            let name = model.functions.get(id.0).map(|function| function.name.as_str());
            json!({ "is": "function", "name": name, "arguments": each(args) })
        }
        ExprKind::Rule(rule, args) => json!({ "is": "rule", "name": rule.name(), "arguments": each(args) }),
        ExprKind::Native(path, args) => json!({ "is": "rust", "path": path, "arguments": each(args) }),
        ExprKind::Query(query, base, args) => {
            let name = QUERIES.iter().find(|row| row.query == *query).map(|row| row.name);
            json!({ "is": "query", "name": name, "of": one(base), "arguments": each(args) })
        }
        ExprKind::Binary(symbol, a, b) => {
            json!({ "is": "binary", "symbol": symbol.spelling(), "left": one(a), "right": one(b) })
        }
        ExprKind::Logical(and, a, b) => {
            json!({ "is": "binary", "symbol": if *and { "&&" } else { "||" }, "left": one(a), "right": one(b) })
        }
        ExprKind::Unary(symbol, operand) => {
            json!({ "is": "unary", "symbol": symbol.spelling(), "operand": one(operand) })
        }
        ExprKind::If(condition, yes, no) => {
            json!({ "is": "if", "condition": one(condition), "then": one(yes), "else": one(no) })
        }
        ExprKind::Block(bindings, tail) => json!({
            "is": "block",
            "bindings": bindings.iter().map(|(name, value)| json!({ "name": name, "value": one(value) })).collect::<Vec<_>>(),
            "value": one(tail),
        }),
        ExprKind::Index(base, position) => {
            json!({ "is": "indexing", "of": one(base), "position": one(position) })
        }
        ExprKind::Map(of, names, to) => {
            json!({ "is": "map", "of": one(of), "names": names, "each": one(to) })
        }
        ExprKind::NotImplemented(why) => json!({ "is": "not_implemented", "why": why }),
        ExprKind::Opaque(text) => json!({ "is": "opaque", "text": text }),
        ExprKind::Convert(inner) => json!({ "is": "convert", "operand": one(inner) }),
    };
    value["type"] = json!(expr.ty.to_string());
    value
}

fn variable(variable: &Variable, op: &Op) -> Value {
    match variable {
        Variable::Arg(index) => {
            json!({ "is": "argument", "name": op.args.get(*index).map(|arg| arg.name.as_str()) })
        }
        Variable::Grad(index) => json!({ "is": "gradient", "output": index }),
        Variable::Tangent(index) => {
            json!({ "is": "tangent", "of": op.args.get(*index).map(|arg| arg.name.as_str()) })
        }
        Variable::Grads => json!({ "is": "gradients" }),
        Variable::Result(index) => json!({ "is": "result", "output": index }),
        Variable::GradInputMask => json!({ "is": "wanted gradients" }),
        Variable::Local(name) => json!({ "is": "local", "name": name }),
    }
}
