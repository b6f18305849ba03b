//! Families of entries to one entry with forms.
//!
//! PyTorch declares `f`, `f_` and `f.out` one by one; here `f` is declared and the others are its forms. In: entries.
//! Out: [`Folded`] entries, each with the entries it replaces. An entry that differs from the generated form stays an
//! entry of its own.

use std::collections::{HashMap, HashSet};

use super::native::Native;
use opsmith_codegen::analysis::naming;
use opsmith_codegen::model::Note;
use opsmith_codegen::spec::schema::{Argument, BaseType, OpName, Return, Schema, SchemaKind, Type};

/// An entry of the new spec.
pub(super) struct Folded {
    /// The signature.
    pub schema: Schema,
    /// The entry of that signature; `None` if PyTorch's generator makes it.
    pub main: Option<usize>,
    /// The in-place form.
    pub inplace: Option<Form>,
    /// The out form.
    pub out: Option<Form>,
    /// The Rust function, if it differs from the default for the name.
    pub rust_name: Option<String>,
}

/// A form of an entry.
pub(super) struct Form {
    /// Its own entry; `None` if PyTorch's generator makes it.
    pub name: String,
    /// Its own entry; none if the file leaves it to PyTorch's generator.
    pub native: Option<usize>,
}

impl Folded {
    /// The entries that this one replaces.
    pub fn members(&self) -> impl Iterator<Item = usize> {
        let forms = [&self.inplace, &self.out].into_iter().flatten();
        self.main.into_iter().chain(forms.filter_map(|form| form.native))
    }

    /// The forms made by PyTorch's generator.
    pub fn generated(&self) -> impl Iterator<Item = &str> {
        let forms = [&self.inplace, &self.out].into_iter().flatten();
        forms.filter(|form| form.native.is_none()).map(|form| form.name.as_str())
    }
}

/// Folds equivalent entries. `apart` are signatures that are referred to on their own, `generated` those without an
/// entry that are referred to.
pub(super) fn fold(natives: &[Native], apart: &HashSet<&str>, generated: &[&Schema]) -> Vec<Folded> {
    let mut by_base: HashMap<(Option<&str>, &str), Vec<usize>> = HashMap::new();
    for (index, native) in natives.iter().enumerate() {
        let name = &native.schema.name;
        by_base.entry((name.namespace.as_deref(), &name.base)).or_default().push(index);
    }
    let mut taken = vec![false; natives.len()];
    let mut folded = Vec::new();
    for (index, native) in natives.iter().enumerate() {
        if native.schema.kind() != SchemaKind::Functional {
            continue;
        }
        taken[index] = true;
        let mut entry = Folded {
            schema: native.schema.clone(),
            main: Some(index),
            inplace: None,
            out: None,
            rust_name: None,
        };
        for &other in relatives(&by_base, &native.schema.name) {
            if taken[other] || apart.contains(natives[other].func.as_str()) {
                continue;
            }
            let schema = &natives[other].schema;
            if entry.inplace.is_none() && is_inplace_of(schema, &native.schema) {
                entry.inplace = Some(Form { name: natives[other].name(), native: Some(other) });
                taken[other] = true;
            } else if entry.out.is_none() && is_out_of(schema, &native.schema) {
                entry.out = Some(Form { name: natives[other].name(), native: Some(other) });
                taken[other] = true;
            }
        }
        generated_out(&mut entry, native);
        folded.push((index, entry));
    }
    for (index, native) in natives.iter().enumerate().filter(|(index, _)| !taken[*index]) {
        let entry = generated_functional(native, index).unwrap_or_else(|| Folded {
            schema: native.schema.clone(),
            main: Some(index),
            inplace: None,
            out: None,
            rust_name: None,
        });
        folded.push((index, entry));
    }
    folded.sort_by_key(|(index, _)| *index);
    let mut folded: Vec<Folded> = folded.into_iter().map(|(_, entry)| entry).collect();
    for schema in generated {
        let there = folded.iter().any(|entry| entry.schema.name == schema.name);
        if !there {
            let schema = (*schema).clone();
            folded.push(Folded { schema, main: None, inplace: None, out: None, rust_name: None });
        }
    }
    name_functions(&mut folded);
    folded
}

/// The entries of one base name, in-place ones included.
fn relatives<'m>(
    by_base: &'m HashMap<(Option<&'m str>, &'m str), Vec<usize>>,
    name: &'m OpName,
) -> &'m [usize] {
    by_base.get(&(name.namespace.as_deref(), name.base.as_str())).map_or(&[], Vec::as_slice)
}

/// Whether `schema` is equal to the in-place form of `functional`.
fn is_inplace_of(schema: &Schema, functional: &Schema) -> bool {
    let (Some(target), Some(first)) = (schema.args.first(), functional.args.first()) else { return false };
    let writes_first = target.is_mutable() && schema.args[1..].iter().all(|arg| !arg.is_mutable());
    schema.kind() == SchemaKind::Inplace
        && schema.name.overload == functional.name.overload
        && schema.name.dunder == functional.name.dunder
        && writes_first
        && is_tensor(&first.ty)
        && one_tensor(&functional.returns)
        && matches!(schema.returns.as_slice(), [only] if only.alias == target.alias)
        && same_arguments(&schema.args.iter().collect::<Vec<_>>(), &functional.args)
}

/// Whether `schema` is equal to the out form of `functional`.
fn is_out_of(schema: &Schema, functional: &Schema) -> bool {
    let inputs: Vec<&Argument> = schema.args.iter().filter(|arg| !arg.is_out()).collect();
    schema.kind() == SchemaKind::Out
        && schema.name.spelling() == functional.name.spelling()
        && schema.out_args().count() == functional.returns.len()
        && schema.returns.len() == functional.returns.len()
        && functional.returns.iter().all(|value| is_tensor(&value.ty) && value.alias.is_none())
        && inputs.iter().all(|arg| !arg.is_mutable())
        && same_arguments(&inputs, &functional.args)
}

/// Whether arguments are equal apart from write annotations.
fn same_arguments(some: &[&Argument], others: &[Argument]) -> bool {
    let default = |arg: &Argument| arg.default.as_ref().map(|default| default.text.clone());
    some.len() == others.len()
        && some.iter().zip(others).all(|(a, b)| {
            a.name == b.name && a.ty == b.ty && a.kwarg_only == b.kwarg_only && default(a) == default(b)
        })
}

fn is_tensor(ty: &Type) -> bool {
    *ty == Type::Base(BaseType::Tensor)
}

fn one_tensor(returns: &[Return]) -> bool {
    matches!(returns, [only] if is_tensor(&only.ty) && only.alias.is_none())
}

/// The out form requested by `autogen` from PyTorch's generator, if ours is equal.
fn generated_out(entry: &mut Folded, native: &Native) {
    let plain = native.schema.returns.iter().all(|value| is_tensor(&value.ty) && value.alias.is_none());
    if entry.out.is_some() || native.schema.returns.is_empty() || !plain {
        return;
    }
    let wanted = |name: &&str| name.ends_with(".out") || name.ends_with("_out");
    if let [name] = native.words("autogen").as_slice()
        && wanted(name)
    {
        entry.out = Some(Form { name: (*name).to_owned(), native: None });
    }
}

/// An in-place entry whose functional form PyTorch's generator makes.
fn generated_functional(native: &Native, index: usize) -> Option<Folded> {
    let schema = &native.schema;
    let (target, rest) = schema.args.split_first()?;
    let [returned] = schema.returns.as_slice() else { return None };
    let plain = schema.kind() == SchemaKind::Inplace
        && is_tensor(&target.ty)
        && is_tensor(&returned.ty)
        && returned.alias == target.alias
        && rest.iter().all(|arg| !arg.is_mutable());
    let mut functional = schema.clone();
    functional.name.inplace = false;
    let name = functional.name.to_string();
    let words = native.words("autogen");
    if !plain || !words.contains(&name.as_str()) || words.len() > 2 {
        return None;
    }
    functional.args[0].alias = None;
    functional.returns[0].alias = None;
    let out = words.into_iter().find(|word| *word != name);
    Some(Folded {
        schema: functional,
        main: None,
        inplace: Some(Form { name: native.name(), native: Some(index) }),
        out: out.map(|name| Form { name: name.to_owned(), native: None }),
        rust_name: None,
    })
}

/// Gives each entry distinct Rust functions: the default ones if they are free.
fn name_functions(folded: &mut [Folded]) {
    let mut taken: HashSet<String> =
        naming::RESERVED_FUNCTIONS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut options = HashSet::new();
    // Entries that write no argument come first: they are the ones that users call.
    let (plain, writing): (Vec<_>, Vec<_>) =
        folded.iter_mut().partition(|entry| entry.schema.kind() == SchemaKind::Functional);
    for entry in plain.into_iter().chain(writing) {
        let usual = naming::usual_function(&entry.schema.name.spelling(), &entry.schema.name.overload);
        let full = naming::stem(&entry.schema.name.to_string());
        let writes = entry.schema.kind() != SchemaKind::Functional;
        let candidates = (!writes).then(|| usual.clone()).into_iter();
        let candidates = candidates.chain([full.trim_end_matches('_').to_owned()]);
        let numbered = (2..).map(|number| format!("{}_{number}", full.trim_end_matches('_')));
        let mut candidates =
            candidates.chain(numbered).filter(|name| opsmith_codegen::expr::path::is_identifier(name));
        let free = candidates.find(|name| {
            let functions = functions(entry, name);
            functions.iter().all(|name| !taken.contains(name)) && !options.contains(&naming::options_of(name))
        });
        let Some(name) = free else { continue };
        taken.extend(functions(entry, &name));
        options.insert(naming::options_of(&name));
        entry.rust_name = (name != usual).then_some(name);
    }
}

/// Every function that an entry of that Rust name gets.
fn functions(entry: &Folded, rust_name: &str) -> Vec<String> {
    let options = entry.schema.args.iter().any(|arg| arg.default.is_some());
    let forms = [
        (naming::Form::Functional, true),
        (naming::Form::Inplace, entry.inplace.is_some()),
        (naming::Form::Out, entry.out.is_some()),
    ];
    let there = forms.into_iter().filter(|(_, there)| *there);
    there
        .flat_map(|(form, _)| {
            let with_options = options.then(|| naming::function_of(rust_name, form, true));
            [Some(naming::function_of(rust_name, form, false)), with_options]
        })
        .flatten()
        .collect()
}

/// The fields of an entry that its form does not imply and that are not translated.
pub(super) fn kept<'n>(native: &'n Native, translated: &[&str]) -> Vec<(&'n str, &'n Note)> {
    let rest = native.fields.iter().filter(|(field, _)| !translated.contains(&field.as_str()));
    rest.map(|(field, value)| (field.as_str(), value)).collect()
}
