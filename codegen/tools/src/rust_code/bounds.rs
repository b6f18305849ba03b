//! Dtypes of an entry that the bounds of its kernel exclude.
//!
//! In: a parsed function, the dtypes of its type parameters. Out: the first bound that excludes some of them. Only
//! traits of [`ELEMENT_TRAITS`] are checked; others are left to the compiler.

use opsmith_core::{DTypeSet, ELEMENT_TRAITS};
use quote::ToTokens as _;
use syn::{GenericArgument, PathArguments, Type, TypeParamBound, WherePredicate};

use super::resolve::Function;

/// A bound of one type parameter: `T: Trait`, or `T::Compute: Trait`.
struct Bound<'a> {
    parameter: String,
    of_compute: bool,
    path: &'a syn::Path,
}

/// The first mistake in the bounds of a function for these dtypes of its type parameters, in a sentence.
pub(super) fn excluded(function: &Function, dtypes: &[DTypeSet]) -> Option<String> {
    let generics = &function.signature.generics;
    let names: Vec<String> = generics.type_params().map(|param| param.ident.to_string()).collect();
    let bounds = bounds(generics);
    let wrong = bounds.iter().find_map(|bound| {
        let given = dtypes.get(names.iter().position(|name| *name == bound.parameter)?)?;
        let allowed = allowed(function, bound.path)?;
        let left_out: Vec<String> = given
            .iter()
            .filter(|dtype| !allowed.contains(if bound.of_compute { dtype.to_compute() } else { *dtype }))
            .map(|dtype| format!("`{}`", dtype.name()))
            .collect();
        (!left_out.is_empty()).then_some((bound, left_out))
    });
    let (bound, left_out) = wrong?;
    let place = if bound.of_compute { "::Compute" } else { "" };
    let path = bound.path.to_token_stream().to_string().replace(' ', "");
    Some(format!("its bound `{}{place}: {path}` leaves out {}", bound.parameter, left_out.join(", ")))
}

/// All bounds of type parameters, in the parameter list or in a `where` clause.
fn bounds(generics: &syn::Generics) -> Vec<Bound<'_>> {
    let mut found = Vec::new();
    for param in generics.type_params() {
        add(&param.ident.to_string(), false, &param.bounds, &mut found);
    }
    for predicate in generics.where_clause.iter().flat_map(|clause| &clause.predicates) {
        let WherePredicate::Type(predicate) = predicate else { continue };
        let Type::Path(path) = &predicate.bounded_ty else { continue };
        let names: Vec<String> = path.path.segments.iter().map(|part| part.ident.to_string()).collect();
        match &names[..] {
            [parameter] => add(parameter, false, &predicate.bounds, &mut found),
            [parameter, last] if last == "Compute" => add(parameter, true, &predicate.bounds, &mut found),
            _ => {}
        }
    }
    found
}

fn add<'a>(
    parameter: &str,
    of_compute: bool,
    bounds: impl IntoIterator<Item = &'a TypeParamBound>,
    found: &mut Vec<Bound<'a>>,
) {
    for bound in bounds {
        let TypeParamBound::Trait(bound) = bound else { continue };
        found.push(Bound { parameter: parameter.to_owned(), of_compute, path: &bound.path });
        let Some(PathArguments::AngleBracketed(arguments)) =
            bound.path.segments.last().map(|part| &part.arguments)
        else {
            continue;
        };
        for argument in &arguments.args {
            if let GenericArgument::Constraint(constraint) = argument
                && constraint.ident == "Compute"
            {
                add(parameter, true, &constraint.bounds, found);
            }
        }
    }
}

/// The dtypes that implement a trait; `None` for an unknown trait.
fn allowed(function: &Function, path: &syn::Path) -> Option<DTypeSet> {
    let mut names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
    if let [name] = &names[..] {
        if function.own_types.contains(name) {
            return None;
        }
        let imported = function.imports.iter().find(|import| import.last() == Some(name));
        names = match imported {
            Some(import) => import.clone(),
            None if function.imports.iter().any(|import| import.last().is_some_and(|name| name == "*")) => {
                return None;
            }
            None => names,
        };
    }
    let known = ELEMENT_TRAITS.iter().find(|known| match (&names[..], known.module) {
        ([name], None) => name == known.name,
        ([.., parent, name], Some(module)) => parent == module && name == known.name,
        _ => false,
    });
    known.map(|known| known.dtypes)
}
