//! Adapters between a table of kernels and a hand-written kernel in Rust.
//!
//! The kernel is imported once, by a name that says where it is declared, so a path that leads nowhere is one
//! message. A constant takes it at its exact type for the first element type of the table, so another type is
//! one message too. The table takes it at whatever type it has, and `rt::generated::declared::Misfit` refuses, when the
//! program is built, one whose type is right for some element types only. The runtime's macro `rust_kernel` has the
//! code that is the same for all kernels.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::kernels::{Adapter, Entries, RustKernel, element_type, row_part, rust_type};
use super::names::{Taken, parameter};
use super::{Generation, bind, header};
use crate::analysis::rows::plainest_dtype;
use crate::model::{Element, Kind, Op};
use opsmith_core::Backend;

/// A parameter of a kernel: `name: type`.
pub(super) struct Parameter {
    pub name: Ident,
    pub ty: TokenStream,
}

impl Parameter {
    /// As the list of a function's parameters has it.
    pub fn declared(&self) -> TokenStream {
        let Parameter { name, ty } = self;
        quote!(#name: #ty)
    }
}

/// Views as kernels of a backend take them: their types, and the functions of a call that give them.
#[derive(Clone, Copy)]
pub(super) struct Views {
    prefix: &'static str,
    method: &'static str,
    /// Whether kernels are generic over the types of elements. Those of devices are not: the device's code is made for
    /// a dtype when it is first needed, and one function serves all.
    pub typed: bool,
}

impl Views {
    pub fn of(backend: Backend) -> Views {
        match backend {
            Backend::Cpu => Views { prefix: "", method: "", typed: true },
            _ => Views { prefix: "Device", method: "device_", typed: false },
        }
    }

    /// The type for reading elements.
    pub fn read(self, element: &TokenStream) -> TokenStream {
        self.view("View", element)
    }

    /// The type for writing elements.
    pub fn write(self, element: &TokenStream) -> TokenStream {
        self.view("ViewMut", element)
    }

    fn view(self, name: &str, element: &TokenStream) -> TokenStream {
        let name = format_ident!("{}{name}", self.prefix);
        match self.typed {
            true => quote!(rt::#name<'_, #element>),
            false => quote!(rt::#name<'_>),
        }
    }

    /// A function of a call: `view`, `optional_view` and so on.
    pub fn function(self, optional: bool, name: &str) -> Ident {
        format_ident!("{}{}{name}", if optional { "optional_" } else { "" }, self.method)
    }

    /// The type parameters of a kernel whose views have these.
    pub fn generics(self, types: Vec<Ident>) -> Vec<Ident> {
        if self.typed { types } else { Vec::new() }
    }
}

/// The parameters of a Rust kernel that takes these arguments; types of elements are given in terms of `T`.
pub(super) fn parameters(op: &Op, arguments: &[usize], backend: Backend) -> Vec<Parameter> {
    let views = Views::of(backend);
    let given = arguments.iter().map(|&index| {
        let arg = &op.args[index];
        // Of elements of any type, `T` says nothing.
        let view = match arg.element {
            Element::Any => quote!(rt::Untyped<'_>),
            element => views.read(&element_type(element)),
        };
        let ty = match (&arg.ty.kind, arg.ty.optional) {
            (Kind::Tensor, false) => view,
            (Kind::Tensor, true) => quote!(Option<#view>),
            (Kind::Tensors, _) => quote!(&[#view]),
            (Kind::OptionalTensors, _) => quote!(&[Option<#view>]),
            _ => bind::borrowed_type(&arg.ty),
        };
        Parameter { name: parameter(arg), ty }
    });
    let written = op.outputs.iter().enumerate().map(|(index, output)| {
        let view = views.write(&element_type(output.element));
        let ty = match output.ty.kind {
            Kind::Tensors => quote!(&mut [#view]),
            _ if output.ty.optional => quote!(Option<#view>),
            _ => view,
        };
        Parameter { name: header::output_name(op, index), ty }
    });
    given.chain(written).collect()
}

/// A kernel that is generic over one element type.
pub(super) fn kernel(generation: &Generation<'_>, op: &Op, kernel: &RustKernel<'_>) -> Adapter {
    let RustKernel { arguments, backend, .. } = *kernel;
    let views = Views::of(backend);
    let [view, optional_view] = [false, true].map(|optional| views.function(optional, "view"));
    let [several, optional_several] = [false, true].map(|optional| views.function(optional, "views"));
    let call = Taken::by(op, []).free("call");
    let given = arguments.iter().map(|&index| {
        let arg = &op.args[index];
        let name = parameter(arg);
        match (&arg.ty.kind, arg.ty.optional) {
            (Kind::Tensor, false) if arg.element == Element::Any => quote!(#name.untyped()),
            (Kind::Tensor, true) if arg.element == Element::Any => quote!(#name.optional_untyped()),
            (Kind::Tensors, _) if arg.element == Element::Any => quote!(&#name.all_untyped()),
            (Kind::OptionalTensors, _) if arg.element == Element::Any => {
                quote!(&#name.optional_all_untyped())
            }
            (Kind::Tensor, false) => quote!(#name.#view()),
            (Kind::Tensor, true) => quote!(#name.#optional_view()),
            (Kind::Tensors, _) => quote!(&#name.#several()),
            (Kind::OptionalTensors, _) => quote!(&#name.#optional_several()),
            _ => bind::access(quote!(#name), &arg.ty),
        }
    });
    let [view_mut, optional_view_mut] = [false, true].map(|optional| views.function(optional, "view_mut"));
    let several_mut = views.function(false, "views_mut");
    let written = op.outputs.iter().enumerate().map(|(index, output)| match output.ty.kind {
        Kind::Tensors => quote!(&mut #call.#several_mut()),
        _ if output.ty.optional => quote!(#call.#optional_view_mut(#index)?),
        _ => quote!(#call.#view_mut(#index)),
    });
    let values: Vec<TokenStream> = given.chain(written).collect();
    let generics = views.generics(vec![format_ident!("T")]);
    let types = parameters(op, arguments, backend);
    // The kernel's type determines `T`, unless every tensor has an element type of its own.
    let inputs = arguments.iter().map(|&index| op.args[index].element);
    let mut outputs = op.outputs.iter().map(|output| output.element);
    let inferred = inputs.chain(outputs.clone()).any(|element| element == Element::Dispatch)
        || outputs.any(|element| element == Element::Any);
    // The plainest type makes the plainest message.
    let first = plainest_dtype(op, backend).map(|dtype| vec![rust_type(dtype)]);
    let declared =
        Declared { generics: &generics, parameters: &types, call: &call, values: &values, first, inferred };
    let definition = definition(generation, op, kernel, &declared);
    let Names { function: module, kernel, one, .. } = Names::of(op, backend);
    let entries = if views.typed { Entries::Generic { module, kernel } } else { Entries::Function(one) };
    Adapter { definition, entries }
}

/// The declaration of a kernel.
pub(super) struct Declared<'a> {
    /// Its type parameters.
    pub generics: &'a [Ident],
    /// Its parameters.
    pub parameters: &'a [Parameter],
    /// The name of a call.
    pub call: &'a Ident,
    /// The values that it passes.
    pub values: &'a [TokenStream],
    /// The first element types that the table has.
    pub first: Option<Vec<TokenStream>>,
    /// Whether the type of a kernel determines its type parameters.
    pub inferred: bool,
}

/// Names in the code of one kernel.
pub(super) struct Names {
    /// The function that takes the kernel at its exact type, and the module of the struct that takes it at any.
    function: Ident,
    /// The kernel, by a name with the place of its entry: `laplacian_at_ops_yaml_31`.
    place: Ident,
    /// The kernel, by a name that stays when lines are added above the entry.
    kernel: Ident,
    /// The function of the table, of a kernel that is one for all element types.
    one: Ident,
}

impl Names {
    pub fn of(op: &Op, backend: Backend) -> Names {
        let function = row_part(op, backend, "kernel");
        let place: String = op
            .location
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
            .collect();
        let place = row_part(op, backend, &format!("at_{}", place.trim_matches('_').to_lowercase()));
        let [kernel, one] = ["in_rust", "for_all"].map(|part| row_part(op, backend, part));
        Names { function, place, kernel, one }
    }

    /// The call of the kernel for some element types.
    pub fn call(&self, views: Views, types: &[TokenStream]) -> TokenStream {
        let Names { function, kernel, one, .. } = self;
        if !views.typed {
            return quote!(#one(call));
        }
        quote!(#function::Any(#kernel::<#(#types),*>, std::marker::PhantomData::<(#(#types,)*)>).run_declared(call))
    }
}

/// The import of a kernel, its declaration, and the constant that takes it at its exact type.
pub(super) fn definition(
    generation: &Generation<'_>,
    op: &Op,
    kernel: &RustKernel<'_>,
    declared: &Declared<'_>,
) -> TokenStream {
    let Declared { generics, parameters, call, values, first, inferred } = declared;
    let arguments = bind::pattern(&op.args, &quote!(#(#values),*));
    let root = generation.config.kernels_of(kernel.backend);
    let path: TokenStream = match syn::parse_str::<syn::Path>(kernel.path) {
        Ok(path) => quote!(#root::#path),
        Err(error) => return error.to_compile_error(),
    };
    let Names { function, place, kernel: name, one } = Names::of(op, kernel.backend);
    let signature = parameters.iter().map(Parameter::declared);
    let typed = Views::of(kernel.backend).typed;
    let assertion = first.as_ref().filter(|_| typed).map(|types| {
        let explicit = if *inferred { quote!() } else { quote!(::<#(#types),*>) };
        quote!(const _: KernelFn = |call| #function #explicit(call, #place::<#(#types),*>);)
    });
    // Of one function, the exact type is the only one.
    let one = (!typed)
        .then(|| quote!(fn #one(call: &KernelCall<'_>) -> rt::Result<()> { #function(call, #place) }));
    let name = typed.then(|| quote!(use #place as #name;));
    quote! {
        use #path as #place;
        #name

        rt::rust_kernel! {
            fn #function<#(#generics),*>(#(#signature),*) -> rt::Result<()> = |#call, #arguments| [#(#values),*];
        }

        #assertion
        #one
    }
}
