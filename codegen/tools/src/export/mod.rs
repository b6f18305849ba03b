//! The whole checked model as JSON, for tools that are not written in Rust.
//!
//! In: a model. Out: a [`Value`] whose form is numbered ([`FORMAT`]) and documented in
//! `docs/export.md`. Expressions are trees ([`expression`]), so that shapes and gradients can be
//! evaluated elsewhere. Equal models give equal texts. Every field of the model is destructured by name, so that one
//! that is added does not compile until it is exported or left out here.

mod expression;
mod gradients;
mod parts;

use opsmith_core::Backend;
use serde_json::{Map, Value, json};

use opsmith_codegen::model::{Arg, Facts, Forms, Function, FunctionReturn, Infer, Model, Op};

pub use expression::expression;
pub(crate) use parts::default_value;

/// The version of the form. It grows when a reader of an older one would misunderstand a newer one.
pub const FORMAT: u32 = 1;

/// The model with the operators of its own spec; those of parent libraries are named by calls only.
pub fn export(model: &Model) -> Value {
    let operators: Vec<Value> =
        model.ops.iter().filter(|op| !op.is_external()).map(|op| operator(op, model)).collect();
    let functions: Vec<Value> =
        model.functions.iter().filter(|function| !function.is_external()).map(scalar_function).collect();
    json!({
        "format": FORMAT,
        "operators": operators,
        "functions": functions,
        "namespaces": own_rows(&model.foreign_names.namespaces),
        "unlike": own_rows(&model.foreign_names.unlike),
    })
}

/// The rows of a table of names that stand in the spec itself.
fn own_rows(rows: &[(String, String, bool)]) -> Map<String, Value> {
    let own = rows.iter().filter(|(.., external)| !external);
    own.map(|(name, meant, _)| (name.clone(), Value::from(meant.as_str()))).collect()
}

/// One operator.
pub fn operator(op: &Op, model: &Model) -> Value {
    // Places are not exported but for the line of the entry.
    let Op {
        name,
        base,
        signature,
        parent: _,
        span: _,
        entry: _,
        location,
        doc,
        rust_name,
        merged,
        args,
        outputs,
        forms,
        receiver,
        checks,
        infer,
        combinations,
        flops,
        body,
        derivatives,
        non_differentiable,
        forward,
        samples,
        tolerances,
        operators,
        role,
        supplied,
        origin,
        alias_of,
        facts,
    } = op;
    let Forms { inplace, out, pairs } = forms;
    let mut value = json!({
        "name": name,
        "base": base,
        "signature": signature,
        "declared": location,
        "doc": doc,
        "rust": {
            "function": rust_name,
            "method": receiver.is_some(),
            "receiver": receiver.map(|index| args[index].name.as_str()),
            "shared_with": merged.and_then(|merged| model.ops.get(merged.with.0)).map(|op| op.name.as_str()),
        },
        "arguments": args.iter().map(parts::argument).collect::<Vec<_>>(),
        "outputs": outputs.iter().map(|output| {
            let present = output.present.as_ref().map(|condition| expression(condition, op, model));
            parts::output(output, present)
        }).collect::<Vec<_>>(),
        "forms": {
            "functional": name,
            "inplace": inplace,
            "out": out,
            "writes": pairs.iter().map(|(argument, result)| json!({
                "argument": args[*argument].name, "result": result,
            })).collect::<Vec<_>>(),
        },
        "checks": checks.iter().map(|check| json!({
            "text": check.text,
            "condition": expression(&check.condition, op, model),
        })).collect::<Vec<_>>(),
        "inference": infer.as_ref().map(|infer| inference(infer, op, model)),
        "combinations": combinations.iter().map(|row| parts::combination(row, op)).collect::<Vec<_>>(),
        "flops": flops.as_ref().map(|formula| expression(formula, op, model)),
        "body": parts::body(body, op, model),
        "derivatives": derivatives.iter().map(|derivative| gradients::backward(derivative, op, model)).collect::<Vec<_>>(),
        "non_differentiable": non_differentiable.iter().map(|index| args[*index].name.as_str()).collect::<Vec<_>>(),
        "forward": gradients::forward(forward, op, model),
        "samples": samples.iter().map(|sample| gradients::sample(sample, op)).collect::<Vec<_>>(),
        "tolerances": tolerances.iter().map(gradients::tolerance).collect::<Vec<_>>(),
        "operators": operators.iter().map(|operator| json!({
            "symbol": operator.symbol.spelling(),
            "reversed": operator.reversed,
        })).collect::<Vec<_>>(),
        "role": role.map(parts::role),
        "supplied": supplied.as_ref().map(parts::supplied),
        "origin": origin.as_ref().map(parts::note),
        "alias_of": alias_of.and_then(|id| model.ops.get(id.0)).map(|op| op.name.as_str()),
    });
    merge(&mut value, about(facts, args));
    value
}

/// Facts about the operator, apart from its computation.
fn about(facts: &Facts, args: &[Arg]) -> Value {
    let Facts {
        since,
        deprecated,
        deterministic,
        updates,
        tags,
        known_as,
        backward_only,
        lines,
        notation,
        formula,
    } = facts;
    json!({
        "since": since,
        "deprecated": deprecated.as_ref().map(|deprecated| json!({
            "since": deprecated.since,
            "use": deprecated.instead.as_ref().map(|(name, _)| name),
        })),
        "deterministic": deterministic,
        "updates": updates,
        "tags": tags,
        "known_as": known_as,
        "backward_only": backward_only,
        "lines": lines.map(|lines| parts::lines(lines, args)),
        "formula": formula.as_ref().map(|formula| formula.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>()),
        "notation": notation.iter().map(|part| parts::notation(part, args)).collect::<Vec<_>>(),
    })
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

fn inference(infer: &Infer, op: &Op, model: &Model) -> Value {
    let Infer { shapes, dtypes, compute, length, function, run_sizes, run_shapes } = infer;
    let bounds: Vec<Value> = run_sizes
        .iter()
        .map(|(name, bound)| json!({ "name": name, "at_most": expression(bound, op, model) }))
        .collect();
    let all = |rules: &[opsmith_codegen::model::expr::Expr]| {
        rules.iter().map(|rule| expression(rule, op, model)).collect::<Vec<_>>()
    };
    json!({
        "length": length.as_ref().map(|length| expression(length, op, model)),
        "shapes": all(shapes),
        "dtypes": all(dtypes),
        "compute": expression(compute, op, model),
        "function": function,
        "run_sizes": bounds,
        "run_shapes": all(run_shapes),
    })
}

fn scalar_function(function: &Function) -> Value {
    let Function {
        name,
        doc,
        params,
        returns,
        rust,
        dtypes,
        derivatives,
        wirtinger,
        operator,
        span: _,
        entry: _,
        parent: _,
    } = function;
    let by_parameter: Map<String, Value> =
        params.iter().zip(derivatives).map(|(param, text)| (param.clone(), json!(text))).collect();
    let wirtinger: Map<String, Value> =
        params.iter().zip(wirtinger).map(|(param, texts)| (param.clone(), json!(texts))).collect();
    json!({
        "name": name,
        "doc": doc,
        "parameters": params,
        "returns": match returns {
            FunctionReturn::Element => "element",
            FunctionReturn::Real => "real",
            FunctionReturn::Bool => "bool",
        },
        "rust": rust,
        "dtypes": parts::dtypes(*dtypes),
        "derivatives": by_parameter,
        "wirtinger": wirtinger,
        "operator": operator,
    })
}

/// The dtypes of each backend, by the key of `dispatch`.
pub(crate) fn by_backend<T>(values: &[T; Backend::COUNT], each: impl Fn(&T) -> Value) -> Value {
    let rows = Backend::ALL.map(|backend| (backend.key().to_owned(), each(&values[backend.index()])));
    Value::Object(rows.into_iter().collect())
}
