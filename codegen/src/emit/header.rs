//! Kernels in C and C++: the header that declares them, and the Rust side of the call.
//!
//! The header is included before every foreign source, so that a function of another type does not
//! compile; sources are compiled with missing declarations as errors, so that neither does a function
//! that no operator names.

use std::path::Path;

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::format::comment;
use super::names::{Taken, doc, ident, parameter};
use super::{File, Generation, Part, Selection, bind};
use crate::analysis::naming;
use crate::model::{ItemKind, KernelSource, Kind, Model, Op, Ty};

/// The header's name inside the output folder.
pub const HEADER: &str = "opsmith_kernels.h";

/// Every kernel of the library in a C or C++ file, with its operator.
fn foreign_kernels(model: &Model) -> impl Iterator<Item = (&Op, &Path, &str)> {
    let kernels = model.ops.iter().filter(|op| !op.is_external()).flat_map(|op| {
        let sources = op.body.kernels.iter().map(|kernel| &kernel.source);
        sources.map(move |source| (op, source))
    });
    kernels.filter_map(|(op, source)| match source {
        KernelSource::Foreign { file, symbol } => Some((op, file.as_path(), symbol.as_str())),
        KernelSource::Rust { .. } | KernelSource::Aot { .. } => None,
    })
}

/// How the header declares each kernel in C or C++, with its operator.
pub fn c_declarations(model: &Model) -> impl Iterator<Item = (&Op, String)> {
    foreign_kernels(model).map(|(op, _, symbol)| (op, declaration(op, symbol)))
}

/// The declarations of one operator's kernels.
pub(super) fn part(generation: &Generation<'_>) -> Part {
    let kernels =
        c_declarations(generation.model).filter(|(op, _)| generation.selection == Selection::Named(&op.name));
    let text = kernels.map(|(_, declaration)| format!("{declaration};\n")).collect();
    Part { name: HEADER.trim_end_matches(".h"), source: "codegen/src/emit/header.rs", text }
}

/// The C header.
pub(super) fn emit(generation: &Generation<'_>) -> File {
    let kernels: String = foreign_kernels(generation.model)
        .map(|(op, file, symbol)| {
            let (signature, location, file) = (&op.signature, &op.location, file.display());
            let declaration = declaration(op, symbol);
            format!("\n/* {signature}\n * {location}, defined in {file} */\n{declaration};\n")
        })
        .collect();
    let spec = &generation.config.spec_name;
    let text = format!(
        "\
/* @generated from {spec} by codegen/src/emit/header.rs: the kernels in C and C++ that it names. */
#ifndef OPSMITH_KERNELS_H
#define OPSMITH_KERNELS_H

#include <opsmith/kernel.h>

#ifdef __cplusplus
extern \"C\" {{
#endif
{kernels}
#ifdef __cplusplus
}}
#endif
#endif"
    );
    File { name: HEADER.to_owned(), text, pieces: Vec::new() }
}

/// How the header declares a kernel of that name for an operator.
pub fn declaration(op: &Op, symbol: &str) -> String {
    let inputs = op.args.iter().map(|arg| (c_type(&arg.ty), c_name(&arg.name)));
    let outputs = (0..op.outputs.len()).map(|index| ("OpsmithTensor*", output_name(op, index).to_string()));
    let mut taken = vec!["context".to_owned()];
    let mut parameters = String::new();
    for (ty, mut name) in inputs.chain(outputs) {
        while taken.contains(&name) {
            name.push('_');
        }
        parameters.push_str(&format!(", {ty} {name}"));
        taken.push(name);
    }
    format!("int {symbol}(OpsmithContext* context{parameters})")
}

/// The parameter that an output is written to.
pub(super) fn output_name(op: &Op, index: usize) -> Ident {
    match &op.outputs[index].name {
        Some(name) => quote::format_ident!("{name}_out"),
        None if op.outputs.len() == 1 => quote::format_ident!("out"),
        None => quote::format_ident!("out{index}"),
    }
}

fn c_type(ty: &Ty) -> &'static str {
    match (&ty.kind, ty.optional) {
        (Kind::Tensor, _) => "const OpsmithTensor*",
        (Kind::Tensors, false) => "OpsmithTensors",
        (Kind::Tensors, true) => "const OpsmithTensors*",
        (Kind::OptionalTensors, false) => "OpsmithOptionalTensors",
        (Kind::OptionalTensors, true) => "const OpsmithOptionalTensors*",
        (Kind::Bool, false) => "bool",
        (Kind::Bool, true) => "const bool*",
        (Kind::Int, false) => "int64_t",
        (Kind::Int, true) => "const int64_t*",
        (Kind::Float, false) => "double",
        (Kind::Float, true) => "const double*",
        (Kind::Scalar, false) => "OpsmithScalar",
        (Kind::Scalar, true) => "const OpsmithScalar*",
        (Kind::Str, false) => "OpsmithString",
        (Kind::Str, true) => "const OpsmithString*",
        (Kind::Ints(_), false) => "OpsmithInts",
        (Kind::Ints(_), true) => "const OpsmithInts*",
        (Kind::Floats, false) => "OpsmithFloats",
        (Kind::Floats, true) => "const OpsmithFloats*",
        (Kind::Bools(_), false) => "OpsmithBools",
        (Kind::Bools(_), true) => "const OpsmithBools*",
        (Kind::Scalars, false) => "OpsmithScalars",
        (Kind::Scalars, true) => "const OpsmithScalars*",
        (Kind::Strs, false) => "OpsmithStrings",
        (Kind::Strs, true) => "const OpsmithStrings*",
        (Kind::DTypes, false) => "OpsmithDTypes",
        (Kind::DTypes, true) => "const OpsmithDTypes*",
        (Kind::Lists(item), false) => match item {
            ItemKind::Bool => "OpsmithBoolLists",
            ItemKind::Int => "OpsmithIntLists",
            ItemKind::Float => "OpsmithFloatLists",
            ItemKind::Scalar => "OpsmithScalarLists",
            ItemKind::Str => "OpsmithStringLists",
            ItemKind::DType => "OpsmithDTypeLists",
        },
        (Kind::Lists(item), true) => match item {
            ItemKind::Bool => "const OpsmithBoolLists*",
            ItemKind::Int => "const OpsmithIntLists*",
            ItemKind::Float => "const OpsmithFloatLists*",
            ItemKind::Scalar => "const OpsmithScalarLists*",
            ItemKind::Str => "const OpsmithStringLists*",
            ItemKind::DType => "const OpsmithDTypeLists*",
        },
        (Kind::DType | Kind::MemoryFormat | Kind::MemoryLayout, false) => "int32_t",
        (Kind::DType | Kind::MemoryFormat | Kind::MemoryLayout, true) => "const int32_t*",
        (Kind::Device, false) => "OpsmithDevice",
        (Kind::Device, true) => "const OpsmithDevice*",
        (Kind::Generator, _) => "const OpsmithGenerator*",
        (
            Kind::Foreign(_) | Kind::None | Kind::Unit | Kind::Tuple(_) | Kind::Element | Kind::RealElement,
            _,
        ) => {
            unreachable!("not the type of a kernel's argument")
        }
    }
}

/// Argument names that are words of C or C++, or look like the names of macros and types of its headers, get
/// an underscore.
fn c_name(name: &str) -> String {
    const MACROS: [&str; 6] = ["errno", "linux", "stderr", "stdin", "stdout", "unix"];
    let is_macro = !name.contains(|letter: char| letter.is_ascii_lowercase()) && name.len() > 1;
    let is_type = name.ends_with("_t") || name.starts_with("Opsmith");
    match naming::is_c_keyword(name) || is_macro || is_type || MACROS.contains(&name) {
        true => format!("{name}_"),
        false => name.to_owned(),
    }
}

/// The `extern` declarations of the Rust side.
pub(super) fn foreign_declarations(generation: &Generation<'_>) -> TokenStream {
    let functions = foreign_kernels(generation.model)
        .filter(|(op, ..)| match generation.selection {
            Selection::Named(name) => op.name == name,
            Selection::All | Selection::Range(_) => true,
        })
        .map(|(op, _, symbol)| {
            let symbol = ident(symbol);
            let inputs = op.args.iter().map(|arg| {
                let (name, ty) = (parameter(arg), rust_abi_type(&arg.ty));
                quote!(#name: #ty)
            });
            let taken = Taken::by(op, []);
            let context = taken.free("context");
            let outputs = (0..op.outputs.len()).map(|index| {
                let name = taken.free(&format!("out{index}"));
                quote!(#name: *mut abi::ForeignTensor<'_>)
            });
            let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
            quote! {
                #doc
                pub fn #symbol(#context: *mut abi::RawContext, #(#inputs,)* #(#outputs),*) -> std::ffi::c_int;
            }
        });
    let functions: Vec<TokenStream> = functions.collect();
    if functions.is_empty() {
        return TokenStream::new();
    }
    quote! {
        mod foreign {
            use super::*;
            #[allow(improper_ctypes, reason = "handles of the runtime are opaque to C")]
            unsafe extern "C" { #(#functions)* }
        }
    }
}

fn rust_abi_type(ty: &Ty) -> TokenStream {
    let plain = match ty.kind {
        Kind::Tensor => return quote!(*const abi::ForeignTensor<'_>),
        Kind::Generator => return quote!(*const abi::ForeignGenerator<'_>),
        Kind::Tensors => quote!(abi::List<'_, abi::ForeignTensor<'_>>),
        Kind::OptionalTensors => quote!(abi::List<'_, *const abi::ForeignTensor<'_>>),
        Kind::Bool => quote!(bool),
        Kind::Int => quote!(i64),
        Kind::Float => quote!(f64),
        Kind::Scalar => quote!(abi::ForeignScalar),
        Kind::Str => quote!(abi::List<'_, u8>),
        Kind::Ints(_) => quote!(abi::List<'_, i64>),
        Kind::Floats => quote!(abi::List<'_, f64>),
        Kind::Bools(_) => quote!(abi::List<'_, bool>),
        Kind::Scalars => quote!(abi::List<'_, abi::ForeignScalar>),
        Kind::Strs => quote!(abi::List<'_, abi::List<'_, u8>>),
        Kind::DTypes => quote!(abi::List<'_, i32>),
        Kind::Lists(item) => {
            let item = match item {
                ItemKind::Bool => quote!(bool),
                ItemKind::Int => quote!(i64),
                ItemKind::Float => quote!(f64),
                ItemKind::Scalar => quote!(abi::ForeignScalar),
                ItemKind::Str => quote!(abi::List<'_, u8>),
                ItemKind::DType => quote!(i32),
            };
            quote!(abi::ListOfLists<'_, #item>)
        }
        Kind::DType | Kind::MemoryFormat | Kind::MemoryLayout => quote!(i32),
        Kind::Device => quote!(abi::ForeignDevice),
        Kind::Foreign(_) | Kind::None | Kind::Unit | Kind::Tuple(_) | Kind::Element | Kind::RealElement => {
            unreachable!("not the type of a kernel's argument")
        }
    };
    if ty.optional { quote!(*const #plain) } else { plain }
}

/// The body of a kernel that calls a foreign function.
pub(super) fn call(op: &Op, symbol: &str, call: &Ident) -> TokenStream {
    let file = op
        .body
        .kernels
        .iter()
        .find_map(|kernel| match &kernel.source {
            KernelSource::Foreign { file, symbol: known } if known == symbol => {
                Some(file.display().to_string())
            }
            _ => None,
        })
        .unwrap_or_default();
    let function = ident(symbol);
    let taken = Taken::by(op, []);
    let [context, status] = ["context", "status"].map(|name| taken.free(name));
    let (mut bindings, mut values) = (TokenStream::new(), Vec::new());
    for (index, arg) in op.args.iter().enumerate() {
        let name = parameter(arg);
        let value = bind::access(quote!(#call.args()[#index]), &arg.ty);
        let (value, pass) = foreign_value(&name, value, &arg.ty);
        bindings.extend(quote!(let #name = #value;));
        values.push(pass);
    }
    for index in 0..op.outputs.len() {
        let name = taken.free(&format!("out{index}"));
        bindings.extend(quote!(let mut #name = #call.foreign_output(#index);));
        values.push(quote!(&mut #name));
    }
    let safety = comment(
        "SAFETY: the generated header declares the function with these types and is included where it is \
         defined; every pointer lives until the call returns, and the dispatcher holds the borrows of all \
         tensors.",
    );
    quote! {
        let mut #context = abi::KernelContext::new(#symbol, #file, #call.device());
        #bindings
        #safety
        let #status = unsafe { foreign::#function(#context.as_raw(), #(#values),*) };
        #context.check(#status)
    }
}

/// The function that turns an item of a list into its type in C, where that is another.
fn converted_item(kind: &Kind) -> Option<TokenStream> {
    match kind {
        Kind::Scalar => Some(quote!(|value| abi::ForeignScalar::from(*value))),
        Kind::Str => Some(quote!(abi::foreign_text)),
        Kind::DType => Some(quote!(|value| abi::foreign_dtype(*value))),
        _ => None,
    }
}

/// [`foreign_value`] of a list of lists: its items, converted if they have to be, and the ends of its rows.
fn foreign_lists(
    name: &proc_macro2::Ident,
    value: TokenStream,
    item: ItemKind,
    optional: bool,
) -> (TokenStream, TokenStream) {
    let (kept, passed) = match converted_item(&item.kind().into()) {
        Some(item) => (
            quote!((lists.items().iter().map(#item).collect::<Vec<_>>(), lists.ends())),
            quote!(abi::ListOfLists::of(&lists.0, lists.1)),
        ),
        None => (quote!(lists), quote!(abi::ListOfLists::of(lists.items(), lists.ends()))),
    };
    match optional {
        true => (
            quote!(#value.map(|lists| #kept)),
            quote!(abi::address_or_null(&#name.as_ref().map(|lists| #passed))),
        ),
        false => (quote!({ let lists = #value; #kept }), quote!({ let lists = &#name; #passed })),
    }
}

/// A value kept alive by a binding, and the argument made of it.
fn foreign_value(name: &proc_macro2::Ident, value: TokenStream, ty: &Ty) -> (TokenStream, TokenStream) {
    let pointer = quote!(abi::address_or_null(&#name));
    let convert = match ty.kind {
        Kind::Tensor => quote!(abi::ForeignTensor::of),
        Kind::Generator if ty.optional => {
            return (quote!(abi::ForeignGenerator::of(#value)), quote!(&#name));
        }
        Kind::Generator => return (quote!(abi::ForeignGenerator::of(Some(#value))), quote!(&#name)),
        Kind::Tensors => {
            return (quote!(abi::ForeignTensor::of_each(#value)), quote!(abi::List::of(&#name)));
        }
        Kind::OptionalTensors => {
            let value = quote!(abi::ForeignTensor::of_each_present(#value));
            return (value, quote!(abi::List::of(&abi::addresses_or_null(&#name))));
        }
        Kind::Scalar => quote!(abi::ForeignScalar::from),
        Kind::Str => quote!(abi::List::<'_, u8>::from),
        Kind::Ints(_) | Kind::Floats | Kind::Bools(_) => quote!(abi::List::of),
        Kind::DType => quote!(abi::foreign_dtype),
        Kind::Device => quote!(abi::ForeignDevice::from),
        Kind::MemoryFormat | Kind::MemoryLayout => quote!((|value| value as i32)),
        Kind::Scalars | Kind::Strs | Kind::DTypes => {
            let item = ty.kind.item().and_then(|item| converted_item(&item.kind));
            return match ty.optional {
                true => (
                    quote!(#value.map(|list| list.iter().map(#item).collect::<Vec<_>>())),
                    quote!(abi::address_or_null(&#name.as_deref().map(abi::List::of))),
                ),
                false => {
                    (quote!(#value.iter().map(#item).collect::<Vec<_>>()), quote!(abi::List::of(&#name)))
                }
            };
        }
        Kind::Lists(item) => return foreign_lists(name, value, item, ty.optional),
        _ if ty.optional => return (value, pointer),
        _ => return (value, quote!(#name)),
    };
    match (ty.optional, &ty.kind) {
        (true, _) => (quote!(#value.map(#convert)), pointer),
        (false, Kind::Tensor) => (quote!(#convert(#value)), quote!(&#name)),
        (false, _) => (quote!(#convert(#value)), quote!(#name)),
    }
}
