//! The sizes of results as formulas of the sizes of arguments, as symbolic inference finds them at a sample, recorded for documents.
//!
//! In: a sample, the symbols of its sizes, and the inferred results, which calls at other sizes confirmed. Out: lines of results.

use opsmith::{Tensor, Value};
use opsmith_runtime::facts::ValueUse;
use opsmith_runtime::infer::symbolic::{Condition, Context, Meta, Origin, OutputsMeta, Size, Symbol};
use opsmith_runtime::op::{ArgDef, OpDef};
use serde_json::{Value as Json, json};

use crate::results;

/// The most samples of an operator that are recorded.
const MOST: usize = 4;
/// The most conditions of a sample that are recorded.
const MOST_CONDITIONS: usize = 4;
/// The longest text of an attribute.
const LONGEST: usize = 60;

/// The recorded samples of an operator, so that each says something new.
#[derive(Default)]
pub(super) struct Recorded {
    lines: Vec<Json>,
}

impl Recorded {
    /// Records a sample, unless there are some already, or one says the same.
    pub fn add(
        &mut self,
        op: &OpDef,
        values: &[Value],
        symbols: &[Symbol],
        outputs: &OutputsMeta,
        context: &Context,
    ) {
        if !results::wanted() || self.lines.len() >= MOST {
            return;
        }
        let mut symbols =
            symbols.iter().map(|symbol| Size::from(*symbol).named(&context.symbols).to_string());
        let line = json!({
            "arguments": arguments(op, values, &mut symbols),
            "results": outputs.outs.iter().map(|out| result(out, context)).collect::<Vec<_>>(),
            "conditions": conditions(context),
            "run": run_sizes(outputs, context),
        });
        if !self.lines.contains(&line) {
            results::record_sizes(op, &line);
            self.lines.push(line);
        }
    }
}

/// The arguments that are tensors, by their sizes, and the attributes that have not their defaults.
fn arguments(op: &OpDef, values: &[Value], symbols: &mut dyn Iterator<Item = String>) -> Vec<Json> {
    let mut found = Vec::new();
    for (def, value) in op.schema.args.iter().zip(values) {
        let mut sizes = |tensor: &Tensor| match def.value {
            ValueUse::Required => json!({ "constant": tensor.shape() }),
            _ => Json::from(symbols.take(tensor.dim()).collect::<Vec<String>>()),
        };
        let mut shown = match value {
            Value::Tensor(tensor) => json!({ "sizes": sizes(tensor) }),
            Value::Tensors(list) => json!({ "list": list.iter().map(sizes).collect::<Vec<_>>() }),
            Value::OptionalTensors(list) => {
                let each = list.iter().map(|one| one.as_ref().map_or(Json::Null, &mut sizes));
                json!({ "list": each.collect::<Vec<_>>() })
            }
            other => match attribute(def, other) {
                Some(text) => json!({ "value": text }),
                None => continue,
            },
        };
        shown["name"] = json!(def.name);
        found.push(shown);
    }
    found
}

/// An attribute in words, unless it is absent or has its default.
fn attribute(def: &ArgDef, value: &Value) -> Option<String> {
    let text = match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Scalar(value) => value.to_string(),
        Value::Str(value) => format!("\"{value}\""),
        Value::Ints(values) => format!("{values:?}"),
        Value::Floats(values) => format!("{values:?}"),
        Value::Bools(values) => format!("{values:?}"),
        Value::DType(value) => value.name().to_owned(),
        _ => return None,
    };
    let default = def.default.map(|default| format!("{:?}", default.as_arg(def.ty)));
    let is_default = default.is_some_and(|default| default == format!("{:?}", value.as_arg()));
    (!is_default && text.len() <= LONGEST).then_some(text)
}

/// The sizes of a result as formulas; null for one that no formula gives, or for all if the rank is open.
fn result(out: &Meta, context: &Context) -> Json {
    let size = |size: &Size| match size.is_unknown() {
        true => Json::Null,
        false => json!(size.named(&context.symbols).to_string()),
    };
    out.shape.sizes().map_or(Json::Null, |sizes| sizes.iter().map(size).collect())
}

/// The conditions on sizes under which the formulas hold, without those that are functions.
fn conditions(context: &Context) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for guard in context.guards() {
        if matches!(guard.condition, Condition::Confirmed(_) | Condition::Unknown) {
            continue;
        }
        let text = guard.condition.named(&context.symbols).to_string();
        if !found.contains(&text) && found.len() < MOST_CONDITIONS {
            found.push(text);
        }
    }
    found
}

/// The sizes that only a run decides, with their upper bounds.
fn run_sizes(outputs: &OutputsMeta, context: &Context) -> Vec<Json> {
    let sizes = outputs.outs.iter().flat_map(|out| out.shape.sizes().unwrap_or_default());
    let mut symbols: Vec<Symbol> = sizes.flat_map(Size::symbols).collect();
    symbols.sort_unstable();
    symbols.dedup();
    symbols.retain(|symbol| *context.symbols.origin(*symbol) == Origin::Run);
    let bounded = |symbol: &Symbol| {
        let high = context.symbols.high(*symbol);
        let most = (!high.is_unknown()).then(|| high.named(&context.symbols).to_string());
        json!({ "size": Size::from(*symbol).named(&context.symbols).to_string(), "most": most })
    };
    symbols.iter().map(bounded).collect()
}
