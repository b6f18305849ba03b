//! Kernel tables: hand-written kernels at their exact types, and loops made from expressions.

use opsmith_core::{Backend, DType};
use proc_macro2::TokenStream;
use quote::quote;

use super::names::{def_name, doc, ident};
use super::{Generation, bind, header, pointwise};
use crate::model::{Element, Kernel, KernelSource, Kind, Op};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let mut tokens = header::foreign_declarations(generation);
    for op in generation.own_ops() {
        if has_kernels(op) {
            tokens.extend(table(generation, op));
        }
    }
    tokens
}

/// Whether an operator has a table of kernels.
pub(super) fn has_kernels(op: &Op) -> bool {
    op.body.pointwise.is_some() || !op.body.kernels.is_empty()
}

fn table(generation: &Generation<'_>, op: &Op) -> TokenStream {
    let name = def_name(op);
    let macro_name = ident(&format!("{}_kernel", super::rust_file_stem(&op.name)));
    let rows = Backend::ALL.map(|backend| {
        let source = row_source(op, backend);
        DType::ALL.map(|dtype| {
            let supported = source.is_some() && op.body.dtypes[backend.index()].contains(dtype);
            match (supported, backend) {
                (true, Backend::Cpu) => {
                    let ty = rust_type(dtype);
                    quote!(Some(#macro_name!(#ty)))
                }
                _ => quote!(None),
            }
        })
    });
    let rows = rows.iter().map(|row| quote!([#(#row),*]));
    let sources = Backend::ALL.map(|backend| row_source(op, backend).unwrap_or_default());
    let body = match op.body.kernels.iter().find(|kernel| kernel.backend == Backend::Cpu) {
        Some(kernel) => hand_written(generation, op, kernel),
        None => pointwise::kernel(generation, op),
    };
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    quote! {
        macro_rules! #macro_name {
            ($T:ty) => {{
                #[allow(unused, reason = "an expression need not use everything")]
                fn kernel(call: &rt::op::KernelCall<'_>) -> rt::Result<()> {
                    type T = $T;
                    #body
                }
                kernel as rt::op::KernelFn
            }};
        }
        #doc
        pub static #name: rt::op::KernelTable = rt::op::KernelTable::new([#(#rows),*], [#(#sources),*]);
    }
}

/// What computes a row of the table, as written in the spec.
fn row_source(op: &Op, backend: Backend) -> Option<String> {
    op.body.kernels.iter().find(|kernel| kernel.backend == backend).map(|kernel| kernel.text.clone()).or_else(
        || op.body.pointwise.as_ref().filter(|_| backend == Backend::Cpu).map(|_| "pointwise".to_owned()),
    )
}

/// The Rust type of a dtype's elements.
pub(super) fn rust_type(dtype: DType) -> TokenStream {
    match dtype {
        DType::Bool => quote!(bool),
        DType::U8 => quote!(u8),
        DType::U16 => quote!(u16),
        DType::U32 => quote!(u32),
        DType::U64 => quote!(u64),
        DType::I8 => quote!(i8),
        DType::I16 => quote!(i16),
        DType::I32 => quote!(i32),
        DType::I64 => quote!(i64),
        DType::F16 => quote!(rt::f16),
        DType::BF16 => quote!(rt::bf16),
        DType::F32 => quote!(f32),
        DType::F64 => quote!(f64),
        DType::C64 => quote!(rt::Complex32),
        DType::C128 => quote!(rt::Complex64),
    }
}

/// The Rust type of an argument's elements inside a kernel.
pub(super) fn element_type(element: Element) -> TokenStream {
    match element {
        Element::Real => quote!(<T as rt::Element>::Real),
        Element::Fixed(dtype, _) => rust_type(dtype),
        Element::Dispatch | Element::Any | Element::NotTensor => quote!(T),
    }
}

fn hand_written(generation: &Generation<'_>, op: &Op, kernel: &Kernel) -> TokenStream {
    match &kernel.source {
        KernelSource::Rust(path) => rust_kernel(generation, op, path),
        KernelSource::Foreign { symbol, .. } => header::call(op, symbol),
    }
}

fn rust_kernel(generation: &Generation<'_>, op: &Op, path: &str) -> TokenStream {
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for (index, arg) in op.args.iter().enumerate() {
        let element = element_type(arg.element);
        let (ty, value) = match (&arg.ty.kind, arg.ty.optional) {
            (Kind::Tensor, false) => (quote!(rt::View<'_, #element>), quote!(call.view::<#element>(#index))),
            (Kind::Tensor, true) => {
                (quote!(Option<rt::View<'_, #element>>), quote!(call.optional_view::<#element>(#index)))
            }
            (Kind::Tensors, _) => {
                (quote!(&[rt::View<'_, #element>]), quote!(&call.views::<#element>(#index)))
            }
            (Kind::OptionalTensors, _) => {
                (quote!(&[Option<rt::View<'_, #element>>]), quote!(&call.optional_views::<#element>(#index)))
            }
            _ => (bind::borrowed_type(&arg.ty), bind::access(quote!(call.args[#index]), &arg.ty)),
        };
        types.push(ty);
        values.push(value);
    }
    for (index, output) in op.outputs.iter().enumerate() {
        let element = element_type(output.element);
        types.push(quote!(rt::ViewMut<'_, #element>));
        values.push(quote!(call.view_mut::<#element>(#index)));
    }
    let path = match syn::parse_str::<syn::Path>(path) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error(),
    };
    let root = &generation.config.cpu_kernels;
    quote! {
        // The kernel at its exact type: another signature does not compile.
        const KERNEL: fn(#(#types),*) -> rt::Result<()> = #root::#path::<T>;
        KERNEL(#(#values),*)
    }
}
