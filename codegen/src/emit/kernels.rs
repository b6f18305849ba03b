//! Kernel tables: hand-written kernels at their exact types, and loops made from expressions.

use std::path::Path;

use opsmith_core::{Backend, DType, DTypeSet};
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::names::{Taken, def_name, doc, ident, part_name};
use super::{Generation, adapter, header, pointwise};
use crate::analysis::rows::has_kernels;
use crate::model::{Element, Kernel, KernelSource, Op};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let mut tokens = header::foreign_declarations(generation);
    if generation.own_definitions().any(adapter::is_checked) {
        tokens.extend(quote!(
            use rt::declared::Misfit as _;
        ));
    }
    for op in generation.own_definitions() {
        if has_kernels(op) {
            tokens.extend(table(generation, op));
        }
    }
    tokens
}

fn table(generation: &Generation<'_>, op: &Op) -> TokenStream {
    let name = def_name(op);
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    let Adapter { definition, entries } = match op.body.kernel_of_row(Backend::Cpu) {
        Some(Kernel { source: KernelSource::Rust { path, arguments }, .. })
            if !op.combinations.is_empty() =>
        {
            super::combined::kernel(generation, op, path, arguments)
        }
        Some(Kernel { source: KernelSource::Rust { path, arguments }, .. }) => {
            super::adapter::kernel(generation, op, path, arguments)
        }
        Some(Kernel { source: KernelSource::Foreign { symbol, .. }, .. }) => foreign_kernel(op, symbol),
        Some(Kernel { source: KernelSource::Aot { file, symbol }, backend, .. }) => {
            aot_kernel(generation, op, file, symbol, *backend)
        }
        None => pointwise_kernel(generation, op),
    };
    let rows = Backend::ALL.into_iter().filter(|backend| backend.is_built()).map(|backend| {
        let supported = op.body.dtypes_of_row(backend);
        if supported == DTypeSet::EMPTY {
            return TokenStream::new();
        }
        let row = ident(&format!("{backend:?}"));
        let source = row_source(op, backend).unwrap_or_default();
        let kernels = entries.row(supported);
        quote!(.with(Backend::#row, #source, #kernels))
    });
    quote! {
        #definition
        #doc
        pub static #name: KernelTable = KernelTable::new()#(#rows)*;
    }
}

/// What stands between a table and a kernel.
pub(super) struct Adapter {
    /// Its definition.
    pub definition: TokenStream,
    /// The table's entries.
    pub entries: Entries,
}

/// The kernels of a row.
pub(super) enum Entries {
    /// A macro gives the kernel for a type of elements.
    Macro(Ident),
    /// One function serves all.
    Function(Ident),
    /// Each dtype has an expression of its own.
    Each(Box<dyn Fn(DType) -> TokenStream>),
}

impl Entries {
    /// The kernels for some dtypes, each with its dtype.
    fn row(&self, dtypes: DTypeSet) -> TokenStream {
        let names = dtypes.iter().map(|dtype| ident(dtype.ident()));
        match self {
            Entries::Macro(kernel) => quote!(&rt::kernels_of!(#kernel: #(#names)*)),
            Entries::Function(kernel) => quote!(&rt::op::same_kernel(#kernel, [#(DType::#names),*])),
            Entries::Each(entry) => {
                let entries = dtypes.iter().map(entry);
                quote!(&[#((DType::#names, #entries)),*])
            }
        }
    }
}

/// What computes a row of the table, as written in the spec.
fn row_source(op: &Op, backend: Backend) -> Option<String> {
    op.body.kernel_of_row(backend).map(|kernel| kernel.text.clone()).or_else(|| {
        op.body.pointwise.as_ref().filter(|_| backend == Backend::Cpu).map(|_| "pointwise".to_owned())
    })
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

/// The name of an operator's adapter.
pub(super) fn adapter_name(op: &Op) -> Ident {
    part_name(op, "kernel")
}

/// A loop over an expression. A macro, because the expression does not say which traits it needs.
fn pointwise_kernel(generation: &Generation<'_>, op: &Op) -> Adapter {
    let name = adapter_name(op);
    let call = Taken::by(op, &op.body.pointwise).free("call");
    let body = pointwise::kernel(generation, op, &call);
    let definition = quote! {
        macro_rules! #name {
            ($T:ty) => {{
                #[allow(unused, reason = "an expression need not use everything")]
                fn kernel(#call: &KernelCall<'_>) -> rt::Result<()> {
                    type T = $T;
                    #body
                }
                kernel
            }};
        }
    };
    Adapter { definition, entries: Entries::Macro(name) }
}

/// One function for all element types: the kernel finds the type in its tensors.
fn foreign_kernel(op: &Op, symbol: &str) -> Adapter {
    let name = adapter_name(op);
    let call = Taken::by(op, []).free("call");
    let body = header::call(op, symbol, &call);
    let definition = quote! {
        fn #name(#call: &KernelCall<'_>) -> rt::Result<()> {
            #body
        }
    };
    Adapter { definition, entries: Entries::Function(name) }
}

/// A kernel that is compiled and loaded when it is first called; it finds the element type in its tensors.
fn aot_kernel(generation: &Generation<'_>, op: &Op, file: &Path, symbol: &str, target: Backend) -> Adapter {
    let name = adapter_name(op);
    let target = match target {
        Backend::Cpu => quote!(Backend::Cpu),
        Backend::Cuda => quote!(Backend::Cuda),
    };
    // From the crate's folder, so that equal specs give equal code wherever they are.
    let file = generation.config.folder.join(file).display().to_string();
    let path = format!("/{file}");
    let definition = quote! {
        fn #name(call: &KernelCall<'_>) -> rt::Result<()> {
            static KERNEL: rt::aot::SpecKernel =
                rt::aot::SpecKernel::new(concat!(env!("CARGO_MANIFEST_DIR"), #path), #file, #symbol, #target);
            KERNEL.run(call)
        }
    };
    Adapter { definition, entries: Entries::Function(name) }
}
