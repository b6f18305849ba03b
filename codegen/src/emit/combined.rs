//! Kernels of operators whose dtypes go together in rows: one generic function, instantiated for each row.
//!
//! The kernel has a type parameter for each tensor it takes and each result, in this order.

use opsmith_core::{Backend, DType};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::adapter::{self, Declared, Names, Parameter, Views};
use super::kernels::{Adapter, Entries, RustKernel, rust_type};
use super::names::{Taken, parameter};
use super::{Generation, bind, header};
use crate::analysis::rows::columns;
use crate::model::{Combination, Op};

pub(super) fn kernel(generation: &Generation<'_>, op: &Op, kernel: &RustKernel<'_>) -> Adapter {
    let RustKernel { arguments, backend, .. } = *kernel;
    let (generics, types) = parameters(op, arguments, backend);
    let views = Views::of(backend);
    let (view, view_mut) = (views.function(false, "view"), views.function(false, "view_mut"));
    let call = Taken::by(op, []).free("call");
    let taken = arguments.iter().map(|&index| {
        let name = parameter(&op.args[index]);
        match &op.args[index].ty {
            ty if ty.is_tensor() => quote!(#name.#view()),
            ty => bind::access(quote!(#name), ty),
        }
    });
    let written = (0..op.outputs.len()).map(|index| quote!(#call.#view_mut(#index)));
    let values = taken.chain(written);
    let values: Vec<TokenStream> = values.collect();
    let first = op.combinations.first().map(|row| types_of_row(row, arguments));
    let declared = Declared {
        generics: &generics,
        parameters: &types,
        call: &call,
        values: &values,
        first,
        inferred: true,
    };
    let definition = adapter::definition(generation, op, kernel, &declared);
    let names = Names::of(op, backend);
    let rows = op.combinations.clone();
    let taken = arguments.to_vec();
    let entry = move |first: DType| {
        let branches = rows.iter().filter(|row| row.inputs[0].1 == first).map(|row| {
            let conditions = row.inputs.iter().skip(1).map(|(argument, dtype)| {
                let dtype = super::names::ident(dtype.ident());
                quote!(call.args()[#argument].tensor().dtype() == DType::#dtype)
            });
            let run = names.call(views, &types_of_row(row, &taken));
            match conditions.reduce(|all, one| quote!(#all && #one)) {
                Some(conditions) => quote!(if #conditions { return #run; }),
                None => quote!(if !call.args().is_empty() { return #run; }),
            }
        });
        quote! {
            |call| {
                #(#branches)*
                rt::infer::check_combination(call.op(), call.args())
            }
        }
    };
    Adapter { definition, entries: Entries::Each(Box::new(entry)) }
}

/// The type parameters of a kernel that takes these arguments, and its parameters: `name: type`.
pub(super) fn parameters(op: &Op, arguments: &[usize], backend: Backend) -> (Vec<Ident>, Vec<Parameter>) {
    let views = Views::of(backend);
    let mut generics = Vec::new();
    let mut generic = || {
        let next = format_ident!("T{}", generics.len());
        generics.push(next.clone());
        next
    };
    let mut types = Vec::new();
    for &index in arguments {
        let arg = &op.args[index];
        let name = parameter(arg);
        let ty = if arg.ty.is_tensor() {
            let element = generic();
            views.read(&quote!(#element))
        } else {
            bind::borrowed_type(&arg.ty)
        };
        types.push(Parameter { name, ty });
    }
    for index in 0..op.outputs.len() {
        let (name, element) = (header::output_name(op, index), generic());
        types.push(Parameter { name, ty: views.write(&quote!(#element)) });
    }
    (views.generics(generics), types)
}

fn types_of_row(row: &Combination, taken: &[usize]) -> Vec<TokenStream> {
    columns(row, taken).into_iter().map(rust_type).collect()
}
