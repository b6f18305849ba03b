//! The static definition of each operator.

use opsmith_core::constraint::{Constraint, Literal};
use opsmith_core::{ArgKind, DTypeSet};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::Generation;
use super::names::{def_name, ident, part_name, position};
use crate::analysis::rows::{defines_gradients, has_kernels, has_rules};
use crate::analysis::uniform::{Uniform, uniform};
use crate::model::{Arg, Combination, Element, Facts, Lines, Op, Ty, ValueUse};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    generation.own_definitions().map(definition).collect()
}

fn definition(op: &Op) -> TokenStream {
    let name = def_name(op);
    let (signature, location) = (&op.signature, &op.location);
    let args = op.args.iter().map(argument);
    let returns = op.outputs.iter().map(|output| {
        let ty = arg_type(&output.ty);
        match &output.name {
            Some(name) => quote!(ReturnDef::named(#name, #ty)),
            None => quote!(ReturnDef::new(#ty)),
        }
    });
    let fields = fields(op);
    quote! {
        pub static #name: OpDef = OpDef {
            #fields
            ..OpDef::declared(#signature, &[#(#args),*], &[#(#returns),*], #location, &library::LIBRARY)
        };
    }
}

/// The fields that are not as in a new definition.
fn fields(op: &Op) -> TokenStream {
    let name = def_name(op);
    let mut fields = TokenStream::new();
    let mut field = |there: bool, name: TokenStream, value: TokenStream| {
        if there {
            fields.extend(quote!(#name: #value,));
        }
    };
    let text = &op.doc;
    field(!text.is_empty(), quote!(doc), quote!(#text));
    let inplace = optional_text(op.forms.inplace.as_deref());
    let out = optional_text(op.forms.out.as_deref());
    let elementwise = op.body.pointwise.is_some();
    let updates = op.facts.updates;
    let has_forms = op.forms.inplace.is_some() || op.forms.out.is_some() || elementwise || updates;
    let forms = quote!(Forms { inplace: #inplace, out: #out, elementwise: #elementwise, updates: #updates });
    field(has_forms, quote!(forms), forms);
    let function = |suffix: &str| {
        let name = part_name(op, suffix);
        quote!(Some(inference::#name))
    };
    field(op.infer.is_some(), quote!(infer), function("infer"));
    let by_function = op.infer.as_ref().is_some_and(|infer| infer.function.is_some());
    field(by_function, quote!(infer_function), function("infer_function"));
    field(has_rules(op), quote!(rules), quote!(Some(&rules::#name)));
    let uniform = uniform(op).map(uniform_value);
    field(uniform.is_some(), quote!(uniform), uniform.unwrap_or_default());
    // An operator that no kernel here computes never sees an element.
    let elements = op.args.iter().map(|arg| element(arg.element));
    field(!op.is_supplied() && !op.args.is_empty(), quote!(element_types), quote!(&[#(#elements),*]));
    let contiguous = contiguous(op);
    field(!contiguous.is_empty(), quote!(contiguous), quote!(bits(&[#(#contiguous),*])));
    let numbers = numbers(op);
    field(!numbers.is_empty(), quote!(numbers), quote!(&[#(#numbers),*]));
    field(has_kernels(op), quote!(kernels), quote!(rt::__kernels_of_entry!(kernel_tables::#name)));
    let flops = flops(op);
    field(flops.is_some(), quote!(flops), flops.unwrap_or_default());
    let combinations = op.combinations.iter().map(combination);
    field(!op.combinations.is_empty(), quote!(combinations), quote!(&[#(#combinations),*]));
    field(op.may_lack_results(), quote!(present), function("present"));
    let kind = if op.gives_list() { quote!(ViewFn::List) } else { quote!(ViewFn::One) };
    let layouts = part_name(op, "view");
    field(op.body.view.is_some(), quote!(view), quote!(Some(#kind(inference::#layouts))));
    field(op.body.composite.is_some(), quote!(composite), function("composite"));
    field(op.body.host.is_some(), quote!(host), function("host"));
    field(defines_gradients(op), quote!(grad), quote!(Some(&gradients::#name)));
    let hidden = op.outputs.len() - op.visible().len();
    let hidden_results = position(hidden);
    field(hidden > 0, quote!(hidden), quote!(#hidden_results));
    let pairs = op.forms.pairs.iter().map(|(argument, output)| {
        let (argument, output) = (position(*argument), position(*output));
        quote!((#argument, #output))
    });
    field(!op.forms.pairs.is_empty(), quote!(inplace_pairs), quote!(&[#(#pairs),*]));
    field(!op.samples.is_empty(), quote!(samples), super::samples::samples(op));
    field(!op.tolerances.is_empty(), quote!(tolerances), super::samples::tolerances(op));
    let facts = facts(&op.facts);
    field(facts.is_some(), quote!(facts), facts.unwrap_or_default());
    fields
}

/// The arguments that kernels get in row-major order. Custom kernels see no strides.
fn contiguous(op: &Op) -> Vec<proc_macro2::Literal> {
    let args = op.args.iter().enumerate();
    let contiguous = args.filter(|(_, arg)| arg.contiguous || op.body.is_aot() && arg.ty.holds_tensors());
    contiguous.map(|(index, _)| position(index)).collect()
}

/// The uses of numbers, by argument.
fn numbers(op: &Op) -> Vec<TokenStream> {
    let numbers = crate::analysis::elements::numbers(op).into_iter().map(|(index, number)| {
        let (index, word) = (position(index), format_ident!("{number:?}"));
        quote!((#index, NumberUse::#word))
    });
    numbers.collect()
}

/// One row of the dtypes that go together.
fn combination(row: &Combination) -> TokenStream {
    let inputs = row.inputs.iter().map(|(argument, dtype)| {
        let (argument, dtype) = (position(*argument), ident(dtype.ident()));
        quote!((#argument, DType::#dtype))
    });
    let outputs = row.outputs.iter().map(|dtype| ident(dtype.ident()));
    quote!(Combination::of(&[#(#inputs),*], &[#(DType::#outputs),*]))
}

/// Operations of the kernel by the entry, or by its expression.
fn flops(op: &Op) -> Option<TokenStream> {
    if op.flops.is_some() {
        let function = part_name(op, "flops");
        return Some(quote!(Flops::Call(inference::#function)));
    }
    let operations = op.body.pointwise.as_ref().map(crate::analysis::flops::of_element)?;
    Some(quote!(Flops::Element(#operations)))
}

fn uniform_value(uniform: Uniform) -> TokenStream {
    match uniform {
        Uniform::Same => quote!(UniformCall::Same),
        Uniform::SameIfInexact => quote!(UniformCall::SameIfInexact),
        Uniform::Fixed(dtype) => {
            let dtype = ident(dtype.ident());
            quote!(UniformCall::Fixed(DType::#dtype))
        }
    }
}

fn optional_text(text: Option<&str>) -> TokenStream {
    match text {
        Some(text) => quote!(Some(#text)),
        None => quote!(None),
    }
}

/// An argument by its name and type, and by facts that most arguments lack.
fn argument(arg: &Arg) -> TokenStream {
    let (name, kind) = (&arg.name, arg_kind(&arg.ty));
    let required = ident(if arg.ty.optional { "optional" } else { "required" });
    let mut tokens = quote!(ArgDef::#required(#name, #kind));
    if let Some(default) = &arg.default {
        let default = super::default::constant(default, &arg.ty);
        tokens.extend(quote!(.with_default(#default)));
    }
    if arg.keyword_only {
        tokens.extend(quote!(.keyword_only()));
    }
    if !arg.aliases.is_empty() {
        let aliases = &arg.aliases;
        tokens.extend(quote!(.aliases(&[#(#aliases),*])));
    }
    if !arg.constraints.is_empty() {
        let constraints = arg.constraints.iter().map(constraint);
        tokens.extend(quote!(.constraints(&[#(#constraints),*])));
    }
    tokens.extend(match arg.value {
        ValueUse::None => quote!(),
        ValueUse::Optional => quote!(.value(ValueUse::Optional)),
        ValueUse::Masks => quote!(.value(ValueUse::Masks)),
        ValueUse::Required => quote!(.value(ValueUse::Required)),
    });
    tokens
}

/// The facts that are not as for most operators; nothing if all are.
fn facts(facts: &Facts) -> Option<TokenStream> {
    // Names in other libraries stand in the table of the library, updates among the forms; notation and formula are for
    // documents.
    let Facts {
        since,
        deprecated,
        deterministic,
        tags,
        backward_only,
        lines,
        updates: _,
        known_as: _,
        notation: _,
        formula: _,
    } = facts;
    let mut fields = TokenStream::new();
    if let Some(since) = since {
        fields.extend(quote!(since: Some(#since),));
    }
    if let Some(deprecated) = deprecated {
        let since = optional_text(deprecated.since.as_deref());
        let instead = optional_text(deprecated.instead.as_ref().map(|(full, _)| full.as_str()));
        fields.extend(quote!(deprecated: Some(Deprecated { since: #since, instead: #instead }),));
    }
    if !deterministic {
        fields.extend(quote!(deterministic: false,));
    }
    if !tags.is_empty() {
        fields.extend(quote!(tags: &[#(#tags),*],));
    }
    if *backward_only {
        fields.extend(quote!(backward_only: true,));
    }
    match lines {
        Some(Lines::Along(argument)) => fields.extend(quote!(lines: Some(Lines::Along(#argument)),)),
        Some(Lines::Last(argument)) => fields.extend(quote!(lines: Some(Lines::Last(#argument)),)),
        None => {}
    }
    (!fields.is_empty()).then(|| quote!(Facts { #fields ..Facts::NONE }))
}

fn constraint(constraint: &Constraint) -> TokenStream {
    let value = match constraint {
        Constraint::Min(limit) => {
            let limit = literal(limit);
            quote!(Min(#limit))
        }
        Constraint::Max(limit) => {
            let limit = literal(limit);
            quote!(Max(#limit))
        }
        Constraint::Above(limit) => {
            let limit = literal(limit);
            quote!(Above(#limit))
        }
        Constraint::Below(limit) => {
            let limit = literal(limit);
            quote!(Below(#limit))
        }
        Constraint::OneOf(choices) => {
            let choices = choices.iter().map(literal);
            quote!(OneOf(std::borrow::Cow::Borrowed(const { &[#(#choices),*] })))
        }
        Constraint::MultipleOf(step) => {
            let step = super::expr::plain_int(*step);
            quote!(MultipleOf(#step))
        }
        Constraint::Named(names) => {
            let names = names.iter().map(|(name, value)| {
                let value = super::expr::plain_int(*value);
                quote!((std::borrow::Cow::Borrowed(#name), #value))
            });
            quote!(Named(std::borrow::Cow::Borrowed(const { &[#(#names),*] })))
        }
        Constraint::Len(lengths) => {
            let lengths = lengths.iter();
            quote!(Len(std::borrow::Cow::Borrowed(&[#(#lengths),*])))
        }
        Constraint::MinLen(least) => quote!(MinLen(#least)),
    };
    quote!(Constraint::#value)
}

fn literal(literal: &Literal) -> TokenStream {
    let value = match literal {
        Literal::Int(value) => {
            let value = super::expr::plain_int(*value);
            quote!(Int(#value))
        }
        Literal::Float(value) => {
            let value = super::expr::plain_float(*value);
            quote!(Float(#value))
        }
        Literal::Str(text) => quote!(Str(std::borrow::Cow::Borrowed(#text))),
    };
    quote!(Literal::#value)
}

fn arg_type(ty: &Ty) -> TokenStream {
    let kind = arg_kind(ty);
    match ty.optional {
        true => quote!(#kind.optional()),
        false => quote!(#kind.required()),
    }
}

fn arg_kind(ty: &Ty) -> TokenStream {
    let kind = ty.kind.argument().expect("the type of an argument");
    let variant = ident(kind.ident());
    let parameter = match kind {
        ArgKind::Ints(length) | ArgKind::Bools(length) => Some(match length {
            Some(length) => quote!((Some(#length))),
            None => quote!((None)),
        }),
        ArgKind::Lists(item) => {
            let item = ident(item.ident());
            Some(quote!((ItemKind::#item)))
        }
        _ => None,
    };
    quote!(ArgKind::#variant #parameter)
}

fn element(element: Element) -> TokenStream {
    match element {
        Element::NotTensor => quote!(NotTensor),
        Element::Dispatch => quote!(Dispatch),
        Element::Real => quote!(Real),
        Element::Opmath => quote!(Opmath),
        Element::Any => quote!(Any),
        Element::Fixed { kernel, accepted } => {
            let kernel = ident(kernel.ident());
            let accepted = dtype_set(accepted);
            quote! {
                Fixed { kernel: DType::#kernel, accepted: #accepted }
            }
        }
    }
}

fn dtype_set(set: DTypeSet) -> TokenStream {
    const NAMES: [(&str, DTypeSet); 6] = [
        ("EMPTY", DTypeSet::EMPTY),
        ("ALL", DTypeSet::ALL),
        ("STORABLE", DTypeSet::STORABLE),
        ("REAL", DTypeSet::REAL),
        ("INTEGRAL", DTypeSet::INTEGRAL),
        ("INEXACT", DTypeSet::INEXACT),
    ];
    if let Some((name, _)) = NAMES.iter().find(|(_, known)| *known == set) {
        let name = ident(name);
        return quote!(DTypeSet::#name);
    }
    let members = set.iter().map(|dtype| {
        let dtype = ident(dtype.ident());
        quote!(DTypeSet::of(DType::#dtype))
    });
    members.reduce(|all, member| quote!(#all.union(#member))).unwrap_or_default()
}
