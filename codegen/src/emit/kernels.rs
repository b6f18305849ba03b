//! Kernel tables: hand-written kernels at their exact types, and loops made from expressions.

use std::path::Path;

use opsmith_core::{Backend, DType, DTypeSet};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};

use super::names::{Taken, def_name, doc, ident, part_name};
use super::{Generation, adapter, bind, device, header, pointwise};
use crate::analysis::rows::has_kernels;
use crate::config::Tables;
use crate::model::{DEVICE_LOOPS, Element, Kernel, KernelSource, Op};

pub(super) fn emit(generation: &Generation<'_>) -> TokenStream {
    let mut tokens = header::foreign_declarations(generation);
    for op in generation.own_definitions() {
        let tables = &generation.config.tables;
        let is_here = matches!(tables, Tables::Of(_)) || tables.has(op.file());
        if is_here && has_kernels(op) {
            tokens.extend(table(generation, op));
        }
    }
    tokens
}

fn table(generation: &Generation<'_>, op: &Op) -> TokenStream {
    let name = def_name(op);
    let doc = doc(&format!("`{}`, declared at {}.", op.signature, op.location));
    let (mut definitions, mut rows, mut places, mut of_loop) = (Vec::new(), Vec::new(), Vec::new(), None);
    for backend in Backend::ALL {
        let Some(Adapter { definition, entries }) = adapter_of_row(generation, op, backend) else { continue };
        let supported = op.body.dtypes_of_row(backend);
        if let Some(place) = place_of_row(op, backend).filter(|_| supported != DTypeSet::EMPTY) {
            let row = ident(backend.ident());
            places.push(quote!(.at(Backend::#row, #place)));
        }
        if let Entries::Loop { serves_halves } = entries {
            of_loop = Some((loop_dtypes(supported, serves_halves), definition));
            continue;
        }
        definitions.push(definition);
        if supported != DTypeSet::EMPTY {
            let source = row_source(op, backend).unwrap_or_default();
            let kernels = entries.row(supported);
            let device = (backend != Backend::Cpu).then(|| {
                let row = ident(backend.ident());
                quote!(Backend::#row,)
            });
            rows.push((backend, quote!(#device #source, #kernels)));
        }
    }
    if let Some((dtypes, function)) = of_loop {
        let rows = rows.iter().map(|(_, row)| row);
        return quote! {
            #(#definitions)*
            rt::pointwise_kernels! {
                #doc
                pub static #name: KernelTable = of![#dtypes] #(.with(#rows))* #(#places)*;
                #function
            }
        };
    }
    let table = match rows.split_first() {
        Some(((Backend::Cpu, first), more)) => {
            let more = more.iter().map(|(_, row)| row);
            quote!(KernelTable::cpu(#first) #(.with(#more))*)
        }
        _ => {
            let rows = rows.iter().map(|(_, row)| row);
            quote!(KernelTable::new() #(.with(#rows))*)
        }
    };
    quote! {
        #(#definitions)*
        #doc
        pub static #name: KernelTable = #table #(#places)*;
    }
}

/// The dtypes of a loop, as the runtime's macro takes them: `Bool F64; F32 for F16 BF16`.
fn loop_dtypes(dtypes: DTypeSet, serves_halves: bool) -> TokenStream {
    let named = |dtype: DType| ident(dtype.ident());
    let by_single = |dtype: &DType| *dtype != DType::F32 && dtype.to_compute() == DType::F32;
    let shares = serves_halves && dtypes.contains(DType::F32) && dtypes.iter().any(|dtype| by_single(&dtype));
    if !shares {
        let names = dtypes.iter().map(named);
        return quote!(#(#names)*);
    }
    let halves = dtypes.iter().filter(by_single).map(named);
    let others = dtypes.iter().filter(|dtype| dtype.to_compute() != DType::F32).map(named);
    quote!(#(#others)*; F32 for #(#halves)*)
}

/// The adapter between a backend's row and its kernel; `None` if the row has no kernel.
fn adapter_of_row(generation: &Generation<'_>, op: &Op, backend: Backend) -> Option<Adapter> {
    let Some(kernel) = op.body.kernel_of_row(backend) else {
        return match backend {
            Backend::Cpu => op.body.pointwise.is_some().then(|| pointwise_kernel(generation, op)),
            DEVICE_LOOPS if op.body.device_loops => device::kernel(generation, op),
            _ => None,
        };
    };
    Some(match &kernel.source {
        KernelSource::Rust { path, arguments } => {
            let kernel = RustKernel { path, arguments, backend };
            match op.combinations.is_empty() {
                true => adapter::kernel(generation, op, &kernel),
                false => super::combined::kernel(generation, op, &kernel),
            }
        }
        KernelSource::Foreign { symbol, .. } => foreign_kernel(op, symbol, backend),
        KernelSource::Aot { file, symbol } => {
            let mut adapter = aot_kernel(generation, op, file, symbol, kernel.backend);
            if kernel.backend != backend {
                // The row of the kernel's own backend defines it.
                adapter.definition = TokenStream::new();
            }
            adapter
        }
    })
}

/// A kernel in Rust of a backend's row.
#[derive(Clone, Copy)]
pub(super) struct RustKernel<'a> {
    /// The function.
    pub path: &'a str,
    /// The arguments it takes, in order.
    pub arguments: &'a [usize],
    pub backend: Backend,
}

/// The code between a table and a kernel.
pub(super) struct Adapter {
    /// Its definition.
    pub definition: TokenStream,
    /// The table's entries.
    pub entries: Entries,
}

/// The kernels of a row.
pub(super) enum Entries {
    /// A generic kernel, instantiated for each dtype, with the module of the struct that holds it.
    Generic { module: Ident, kernel: Ident },
    /// A loop, instantiated for each dtype.
    Loop {
        /// Whether that of `f32` serves 16-bit floats, too.
        serves_halves: bool,
    },
    /// One function serves all.
    Function(Ident),
    /// One function serves all; the dtype is a parameter.
    OfDType(Ident),
    /// Each dtype has an expression of its own.
    Each(Box<dyn Fn(DType) -> TokenStream>),
}

impl Entries {
    /// The kernels for some dtypes, each with its dtype.
    fn row(&self, dtypes: DTypeSet) -> TokenStream {
        let names = dtypes.iter().map(|dtype| ident(dtype.ident()));
        match self {
            Entries::Generic { module, kernel } => {
                quote!(&rt::kernels_of!(#module of #kernel: #(#names)*))
            }
            Entries::Loop { .. } => unreachable!("the macro of loops makes their row"),
            Entries::Function(kernel) => quote!(&rt::same_kernel!(#kernel of #(#names)*)),
            Entries::OfDType(kernel) => quote!(&rt::kernels_of_dtypes!(#kernel of #(#names)*)),
            Entries::Each(entry) => {
                let entries = dtypes.iter().map(entry);
                quote!(&[#((DType::#names, #entries)),*])
            }
        }
    }
}

/// The kernel of a row, as written in the spec, with the device on which it runs if that is another.
fn row_source(op: &Op, backend: Backend) -> Option<String> {
    let text = |kernel: &Kernel| match kernel.backend == backend {
        true => kernel.text.clone(),
        false => format!("{}, by copies to {} and back", kernel.text, kernel.backend.key()),
    };
    op.body
        .kernel_of_row(backend)
        .map(text)
        .or_else(|| op.body.pointwise.as_ref().map(|_| "pointwise".to_owned()))
}

/// File and line of the kernel of a row, or of the entry that has its expression.
fn place_of_row(op: &Op, backend: Backend) -> Option<&str> {
    match op.body.kernel_of_row(backend) {
        Some(kernel) => kernel.place.as_deref(),
        None => op.body.pointwise.as_ref().map(|_| op.location.as_str()),
    }
}

/// The Rust type of a dtype's elements, in the runtime if it is not Rust's own.
pub(super) fn rust_type(dtype: DType) -> TokenStream {
    match dtype.rust_type().rsplit_once("::") {
        Some((_, name)) => {
            let name = ident(name.trim());
            quote!(rt::#name)
        }
        None => ident(dtype.rust_type()).into_token_stream(),
    }
}

/// The Rust type of an argument's elements inside a kernel.
pub(super) fn element_type(element: Element) -> TokenStream {
    match element {
        Element::Real => quote!(<T as rt::Element>::Real),
        Element::Opmath => quote!(<T as rt::Element>::Compute),
        Element::Fixed { kernel, .. } => rust_type(kernel),
        Element::Dispatch | Element::Any | Element::NotTensor => quote!(T),
    }
}

/// The name of a part of an operator's adapter for a backend's row; that of the host is the plain one.
pub(super) fn row_part(op: &Op, backend: Backend, part: &str) -> Ident {
    match backend {
        Backend::Cpu => part_name(op, part),
        other => part_name(op, &format!("{}_{part}", other.name())),
    }
}

/// A loop over an expression. A macro makes it for each dtype, because the expression does not say which traits it
/// needs.
fn pointwise_kernel(generation: &Generation<'_>, op: &Op) -> Adapter {
    let call = Taken::by(op, &op.body.pointwise).free("call");
    let body = pointwise::kernel(generation, op, &call);
    let out = element_type(op.outputs[0].element);
    let arguments = bind::pattern(&op.args, &body);
    let definition = quote!(fn kernel(#call: &KernelCall<'_>, #arguments: Arguments<'_>) -> #out { #body });
    // A number that is rounded to the elements' dtype differs between dtypes of one loop.
    let rounds = op.args.iter().any(|arg| arg.rounded);
    Adapter { definition, entries: Entries::Loop { serves_halves: !rounds } }
}

/// One function for all element types: the kernel finds the type in its tensors.
fn foreign_kernel(op: &Op, symbol: &str, backend: Backend) -> Adapter {
    let name = row_part(op, backend, "kernel");
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
    let name = row_part(op, target, "kernel");
    let custom_kernels = &generation.config.custom_kernels;
    let target = ident(target.ident());
    let target = quote!(Backend::#target);
    // From the crate's folder, so that equal specs give equal code wherever they are.
    let file = generation.config.folder.join(file).display().to_string();
    let path = format!("/{file}");
    let definition = quote! {
        fn #name(call: &KernelCall<'_>) -> rt::Result<()> {
            #custom_kernels::spec_kernel!(call, concat!(env!("CARGO_MANIFEST_DIR"), #path), #file, #symbol, #target)
        }
    };
    Adapter { definition, entries: Entries::Function(name) }
}
