//! Names in generated code, as identifiers.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use proc_macro2::{Group, Ident, Spacing, TokenStream, TokenTree};
use quote::format_ident;

use crate::analysis::naming;
use crate::config::Config;
use crate::diagnostics::BIDIRECTIONAL;
use crate::model::expr::{Expr, ExprKind};
use crate::model::{Arg, Op};

/// An identifier for a name of the spec; a keyword gets an underscore.
pub(super) fn ident(name: &str) -> Ident {
    match crate::expr::path::is_identifier(name) {
        true => format_ident!("{name}"),
        false => format_ident!("{name}_"),
    }
}

/// The name of an operator's function that takes every argument: `add_tensor` for `add.Tensor`.
pub fn raw_name(op: &Op) -> Ident {
    let [raw, _] = naming::identifiers(&op.name);
    format_ident!("{raw}")
}

/// The name of a function that belongs to an operator: `add_tensor_infer`.
pub(super) fn part_name(op: &Op, part: &str) -> Ident {
    format_ident!("{}_{part}", naming::stem(&op.name))
}

/// The name of an argument in generated code.
pub(super) fn parameter(arg: &Arg) -> Ident {
    format_ident!("{}", naming::parameter(&arg.name))
}

/// The name in generated code of a local that an expression of the operator binds.
pub(super) fn local(op: &Op, name: &str) -> Ident {
    format_ident!("{}", naming::local(op, name))
}

/// The names that an operator's own code gives to values, which the generator's must not hide.
pub(super) struct Taken(HashSet<String>);

impl Taken {
    /// The arguments, and the names bound in the given expressions.
    pub fn by<'a>(op: &Op, expressions: impl IntoIterator<Item = &'a Expr>) -> Taken {
        let mut taken: HashSet<String> = op.args.iter().map(|arg| naming::parameter(&arg.name)).collect();
        for expression in expressions {
            expression.walk(&mut |part| {
                let names: Vec<&String> = match &part.kind {
                    ExprKind::Block(bindings, _) => bindings.iter().map(|(name, _)| name).collect(),
                    ExprKind::Map(_, names, _) => names.iter().collect(),
                    _ => return,
                };
                taken.extend(names.into_iter().map(|name| naming::local(op, name)));
            });
        }
        Taken(taken)
    }

    /// The wished name, with underscores if it is taken.
    pub fn free(&self, name: &str) -> Ident {
        let mut name = name.to_owned();
        while self.0.contains(&name) {
            name.push('_');
        }
        format_ident!("{name}")
    }
}

/// The name of an operator's definition: `ADD_TENSOR`.
pub(super) fn def_name(op: &Op) -> Ident {
    let [_, definition] = naming::identifiers(&op.name);
    format_ident!("{definition}")
}

/// The name of a library's trait of methods.
pub(super) fn methods_name(config: &Config) -> Ident {
    match config.is_stock() {
        true => ident(naming::STOCK_METHODS),
        false => ident(&naming::methods(&config.library)),
    }
}

/// A position as generated code writes it, without a type suffix.
pub(super) fn position(index: usize) -> proc_macro2::Literal {
    proc_macro2::Literal::usize_unsuffixed(index)
}

/// Documentation. Several lines travel as one attribute, which `format` writes as comments. Characters that
/// a comment of Rust may not hold stand there as escapes.
pub(super) fn doc(text: &str) -> TokenStream {
    let refused = |letter: char| {
        letter.is_control() && !matches!(letter, '\n' | '\t') || BIDIRECTIONAL.contains(&letter)
    };
    let text = &match text.contains(refused) {
        false => Cow::Borrowed(text),
        true => text
            .chars()
            .map(
                |letter| {
                    if refused(letter) { letter.escape_unicode().to_string() } else { letter.to_string() }
                },
            )
            .collect(),
    };
    if text.contains('\n') {
        return quote::quote!(#[docs = #text]);
    }
    let text = if text.is_empty() { String::new() } else { format!(" {text}") };
    quote::quote!(#[doc = #text])
}

/// The same code in a module that imports the runtime's types: `Tensor` for `rt::Tensor`, but for those whose name the
/// module gives to a type of its own.
pub(super) fn imported(code: TokenStream, own: &BTreeSet<String>) -> TokenStream {
    let tokens: Vec<TokenTree> = code.into_iter().collect();
    let is_type =
        |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase()) && !own.contains(name);
    let mut result = TokenStream::new();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at..] {
            [
                TokenTree::Ident(runtime),
                TokenTree::Punct(colon),
                TokenTree::Punct(_),
                TokenTree::Ident(name),
                ..,
            ] if runtime == "rt" && colon.spacing() == Spacing::Joint && is_type(&name.to_string()) => {
                at += 3;
                continue;
            }
            [TokenTree::Group(group), ..] => {
                let mut inner = Group::new(group.delimiter(), imported(group.stream(), own));
                inner.set_span(group.span());
                result.extend([TokenTree::Group(inner)]);
            }
            [other, ..] => result.extend([other.clone()]),
            [] => {}
        }
        at += 1;
    }
    result
}
