//! The folder for CANN: definitions of operators with inference of shapes and dtypes. Kernels stay the user's.
//!
//! In: operators of the model. Out: a definition in C++ for each, the rules that they call, and a list in JSON; or the reason why CANN cannot
//! have an operator.

mod attributes;
mod dtypes;
mod rules;

use minijinja::{Value, context};
use opsmith_codegen::analysis::composed;
use opsmith_codegen::model::expr::{Expr, ExprKind, Query, Variable};
use opsmith_codegen::model::{Kind, Model, Op};
use opsmith_core::rules::{DTypeRule, Rule, ShapeRule};
use opsmith_core::{DType, promote};
use serde_json::json;

use self::attributes::{Attribute, DefinedInput};
use self::dtypes::{Column, ORDER, columns};
use self::rules::{InferredFacts, Translator, element_type, literal};
use super::Chosen;
use crate::scaffold::{Refusal, render};

const OP: &str = include_str!("../templates/cann_op.cpp.j2");
const RULES: &str = include_str!("../templates/cann_rules.h");
const README: &str = include_str!("../templates/cann_readme.md.j2");

/// An operator as CANN has it.
struct Definition<'a> {
    model: &'a Model,
    op: &'a Op,
    /// Its type: `AddTensor` of `add.Tensor`.
    kind: String,
    inputs: Vec<DefinedInput>,
    attributes: Vec<Attribute>,
    shapes: Vec<Expr>,
    dtypes: Vec<Expr>,
    columns: Vec<Column>,
}

/// The reason for which CANN cannot have an operator that other frameworks can; `None` if it can.
pub fn refusal(model: &Model, op: &Op) -> Option<String> {
    Definition::of(model, op).and_then(|definition| definition.lines().map(drop)).err()
}

/// The type of an operator: its name in words that begin with capitals.
fn type_name(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    words.map(capital).collect()
}

/// The argument whose fact a rule gives unchanged.
fn followed(rule: &Expr) -> Option<usize> {
    match &rule.kind {
        ExprKind::Convert(inner) => followed(inner),
        ExprKind::Query(Query::Sizes | Query::DType, of, _) => followed(of),
        // Of one operand, these give its own.
        ExprKind::Rule(
            Rule::Shape(ShapeRule::Follow | ShapeRule::Broadcast)
            | Rule::DType(DTypeRule::Follow | DTypeRule::Same | DTypeRule::Promote),
            args,
        ) => match &args[..] {
            [only] => followed(only),
            _ => None,
        },
        ExprKind::Variable(Variable::Arg(index)) => Some(*index),
        _ => None,
    }
}

/// The sources of an operator's inference.
struct Lines {
    shapes: Vec<String>,
    dtypes: Vec<String>,
    follows: Option<(usize, &'static str)>,
}

impl<'a> Definition<'a> {
    fn of(model: &'a Model, op: &'a Op) -> Result<Self, String> {
        if op.gives_list() {
            return Err(
                "its result is a list of tensors, whose rules CANN's inference has no place for".to_owned()
            );
        }
        let (inputs, attributes) = (attributes::inputs(op)?, attributes::attributes(op)?);
        let count = op.visible().len();
        let (shapes, dtypes) = match &op.infer {
            Some(infer) if infer.function.is_some() => {
                let path = infer.function.as_deref().unwrap_or_default();
                return Err(format!("a function in Rust, `{path}`, computes the shapes of its results"));
            }
            Some(infer) if !infer.run_sizes.is_empty() => {
                return Err("sizes of its results are known after a run only".to_owned());
            }
            Some(infer) => (infer.shapes[..count].to_vec(), infer.dtypes[..count].to_vec()),
            None => {
                let all = |rule: fn(&Model, &Op, usize) -> Option<Expr>| {
                    (0..count).map(|at| rule(model, op, at)).collect::<Option<Vec<_>>>()
                };
                let found = all(composed::shape).zip(all(composed::dtype));
                found.ok_or("the operators that it consists of have no rules which together are one")?
            }
        };
        let columns = columns(model, op, &dtypes);
        Ok(Definition { model, op, kind: type_name(&op.name), inputs, attributes, shapes, dtypes, columns })
    }

    /// An input whose shape or dtype every call gives.
    fn required(&self, rule: &Expr) -> Option<usize> {
        let index = followed(rule)?;
        let is_required = |input: &DefinedInput| input.argument == index && input.kind == "REQUIRED";
        self.inputs.iter().any(is_required).then_some(index)
    }

    /// The input that the only result follows, and in which facts: `ALL`, `SHAPE` or `DTYPE`. Conditions are checked by inference of shapes,
    /// beside which CANN has no following of shapes.
    fn follows(&self) -> Option<(usize, &'static str)> {
        let ([shape], [dtype]) = (&self.shapes[..], &self.dtypes[..]) else { return None };
        let shape = self.required(shape).filter(|_| self.op.checks.is_empty());
        match (shape, self.required(dtype)) {
            (Some(shape), Some(dtype)) if shape == dtype => Some((shape, "ALL")),
            (Some(shape), _) => Some((shape, "SHAPE")),
            (None, Some(dtype)) => Some((dtype, "DTYPE")),
            (None, None) => None,
        }
    }

    /// A statement for each argument that rules read.
    fn readings(&self, translator: &Translator<'_>) -> Result<Vec<String>, String> {
        let one = |index: usize| {
            let arg = &self.op.args[index];
            if let Some(at) = self.inputs.iter().position(|input| input.argument == index) {
                let reader = self.inputs[at].kind.to_lowercase();
                let ty = if self.inputs[at].kind == "DYNAMIC" { "Tensors" } else { "Tensor" };
                return Ok(format!("const {ty} arg_{} = {reader}(context, {at});", arg.name));
            }
            let found = self.attributes.iter().position(|attribute| attribute.argument == index);
            let reader = found.map_or("", |at| self.attributes[at].reader);
            if reader.is_empty() {
                return Err(format!("a rule reads `{}`, {}, which no attribute has", arg.name, arg.ty));
            }
            let read = format!("{reader}(context, {})", found.unwrap_or_default());
            let value = match arg.ty.kind {
                Kind::Ints(Some(length)) if !arg.ty.optional => format!("repeated({read}, {length})"),
                _ => read,
            };
            Ok(format!("const auto arg_{} = {value};", arg.name))
        };
        translator.used().into_iter().map(one).collect()
    }

    /// The statements of inference.
    fn lines(&self) -> Result<Lines, String> {
        let follows = self.follows();
        let has_shapes = !matches!(follows, Some((_, "ALL" | "SHAPE")));
        let has_dtypes = !matches!(follows, Some((_, "ALL" | "DTYPE")));
        let (mut shapes, mut dtypes) = (Vec::new(), Vec::new());
        let translator = Translator::new(self.model, self.op, InferredFacts::Sizes);
        for check in self.op.checks.iter().filter(|_| has_shapes) {
            let text = literal(&check.text);
            shapes.push(match translator.translated(&check.condition) {
                Ok(condition) => format!("require([&] {{ return {condition}; }}, {text});"),
                Err(_) => format!("// Left to the kernel: {}", check.text.replace('\n', " ")),
            });
        }
        for (at, rule) in self.shapes.iter().enumerate().filter(|_| has_shapes) {
            let rule = translator.translated(rule)?;
            shapes.push(format!("set_shape(context, {at}, [&] {{ return Numbers({rule}); }});"));
        }
        shapes.splice(0..0, self.readings(&translator)?);
        let translator = Translator::new(self.model, self.op, InferredFacts::DTypes);
        for (at, rule) in self.dtypes.iter().enumerate().filter(|_| has_dtypes) {
            let rule = translator.translated(rule)?;
            dtypes.push(format!("context->SetOutputDataType({at}, {rule});"));
        }
        dtypes.splice(0..0, self.readings(&translator)?);
        if self.columns.is_empty() {
            return Err("no dtypes of CANN are known to go together in its arguments and results".to_owned());
        }
        Ok(Lines { shapes, dtypes, follows })
    }

    /// The name of a result, as frameworks without names of results have it.
    fn output(&self, at: usize) -> String {
        let is_input =
            |name: &String| self.inputs.iter().any(|input| self.op.args[input.argument].name == *name);
        let only = if self.op.visible().len() == 1 { "y".to_owned() } else { format!("y{at}") };
        let name = self.op.visible()[at].name.clone().unwrap_or(only);
        if is_input(&name) { format!("{name}_out") } else { name }
    }

    /// The statements of the definition.
    fn definition(&self, lines: &Lines) -> Vec<String> {
        let list = |all: Vec<&str>| format!("{{{}}}", all.join(", "));
        let types = |dtypes: &mut dyn Iterator<Item = DType>| list(dtypes.filter_map(element_type).collect());
        let formats = list(vec!["ge::FORMAT_ND"; self.columns.len()]);
        let mut found = Vec::new();
        for DefinedInput { argument, kind } in &self.inputs {
            let types = types(&mut self.columns.iter().filter_map(|column| column.inputs[*argument]));
            let name = literal(&self.op.args[*argument].name);
            found.push(format!("this->Input({name}).ParamType({kind}).DataType({types}).Format({formats});"));
        }
        for at in 0..self.op.visible().len() {
            let types = types(&mut self.columns.iter().map(|column| column.outputs[at]));
            let mut line = format!("this->Output({}).ParamType(REQUIRED)", literal(&self.output(at)));
            let source =
                lines.follows.map(|(argument, _)| literal(&self.op.args[argument].name)).unwrap_or_default();
            line += &match lines.follows {
                Some((_, "ALL")) => format!(".Follow({source})"),
                Some((_, "DTYPE")) => format!(".Format({formats}).Follow({source}, FollowType::DTYPE)"),
                Some((_, kind)) => {
                    format!(".DataType({types}).Format({formats}).Follow({source}, FollowType::{kind})")
                }
                None => format!(".DataType({types}).Format({formats})"),
            };
            found.push(line + ";");
        }
        for Attribute { name, kind: [kind, _], default, .. } in &self.attributes {
            let (need, value) =
                default.as_ref().map_or(("REQUIRED", ""), |(value, _)| ("OPTIONAL", value.as_str()));
            found.push(format!("this->Attr({}).AttrType({need}).{kind}({value});", literal(name)));
        }
        if !lines.shapes.is_empty() {
            found.push("this->SetInferShape(::infer_shape);".to_owned());
        }
        if !lines.dtypes.is_empty() {
            found.push("this->SetInferDataType(::infer_dtype);".to_owned());
        }
        found
    }

    /// The definition as tools that make projects read it.
    fn json(&self) -> serde_json::Value {
        let name = |dtype: DType| if dtype == DType::F32 { "float" } else { dtype.name() };
        let formats = vec!["ND"; self.columns.len()];
        let input = |input: &DefinedInput| {
            let types: Vec<&str> =
                self.columns.iter().filter_map(|column| column.inputs[input.argument].map(name)).collect();
            let (param, kind) = (&self.op.args[input.argument].name, input.kind.to_lowercase());
            json!({"name": param, "param_type": kind, "format": formats, "type": types})
        };
        let output = |at: usize| {
            let types: Vec<&str> = self.columns.iter().map(|column| name(column.outputs[at])).collect();
            json!({"name": self.output(at), "param_type": "required", "format": formats, "type": types})
        };
        let attribute = |attribute: &Attribute| {
            let [_, kind] = attribute.kind;
            match &attribute.default {
                None => json!({"name": attribute.name, "param_type": "required", "type": kind}),
                Some((_, value)) => {
                    json!({"name": attribute.name, "param_type": "optional", "type": kind, "default_value": value})
                }
            }
        };
        json!({
            "op": self.kind,
            "input_desc": self.inputs.iter().map(input).collect::<Vec<_>>(),
            "output_desc": (0..self.op.visible().len()).map(output).collect::<Vec<_>>(),
            "attr": self.attributes.iter().map(attribute).collect::<Vec<_>>(),
        })
    }
}

/// The tables of dtypes of `cann_rules.h`: a row for each, and the promoted dtypes of pairs by their places.
fn tables() -> (String, String) {
    let name = |dtype: DType| element_type(dtype).unwrap_or("ge::DT_UNDEFINED");
    let row = |dtype: DType| {
        let parts = [dtype.to_real(), dtype.to_compute(), dtype.to_complex()].map(name).join(", ");
        format!("    {{{}, {}, {parts}}},", name(dtype), dtype.category() as u8)
    };
    let place = |dtype: DType| ORDER.iter().position(|known| *known == dtype).map_or(-1, |at| at as i64);
    let pairs = |a: DType| {
        let all = ORDER.map(|b| promote(a, b).map_or(-1, place).to_string());
        format!("    {{{}}},", all.join(", "))
    };
    (ORDER.map(row).join("\n"), ORDER.map(pairs).join("\n"))
}

/// The files, with their paths in the folder.
pub fn files(model: &Model, chosen: &Chosen, shared: &Value) -> Result<Vec<(String, String)>, Refusal> {
    let (rows, promoted) = tables();
    let mut files = vec![(
        "op_host/cann_rules.h".to_owned(),
        render(RULES, context! { rows, promoted, ..shared.clone() })?,
    )];
    let (mut list, mut kinds) = (Vec::new(), Vec::new());
    for place in &chosen.operators {
        let op = &model.ops[*place];
        let definition = Definition::of(model, op)?;
        let lines = definition.lines()?;
        let kind = definition.kind.clone();
        let path = format!("op_host/{}.cpp", kind.to_lowercase());
        if files.iter().any(|(known, _)| *known == path) {
            return Err(Refusal::Because(format!(
                "`{}` has the same name in CANN as another operator: {kind}; name only one of them",
                op.name
            )));
        }
        let context = context! {
            name => op.name.as_str(),
            signature => op.signature.as_str(),
            kind => kind.as_str(),
            definition => definition.definition(&lines),
            shapes => lines.shapes,
            dtypes => lines.dtypes,
            ..shared.clone()
        };
        files.push((path, render(OP, context)?));
        list.push(definition.json());
        kinds.push(kind);
    }
    let json = serde_json::to_string_pretty(&list).map_err(|error| Refusal::Because(error.to_string()))?;
    files.push(("operators.json".to_owned(), json + "\n"));
    files.push(("README.md".to_owned(), render(README, context! { kinds, ..shared.clone() })?));
    Ok(files)
}
