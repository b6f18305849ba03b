//! One function makes trees of the texts of a spec: the depth of a text is known before a parser recurses over it.

use proc_macro2::{TokenStream, TokenTree};

use super::{assert_none, rust_files};

/// The function that counts the depth first.
const GUARDED: &str = "codegen/src/expr/parse.rs";

/// Kinds of syntax without an end to their depth, which a text of a spec must not become elsewhere.
const DEEP: [&str; 8] = ["Expr", "Block", "Stmt", "Pat", "Type", "Item", "TokenStream", "File"];

/// Calls of a parser, each as `line: call`. A type that is not written is deep, since the next edit may change it.
fn parsers(tokens: TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let word = |index: usize| tokens.get(index).map(ToString::to_string).unwrap_or_default();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => parsers(group.stream(), found),
            TokenTree::Ident(name)
                if ["parse_str", "parse2", "parse_file"].iter().any(|known| name == known) =>
            {
                let is_typed = word(index + 1) == ":" && word(index + 3) == "<";
                let of: Vec<String> = (index + 4..)
                    .map(&word)
                    .take_while(|word| !word.starts_with('(') && !word.is_empty())
                    .collect();
                let own = !is_typed
                    && word(index.wrapping_sub(1)) == "."
                    && word(index.wrapping_sub(2)) == "parse_mod_style";
                // Tokens that the generator has written itself are as deep as its own code.
                let is_deep = DEEP
                    .iter()
                    .filter(|kind| name == "parse_str" || **kind == "Expr")
                    .any(|kind| of.iter().any(|part| part == kind));
                if !own && (!is_typed || is_deep) {
                    found.push(format!("{}: {name}", name.span().start().line));
                }
            }
            _ => {}
        }
    }
}

fn parsers_in(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    parsers(text.parse().expect("the file compiles"), &mut found);
    found
}

#[test]
fn trees_of_texts_are_made_by_one_function() {
    let folders = ["codegen/src", "codegen/tools/src", "cli/src"];
    let files = folders.into_iter().flat_map(rust_files).filter(|(file, _)| file != GUARDED);
    let offenders = files
        .flat_map(|(file, text)| parsers_in(&text).into_iter().map(move |found| format!("{file}:{found}")));
    assert_none(
        offenders.collect(),
        "`opsmith_codegen::expr::parse` reads texts of a spec; other calls name a type that is not deep: `parse_str::<syn::Path>(text)`",
    );
}

#[test]
fn the_search_for_parsers_finds_them() {
    let found = |code: &str| parsers_in(&format!("fn a() {{ {code} }}"));
    for deep in [
        "syn::parse_str(text)",
        "let a: syn::Path = syn::parse_str(text).ok()?;",
        "syn::parse_str::<syn::Expr>(text)",
        "parse_str::<Expr>(text)",
        "syn::parse_str::<Vec<syn::Type>>(text)",
        "syn::parse2::<syn::Expr>(tokens)",
        "f(syn::parse2(tokens))",
        "texts.map(syn::parse_str)",
        "syn::parse_file(text)",
    ] {
        assert_eq!(found(deep).len(), 1, "{deep}");
    }
    for fine in [
        "syn::parse_str::<syn::Path>(a)",
        "syn::parse2::<syn::File>(a)",
        "syn::Path::parse_mod_style.parse_str(a)",
    ] {
        assert!(found(fine).is_empty(), "{fine}");
    }
}
