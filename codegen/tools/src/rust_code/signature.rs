//! Comparison of a function's required and actual parameters.

use std::fmt;

use proc_macro2::TokenStream;
use syn::{FnArg, GenericArgument, GenericParam, PathArguments, Type};

use opsmith_core::DTypeSet;

use super::bounds;
use super::resolve::Function;

/// The required parameters of a function.
pub(super) struct Wanted {
    /// The number of element types, if known.
    generics: Option<usize>,
    /// The types of its parameters; `None` for one that may have several types.
    parameters: Vec<Option<Type>>,
    /// The dtypes covered by each element type, if known.
    dtypes: Vec<DTypeSet>,
}

impl Wanted {
    /// A function of these type parameters and parameters.
    pub fn new(generics: usize, parameters: Vec<TokenStream>) -> Wanted {
        let parameters = parameters.into_iter().map(|tokens| syn::parse2::<Type>(tokens).ok()).collect();
        Wanted { generics: (generics > 0).then_some(generics), parameters, dtypes: Vec::new() }
    }

    /// The same function with the dtypes of its type parameters.
    pub fn of_dtypes(self, dtypes: Vec<DTypeSet>) -> Wanted {
        Wanted { dtypes, ..self }
    }

    /// A function with this number of parameters of any types.
    pub fn count(parameters: usize) -> Wanted {
        Wanted { generics: None, parameters: vec![None; parameters], dtypes: Vec::new() }
    }

    /// The reason why a function certainly differs.
    pub fn misfit(&self, function: &Function) -> Option<String> {
        let signature = &function.signature;
        let plural = |count: usize, noun: &str| match count {
            1 => format!("1 {noun}"),
            _ => format!("{count} {noun}s"),
        };
        if function.private {
            return Some("it is private".to_owned());
        }
        if signature.asyncness.is_some() || signature.variadic.is_some() {
            return Some("it is an async or variadic function".to_owned());
        }
        let (found, wanted) = (signature.inputs.len(), self.parameters.len());
        if found != wanted {
            return Some(format!(
                "it takes {}, and {} are given",
                plural(found, "parameter"),
                plural(wanted, "value")
            ));
        }
        let written = signature.generics.params.iter();
        let written = written.filter(|param| !matches!(param, GenericParam::Lifetime(_))).count();
        if let Some(wanted) = self.generics.filter(|wanted| *wanted != written) {
            return Some(format!(
                "it has {}, and {} are given",
                plural(written, "type parameter"),
                plural(wanted, "element type")
            ));
        }
        let misfit =
            signature.inputs.iter().zip(&self.parameters).enumerate().find_map(|(index, (found, wanted))| {
                let FnArg::Typed(found) = found else { return None };
                let (wanted, has) = (Shape::of(wanted.as_ref()?, None), Shape::of(&found.ty, Some(function)));
                wanted.differs(&has).then(|| {
                    format!("parameter {} is `{}`, and `{wanted}` is given", index + 1, text(&found.ty))
                })
            });
        misfit.or_else(|| bounds::excluded(function, &self.dtypes))
    }
}

/// The parameters in Rust syntax.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<String> = self
            .parameters
            .iter()
            .map(|ty| ty.as_ref().map_or("_".to_owned(), |ty| text(ty).replace("rt::", "")))
            .collect();
        write!(f, "({})", types.join(", "))
    }
}

/// A type, as far as it is determined independent of imported names.
enum Shape {
    Reference {
        mutable: bool,
        inner: Box<Shape>,
    },
    Slice(Box<Shape>),
    Named {
        name: String,
        inner: Option<Box<Shape>>,
    },
    /// An alias, a type parameter, a projection: anything.
    Unknown,
}

/// The names with one meaning in all contexts.
const KNOWN: [&str; 24] = [
    "View",
    "ViewMut",
    "Option",
    "Vec",
    "Scalar",
    "Tensor",
    "DType",
    "Device",
    "Generator",
    "Layout",
    "Lists",
    "String",
    "bool",
    "f32",
    "f64",
    "i32",
    "i64",
    "isize",
    "str",
    "u32",
    "u64",
    "u8",
    "usize",
    "InferContext",
];

impl Shape {
    /// The shape of a type; names that the function's module redefines are ignored.
    fn of(ty: &Type, function: Option<&Function>) -> Shape {
        match ty {
            Type::Reference(reference) => Shape::Reference {
                mutable: reference.mutability.is_some(),
                inner: Box::new(Shape::of(&reference.elem, function)),
            },
            Type::Slice(slice) => Shape::Slice(Box::new(Shape::of(&slice.elem, function))),
            Type::Paren(inner) => Shape::of(&inner.elem, function),
            Type::Group(inner) => Shape::of(&inner.elem, function),
            Type::Path(path) if path.qself.is_none() => Shape::named(&path.path, function),
            _ => Shape::Unknown,
        }
    }

    fn named(path: &syn::Path, function: Option<&Function>) -> Shape {
        let Some(last) = path.segments.last() else { return Shape::Unknown };
        let name = last.ident.to_string();
        let meant_otherwise = function.is_some_and(|function| {
            let generics = &function.signature.generics;
            function.own_types.contains(&name) || generics.type_params().any(|param| param.ident == name)
        });
        if meant_otherwise || !KNOWN.contains(&name.as_str()) {
            return Shape::Unknown;
        }
        let inner = match &last.arguments {
            PathArguments::AngleBracketed(arguments) if name == "Option" => {
                arguments.args.iter().find_map(|argument| match argument {
                    GenericArgument::Type(ty) => Some(Box::new(Shape::of(ty, function))),
                    _ => None,
                })
            }
            _ => None,
        };
        Shape::Named { name, inner }
    }

    /// Whether two types are certainly different.
    fn differs(&self, other: &Shape) -> bool {
        match (self, other) {
            (Shape::Unknown, _) | (_, Shape::Unknown) => false,
            (Shape::Reference { mutable: a, inner: x }, Shape::Reference { mutable: b, inner: y }) => {
                a != b || x.differs(y)
            }
            (Shape::Slice(a), Shape::Slice(b)) => a.differs(b),
            (Shape::Named { name: a, inner: x }, Shape::Named { name: b, inner: y }) => {
                a != b || matches!((x, y), (Some(x), Some(y)) if x.differs(y))
            }
            _ => true,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Reference { mutable: true, inner } => write!(f, "&mut {inner}"),
            Shape::Reference { mutable: false, inner } => write!(f, "&{inner}"),
            Shape::Slice(inner) => write!(f, "[{inner}]"),
            Shape::Named { name, inner: Some(inner) } => write!(f, "{name}<{inner}>"),
            Shape::Named { name, inner: None } => f.write_str(name),
            Shape::Unknown => f.write_str("_"),
        }
    }
}

/// A type in one line.
fn text(ty: &Type) -> String {
    let item: syn::File = syn::parse_quote!(type A = #ty;);
    let text = prettyplease::unparse(&item);
    let text = text.trim().trim_start_matches("type A = ").trim_end_matches(';');
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
