//! The arguments of an operator: types, defaults, and element types for kernels.

use opsmith_core::{DType, DTypeSet, MemoryFormat};

use super::{Context, attributes, combinations, dtypes, facts, supplied, types};
use crate::diagnostics::{Reported, Span, catalogue};
use crate::model::{Arg, Default, Element, Kind, Ty};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{OfArguments, RawOp, Text, keys};
use crate::spec::schema::{Argument, DefaultValue, Schema};

pub(super) fn lower(
    context: &mut Context<'_>,
    raw: &RawOp,
    schema: &Schema,
    of_file: &OfArguments,
) -> Result<Vec<Arg>, Reported> {
    let elements = element_types(context, raw, schema);
    check_names(context, raw, schema);
    let (contiguous, rounded) = (raw.texts(KeyName::Contiguous), raw.texts(KeyName::Rounded));
    let constraints = attributes::lower(context, raw, schema);
    let aliases = facts::argument_aliases(context, raw, schema, &of_file.aliases);
    let described = raw.text_map(KeyName::Descriptions);
    let values = facts::value_uses(context, raw, schema);
    let numbers = facts::number_uses(context, raw, schema);
    let lowered: Vec<Result<Arg, Reported>> = schema
        .args
        .iter()
        .zip(aliases)
        .zip(values)
        .zip(numbers)
        .map(|(((arg, aliases), value), number)| {
            let ty = argument_type(context, raw, arg)?;
            let element = match elements.iter().find(|(name, _)| *name == arg.name) {
                Some((_, element)) => *element,
                None if ty.holds_tensors() && combinations::names(raw, &arg.name) => Element::Any,
                None if ty.holds_tensors() => Element::Dispatch,
                None => Element::NotTensor,
            };
            let default = default(context, raw, arg, &ty)?;
            let written = constraints.iter().find(|written| written.name == arg.name);
            if let (Some(default), Some(declared), Some(written)) = (&default, &arg.default, written) {
                let place = raw.func.span_within(declared.range.clone(), context.sources);
                attributes::check_default(context, default, (place, &ty), written);
            }
            Ok(Arg {
                name: arg.name.clone(),
                doc: facts::description(&described, &of_file.descriptions, &arg.name),
                ty,
                default,
                keyword_only: arg.kwarg_only,
                element,
                contiguous: contiguous.iter().any(|name| name.as_str() == arg.name),
                rounded: rounded.iter().any(|name| name.as_str() == arg.name),
                constraints: written.map(|written| written.constraints.clone()).unwrap_or_default(),
                aliases,
                value,
                number,
            })
        })
        .collect();
    lowered.into_iter().collect()
}

/// Reports names in lists of arguments that are those of no argument, or of one of another type.
fn check_names(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) {
    for name in raw.texts(KeyName::Contiguous) {
        if schema.arg(name.as_str()).is_none_or(|arg| !arg.ty.is_tensor_like()) {
            context.push(unknown_argument(name.as_str(), name.span(), schema));
        }
    }
    for name in raw.texts(KeyName::Rounded) {
        let is_number = |arg: &Argument| {
            types::of_signature(&arg.ty).is_some_and(|ty| matches!(ty.kind, Kind::Scalar | Kind::Float))
        };
        if !schema.arg(name.as_str()).is_some_and(is_number) {
            let numbers: Vec<&str> =
                schema.args.iter().filter(|arg| is_number(arg)).map(|arg| arg.name.as_str()).collect();
            let op = schema.name.to_string();
            context.push(catalogue::number_argument_unknown(name.span(), &op, name.as_str(), &numbers));
        }
    }
    for name in raw.texts(KeyName::Ignored) {
        if schema.arg(name.as_str()).is_none() {
            let known: Vec<&str> = schema.args.iter().map(|arg| arg.name.as_str()).collect();
            let op = schema.name.to_string();
            context.push(catalogue::argument_unknown(name.span(), &op, name.as_str(), &known));
        }
    }
}

fn argument_type(context: &mut Context<'_>, raw: &RawOp, arg: &Argument) -> Result<Ty, Reported> {
    // A list of tensors may be empty or have absent items, but is never absent itself.
    let supported = |ty: &Ty| !ty.optional || !matches!(ty.kind, Kind::Tensors | Kind::OptionalTensors);
    let ty = types::of_signature(&arg.ty).filter(supported).or_else(|| supplied::foreign(raw, &arg.ty));
    ty.ok_or_else(|| {
        let place = raw.func.span_within(arg.type_range.clone(), context.sources);
        context.push(catalogue::type_unsupported(place, &arg.ty.to_string()));
        Reported
    })
}

/// The default, if there is one.
///
/// # Errors
/// If the runtime has no such value.
fn default(
    context: &mut Context<'_>,
    raw: &RawOp,
    arg: &Argument,
    ty: &Ty,
) -> Result<Option<Default>, Reported> {
    let Some(default) = &arg.default else { return Ok(None) };
    let value = default_value(&default.value, ty);
    if value.is_none() {
        let place = raw.func.span_within(default.range.clone(), context.sources);
        context.push(catalogue::default_unsupported(place, &default.text, &ty.to_string()));
        return Err(Reported);
    }
    Ok(value)
}

/// `types: {index: int64, condition: bool, weight: real, source: any, ids: [int64, int32]}`
fn element_types(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Vec<(String, Element)> {
    const EXAMPLE: &str = "{index: int64, ids: [int64, int32]}";
    let Some(node) = raw.get(KeyName::Types) else { return Vec::new() };
    let Some(entries) = node.as_map() else {
        context.push(catalogue::not_a_mapping(node.span, "types", EXAMPLE));
        return Vec::new();
    };
    let mut found = Vec::new();
    for (key, value) in entries {
        if schema.arg(&key.text).is_none_or(|arg| !arg.ty.is_tensor_like()) {
            context.push(unknown_argument(&key.text, key.span, schema));
            continue;
        }
        let Some(words) = dtypes::words(context, "types", EXAMPLE, value) else { continue };
        if let Some(element) = element_type(context, &words) {
            found.push((key.text.clone(), element));
        }
    }
    found
}

fn element_type(context: &mut Context<'_>, words: &[Text]) -> Option<Element> {
    if let [word] = words {
        let [any, real, opmath] = keys::ELEMENT_WORDS;
        match word.as_str() {
            word if word == any => return Some(Element::Any),
            word if word == real => return Some(Element::Real),
            word if word == opmath => return Some(Element::Opmath),
            _ => {}
        }
    }
    const HINT: &str =
        "use dtype names such as `int64`, a set such as `integer`, or one of `real`, `opmath` and `any`";
    let mut first = None;
    let mut accepted = DTypeSet::EMPTY;
    for word in words {
        let set = dtypes::set(context, word, &keys::ELEMENT_WORDS, HINT)?;
        first = first.or_else(|| DType::from_name(word.as_str()).or_else(|| set.iter().last()));
        accepted = accepted.union(set);
    }
    first.map(|kernel| Element::Fixed { kernel, accepted })
}

pub(super) fn unknown_argument(name: &str, span: Span, schema: &Schema) -> crate::diagnostics::Diagnostic {
    let tensors: Vec<&str> =
        schema.args.iter().filter(|arg| arg.ty.is_tensor_like()).map(|arg| arg.name.as_str()).collect();
    let ty = schema.arg(name).map(|arg| arg.ty.to_string());
    catalogue::tensor_argument_unknown(span, &schema.name.to_string(), name, ty, &tensors)
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
        (Kind::DType, DefaultValue::Ident(name)) => Default::DType(DType::from_name(name)?),
        (Kind::MemoryFormat, DefaultValue::Ident(name)) => {
            Default::MemoryFormat(MemoryFormat::from_name(name)?)
        }
        (list, DefaultValue::List(items)) => {
            let item = list.item().filter(|item| !item.holds_tensors())?;
            Default::List(items.iter().map(|value| default_value(value, &item)).collect::<Option<_>>()?)
        }
        // One value is repeated to the declared length.
        (list @ (Kind::Ints(Some(length)) | Kind::Bools(Some(length))), value) => {
            Default::List(vec![default_value(value, &list.item()?)?; *length as usize])
        }
        _ => return None,
    })
}
