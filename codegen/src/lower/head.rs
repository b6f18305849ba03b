//! The head of an operator: what callers need to know. No expression is read here.

use opsmith_core::{DType, DTypeSet};

use super::{Context, forms};
use crate::diagnostics::{Diagnostic, Span, nearest};
use crate::model::{Arg, Body, Default, Element, Kind, Op, Operator, Output, Role, Symbol, Ty};
use crate::spec::document::{RawOp, Text};
use crate::spec::schema::{Argument, DefaultValue, Schema, SchemaKind};

pub(super) fn lower(context: &mut Context<'_>, raw: &RawOp, external: bool) -> Option<Op> {
    let schema = raw.parse_schema(context.sources, context.diagnostics)?;
    if schema.kind() != SchemaKind::Functional {
        let place = raw.func.span_within(schema.name_range.clone(), context.sources);
        context.diagnostics.push(
            Diagnostic::error("E0402", format!("`{}` writes its arguments", schema.name), place, "not a functional form")
                .with_help("declare the form that returns new tensors and add `variants: [functional, inplace, out]`; the others are generated from it"),
        );
        return None;
    }
    let args = args(context, raw, &schema);
    let outputs = outputs(context, raw, &schema);
    let (args, outputs) = (args?, outputs?);
    let forms = forms::lower(context, raw, &schema, &args, &outputs);
    let location = context.sources.location(raw.func.span());
    let location = location.rsplit_once(':').map_or(location.as_str(), |(line, _)| line).to_owned();
    Some(Op {
        name: schema.name.to_string(),
        base: schema.name.spelling(),
        signature: schema.to_string(),
        external,
        span: raw.func.span(),
        entry: raw.span,
        location,
        doc: raw.text("doc").map(|doc| doc.as_str().trim_end().to_owned()).unwrap_or_default(),
        rust_name: raw
            .text("rust_name")
            .map_or_else(|| forms::rust_name(&schema), |name| name.as_str().to_owned()),
        method: args.first().is_some_and(|arg| arg.name == "self" && arg.ty.is_tensor()),
        args,
        outputs,
        forms,
        checks: Vec::new(),
        infer: None,
        body: Body::default(),
        derivatives: Vec::new(),
        non_differentiable: Vec::new(),
        operators: operators(context, raw),
        role: role(context, raw),
    })
}

fn args(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Option<Vec<Arg>> {
    let mut elements = element_types(context, raw, schema);
    let contiguous = raw.texts("contiguous");
    for name in &contiguous {
        if schema.arg(name.as_str()).is_none() {
            context.diagnostics.push(unknown_argument(name.as_str(), name.span(), schema));
        }
    }
    let lowered: Vec<Option<Arg>> = schema
        .args
        .iter()
        .map(|arg| {
            let ty = argument_type(context, raw, arg)?;
            let element = match elements.iter().position(|(name, _)| *name == arg.name) {
                Some(position) => elements.swap_remove(position).1,
                None if ty.holds_tensors() => Element::Dispatch,
                None => Element::NotTensor,
            };
            let default = match &arg.default {
                Some(default) => Some(default_value(&default.value, &ty).or_else(|| {
                    let place = raw.func.span_within(default.range.clone(), context.sources);
                    context.diagnostics.push(Diagnostic::error(
                        "E0404",
                        format!("`{}` is not a default for `{ty}`", default.text),
                        place,
                        "of another type",
                    ));
                    None
                })?),
                None => None,
            };
            Some(Arg {
                name: arg.name.clone(),
                ty,
                default,
                keyword_only: arg.kwarg_only,
                element,
                contiguous: contiguous.iter().any(|name| name.as_str() == arg.name),
            })
        })
        .collect();
    lowered.into_iter().collect()
}

fn argument_type(context: &mut Context<'_>, raw: &RawOp, arg: &Argument) -> Option<Ty> {
    let ty = Ty::from_schema(&arg.ty);
    if ty.is_none() {
        let place = raw.func.span_within(arg.type_range.clone(), context.sources);
        context.diagnostics.push(
            Diagnostic::error("E0405", format!("the runtime has no values of type `{}`", arg.ty), place, "unsupported type")
                .with_help("use Tensor, Scalar, int, float, bool, str, ScalarType, Device, Generator, MemoryFormat, or a list or optional of them"),
        );
    }
    ty
}

fn outputs(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Option<Vec<Output>> {
    let flags = raw.texts("output_differentiability");
    let mut lowered: Vec<Option<Output>> = schema
        .returns
        .iter()
        .map(|result| {
            let Some(ty) = Ty::from_schema(&result.ty) else {
                let place = raw.func.span_within(result.range.clone(), context.sources);
                context.diagnostics.push(Diagnostic::error(
                    "E0405",
                    format!("the runtime has no values of type `{}`", result.ty),
                    place,
                    "unsupported type",
                ));
                return None;
            };
            Some(Output { name: result.name.clone(), ty, element: Element::Dispatch, differentiable: true })
        })
        .collect();
    if !flags.is_empty() && flags.len() != lowered.len() {
        context.diagnostics.push(Diagnostic::error(
            "E0414",
            format!("`{}` has {} outputs", schema.name, lowered.len()),
            flags[0].span(),
            format!("{} flags given; list one for each output", flags.len()),
        ));
    }
    for (flag, output) in flags.iter().zip(lowered.iter_mut().flatten()) {
        match flag.as_str() {
            "true" | "True" => {}
            "false" | "False" => output.differentiable = false,
            _ => context.diagnostics.push(Diagnostic::error(
                "E0414",
                "this is not a flag",
                flag.span(),
                "write `true` or `false`",
            )),
        }
    }
    lowered.into_iter().collect()
}

/// `types: {index: int64, condition: bool, weight: real, source: any, ids: [int64, int32]}`
fn element_types(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Vec<(String, Element)> {
    let Some(node) = raw.get("types") else { return Vec::new() };
    let Some(entries) = node.as_map() else {
        context.diagnostics.push(
            Diagnostic::error("E0406", "`types` maps arguments to dtypes", node.span, "not a mapping")
                .with_help("write `types: {index: int64}`"),
        );
        return Vec::new();
    };
    let mut found = Vec::new();
    for (key, value) in entries {
        if schema.arg(&key.text).is_none_or(|arg| !arg.ty.is_tensor_like()) {
            context.diagnostics.push(unknown_argument(&key.text, key.span, schema));
            continue;
        }
        let words: Vec<Text> = match value.as_seq() {
            Some(items) => items.iter().map(|node| Text { node: node.clone() }).collect(),
            None => vec![Text { node: value.clone() }],
        };
        if let Some(element) = element_type(context, &words) {
            found.push((key.text.clone(), element));
        }
    }
    found
}

fn element_type(context: &mut Context<'_>, words: &[Text]) -> Option<Element> {
    if let [word] = words
        && let Some((element, _)) = Element::WORDS.iter().find(|(_, known)| *known == word.as_str())
    {
        return Some(*element);
    }
    let mut first = None;
    let mut accepted = DTypeSet::EMPTY;
    for word in words {
        let Some(set) = DTypeSet::from_name(word.as_str()) else {
            let names = DTypeSet::NAMED
                .iter()
                .map(|(name, _)| *name)
                .chain(DType::ALL.iter().map(|dtype| dtype.name()));
            let near = nearest(word.as_str(), names.chain(Element::WORDS.map(|(_, known)| known)))
                .map(|near| format!("did you mean `{near}`?"));
            context.diagnostics.push(
                Diagnostic::error(
                    "E0407",
                    format!("there is no dtype `{}`", word.as_str()),
                    word.span(),
                    "unknown",
                )
                .with_help("use dtype names such as `int64`, a set such as `integer`, `real` or `any`")
                .with_help_if(near),
            );
            return None;
        };
        first = first.or_else(|| DType::from_name(word.as_str()).or_else(|| set.iter().last()));
        accepted = accepted.union(set);
    }
    first.map(|kernel| Element::Fixed(kernel, accepted))
}

fn unknown_argument(name: &str, span: Span, schema: &Schema) -> Diagnostic {
    let names: Vec<&str> = schema.args.iter().map(|arg| arg.name.as_str()).collect();
    let help = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the arguments are: {}", names.join(", ")),
    };
    Diagnostic::error(
        "E0408",
        format!("`{}` has no tensor argument `{name}`", schema.name),
        span,
        "no such argument",
    )
    .with_help(help)
}

fn default_value(value: &DefaultValue, ty: &Ty) -> Option<Default> {
    if *value == DefaultValue::None {
        return ty.optional.then_some(Default::None);
    }
    Some(match (&ty.kind, value) {
        (Kind::Bool | Kind::Scalar, DefaultValue::Bool(value)) => Default::Bool(*value),
        (Kind::Int | Kind::Scalar, DefaultValue::Int(value)) => Default::Int(*value),
        (Kind::Int, DefaultValue::Ident(_)) => Default::Int(value.as_int()?),
        (Kind::Float | Kind::Scalar, DefaultValue::Float(value)) => Default::Float(*value),
        (Kind::Float, DefaultValue::Int(value)) => Default::Float(*value as f64),
        (Kind::Str, DefaultValue::Str(value)) => Default::Str(value.clone()),
        (Kind::Ints(Some(length)), DefaultValue::Int(value)) => Default::Ints(vec![*value; *length as usize]),
        (Kind::Ints(_), DefaultValue::List(_)) => Default::Ints(value.as_int_list()?),
        (Kind::Bools(Some(length)), DefaultValue::Bool(value)) => {
            Default::Bools(vec![*value; *length as usize])
        }
        (Kind::Floats, DefaultValue::List(items)) => Default::Floats(
            items
                .iter()
                .map(|item| match item {
                    DefaultValue::Float(value) => Some(*value),
                    DefaultValue::Int(value) => Some(*value as f64),
                    _ => None,
                })
                .collect::<Option<_>>()?,
        ),
        (Kind::DType, DefaultValue::Ident(name)) => Default::DType(DType::from_name(name)?),
        (Kind::MemoryFormat, DefaultValue::Ident(name)) => Default::MemoryFormat(match name.as_str() {
            "contiguous_format" => "Contiguous",
            "preserve_format" => "Preserve",
            "channels_last" => "ChannelsLast",
            "channels_last_3d" => "ChannelsLast3d",
            _ => return None,
        }),
        _ => return None,
    })
}

fn operators(context: &mut Context<'_>, raw: &RawOp) -> Vec<Operator> {
    let mut found = Vec::new();
    for text in raw.texts("operator") {
        let (reversed, spelling) = match text.as_str().strip_prefix("reversed ") {
            Some(rest) => (true, rest.trim()),
            None => (false, text.as_str().trim()),
        };
        match Symbol::ALL.iter().find(|(_, known)| *known == spelling) {
            Some((symbol, _)) => found.push(Operator { symbol: *symbol, reversed }),
            None => {
                let known: Vec<&str> = Symbol::ALL.iter().map(|(_, known)| *known).collect();
                context.diagnostics.push(
                    Diagnostic::error(
                        "E0409",
                        format!("`{spelling}` is not an operator"),
                        text.span(),
                        "unknown symbol",
                    )
                    .with_help(format!("the operators are: {}", known.join("  "))),
                );
            }
        }
    }
    found
}

fn role(context: &mut Context<'_>, raw: &RawOp) -> Option<Role> {
    let text = raw.text("role")?;
    let found = Role::ALL.iter().find(|(_, name)| *name == text.as_str()).map(|(role, _)| *role);
    if found.is_none() {
        let known: Vec<&str> = Role::ALL.iter().map(|(_, name)| *name).collect();
        context.diagnostics.push(
            Diagnostic::error(
                "E0410",
                format!("there is no role `{}`", text.as_str()),
                text.span(),
                "unknown role",
            )
            .with_help(format!("the roles are: {}", known.join(", "))),
        );
    }
    found
}
