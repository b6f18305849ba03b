//! The head of an operator: the data that callers need. Must not read expressions.

use opsmith_core::MAX_ARGUMENTS;

use super::types;
use super::{Context, args, facts, forms, known, results, roles, supplied};
use crate::analysis::naming;
use crate::diagnostics::{Reported, Span, catalogue};
use crate::expr::check::Lookup;
use crate::expr::path;
use crate::model::{Body, Forward, Kind, Op, Operation, Operator, Output, Role};
use crate::spec::document::keys::KeyName;
use crate::spec::document::{Loaded, OfArguments, RawOp, Text};
use crate::spec::schema::{Return, Schema, SchemaKind};

pub(super) fn lower(
    context: &mut Context<'_>,
    raw: &RawOp,
    loaded: &Loaded,
    of_file: &OfArguments,
) -> Option<Op> {
    let schema = raw.parse_schema(context.sources, context.diagnostics)?;
    let name_place = raw.func.span_within(schema.name_range.clone(), context.sources);
    let supplied = supplied::head(raw, &schema);
    if supplied.is_none() {
        refuse_other_kinds(context, &schema, name_place).ok()?;
    }
    refuse_many_arguments(context, raw, &schema).ok()?;
    let args = args::lower(context, raw, &schema, of_file);
    facts::check_descriptions(context, raw, &schema);
    let outputs = outputs(context, raw, &schema);
    let rust_name = rust_name(context, raw, &schema);
    let (args, outputs) = (args.ok()?, outputs?);
    let forms = forms::lower(context, raw, &schema, &args, &outputs);
    let form_names = [Some(schema.name.to_string()), forms.inplace.clone(), forms.out.clone()];
    let receiver = known::receiver(context, raw, &args);
    let facts = facts::lower(context, raw, &schema);
    let operators = roles::operators(context, raw, &schema, &args, &outputs);
    let role = roles::role(context, raw, &schema, &args, &outputs);
    let origin = supplied::origin(raw);
    Some(Op {
        name: schema.name.to_string(),
        base: schema.name.spelling(),
        signature: schema.to_string(),
        parent: loaded.parent,
        span: name_place,
        entry: raw.span,
        location: location(context, raw),
        doc: raw.text(KeyName::Doc).map(|doc| doc.as_str().trim_end().to_owned()).unwrap_or_default(),
        rust_name,
        merged: None,
        receiver,
        args,
        outputs,
        forms,
        checks: Vec::new(),
        infer: None,
        combinations: Vec::new(),
        flops: None,
        body: Body::default(),
        derivatives: Vec::new(),
        non_differentiable: Vec::new(),
        forward: Forward::None,
        samples: Vec::new(),
        tolerances: Vec::new(),
        operators,
        role,
        supplied: supplied.map(|head| supplied::lower(context, raw, &schema, head, &form_names)),
        origin,
        alias_of: None,
        facts,
    })
}

/// The file and the line of a signature.
fn location(context: &Context<'_>, raw: &RawOp) -> String {
    let location = context.sources.location(raw.func.span());
    location.rsplit_once(':').map_or(location.as_str(), |(line, _)| line).to_owned()
}

/// Reports a signature in another form than the functional one, which only supplied operators may have.
fn refuse_other_kinds(context: &mut Context<'_>, schema: &Schema, place: Span) -> Result<(), Reported> {
    if schema.kind() == SchemaKind::Functional {
        return Ok(());
    }
    context.push(catalogue::not_functional(place, &schema.name.to_string()));
    Err(Reported)
}

/// Reports more arguments than argument sets can hold.
fn refuse_many_arguments(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Result<(), Reported> {
    let Some(extra) = schema.args.get(MAX_ARGUMENTS) else { return Ok(()) };
    let place = raw.func.span_within(extra.range.clone(), context.sources);
    let (name, count) = (schema.name.to_string(), schema.args.len());
    context.push(catalogue::too_many_arguments(place, &name, count, MAX_ARGUMENTS));
    Err(Reported)
}

/// The base name of an entry whose signature cannot be read.
pub(super) fn base_name(raw: &RawOp) -> String {
    let text = raw.func.as_str();
    text.split(['(', '.']).next().unwrap_or_default().trim().trim_end_matches('_').to_owned()
}

/// The base name in a full name.
pub(super) fn base_of(name: &str) -> &str {
    name.split('.').next().unwrap_or_default().trim()
}

/// The lookups that may find an entry: by name, symbol or role.
pub(super) fn lookups(raw: &RawOp) -> Vec<Lookup> {
    let mut lookups = lookups_of_base(base_of(raw.func.as_str().split('(').next().unwrap_or_default()));
    for text in raw.texts(KeyName::Operator) {
        // `-` or `reversed -`; both orders, since a mistake in one may change the other.
        let spelling = text.as_str().rsplit(' ').next().unwrap_or_default();
        let symbols = Operation::ALL.iter().filter(|(_, known)| *known == spelling);
        lookups.extend(symbols.flat_map(|(symbol, _)| {
            [false, true].map(|reversed| Lookup::Symbol(Operator { symbol: *symbol, reversed }))
        }));
    }
    if raw.get(KeyName::Role).is_some() {
        lookups.extend(Role::ALL.iter().map(|(role, _)| Lookup::Role(*role)));
    }
    lookups
}

/// The lookups by a base name; a keyword of Rust is called with an underscore.
pub(super) fn lookups_of_base(base: &str) -> Vec<Lookup> {
    [base.to_owned(), format!("{base}_"), base.trim_end_matches('_').to_owned()].map(Lookup::Base).into()
}

fn rust_name(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> String {
    let Some(text) = raw.text(KeyName::RustName) else {
        return naming::usual_function(&schema.name.spelling(), &schema.name.overload);
    };
    let name = text.as_str();
    if !path::is_identifier(name) || name.chars().any(char::is_uppercase) {
        context.push(catalogue::rust_name_malformed(text.span(), name));
    }
    name.to_owned()
}

fn outputs(context: &mut Context<'_>, raw: &RawOp, schema: &Schema) -> Option<Vec<Output>> {
    let lowered: Vec<Option<Output>> = schema.returns.iter().map(|ret| output(context, raw, ret)).collect();
    let mut lowered = lowered.into_iter().collect::<Option<Vec<_>>>()?;
    if !supplied::is_supplied(raw) {
        refuse_results(context, raw, schema, &lowered)?;
    }
    let flags = raw.texts(KeyName::OutputDifferentiability);
    if let Some(first) = flags.first()
        && flags.len() != lowered.len()
    {
        let name = schema.name.to_string();
        context.push(catalogue::flag_count(first.span(), &name, lowered.len(), flags.len()));
    }
    for (flag, output) in flags.iter().zip(&mut lowered) {
        output.constant = flag.as_str() == "constant";
        output.differentiable = !output.constant && differentiable(context, flag);
    }
    results::hide(context, raw, schema, &mut lowered);
    Some(lowered)
}

fn output(context: &mut Context<'_>, raw: &RawOp, ret: &Return) -> Option<Output> {
    let Some(ty) = types::of_signature(&ret.ty).or_else(|| supplied::foreign(raw, &ret.ty)) else {
        let place = raw.func.span_within(ret.range.clone(), context.sources);
        context.push(catalogue::type_unsupported(place, &ret.ty.to_string()));
        return None;
    };
    let element = crate::model::Element::Dispatch;
    let described = raw.text_map(KeyName::Descriptions);
    let name = ret.name.as_deref().unwrap_or_default();
    Some(Output {
        name: ret.name.clone(),
        doc: facts::description(&described, &[], name),
        ty,
        element,
        differentiable: true,
        constant: false,
        hidden: false,
        present: None,
    })
}

fn differentiable(context: &mut Context<'_>, flag: &Text) -> bool {
    match flag.as_str() {
        "true" | "True" => true,
        "false" | "False" => false,
        _ => {
            context.push(catalogue::flag_malformed(flag.span()));
            true
        }
    }
}

/// Reports results that no generated function can return.
fn refuse_results(context: &mut Context<'_>, raw: &RawOp, schema: &Schema, outputs: &[Output]) -> Option<()> {
    let name = schema.name.to_string();
    let place = |index: usize, context: &Context<'_>| {
        raw.func.span_within(schema.returns[index].range.clone(), context.sources)
    };
    if outputs.is_empty() {
        let place = raw.func.span_within(schema.returns_range.clone(), context.sources);
        context.push(catalogue::returns_nothing(place, &name));
        return None;
    }
    for (index, output) in outputs.iter().enumerate() {
        let alone = outputs.len() == 1;
        let problem = match &output.ty.kind {
            Kind::Tensor if output.ty.optional && raw.get(KeyName::Present).is_some() => continue,
            Kind::Tensor if output.ty.optional => "may be absent, and `present` does not say when",
            _ if output.ty.optional => "may be absent",
            Kind::Tensor => continue,
            Kind::Tensors if alone => continue,
            Kind::Tensors => "a list beside other results",
            Kind::Bool | Kind::Int | Kind::Float | Kind::Scalar | Kind::Str | Kind::Ints(_) | Kind::DType
                if alone =>
            {
                continue;
            }
            _ if alone => "of a type that functions do not return",
            _ => "not a tensor, beside other results",
        };
        context.push(catalogue::results_unsupported(place(index, context), &name, problem));
        return None;
    }
    Some(())
}
