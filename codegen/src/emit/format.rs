//! Tokens to source that people read: formatted bodies of macros too, comments, a blank line
//! between items.

mod rows;
mod width;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use width::{STEP, fits};

/// Tokens as formatted source. Parsing takes them; `again` makes those of a mistake once more.
///
/// # Errors
/// If the tokens are not Rust; the text holds them.
pub(super) fn source(tokens: TokenStream, again: impl FnOnce() -> TokenStream) -> Result<String, String> {
    let mut file = syn::parse2::<syn::File>(tokens).map_err(|error| format!("{error}\n{}", again()))?;
    Plain.visit_file_mut(&mut file);
    let mut text = String::new();
    let mut after_import = false;
    for item in file.items {
        let is_import = matches!(item, syn::Item::Use(_));
        let continues = is_import && after_import;
        if !text.is_empty() && !continues {
            text.push('\n');
        }
        text.push_str(&self::item(item));
        after_import = is_import;
    }
    Ok(text)
}

/// A comment, at the place of a statement. Tokens hold no comments, so it travels as a macro call.
pub(super) fn comment(text: &str) -> TokenStream {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < COMMENT_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    quote::quote!(#(comment!(#lines);)*)
}

/// Narrow enough for prettyplease to leave the macro call on one line.
const COMMENT_WIDTH: usize = 60;

fn item(item: syn::Item) -> String {
    let text = match &item {
        syn::Item::Macro(call) => rows::call(call).or_else(|| macro_rules(call).map(wide)),
        _ => None,
    };
    text.unwrap_or_else(|| printed(item))
}

/// An item as prettyplease prints it, in wide lines.
fn printed(item: syn::Item) -> String {
    let file = syn::File { shebang: None, frontmatter: None, attrs: Vec::new(), items: vec![item] };
    wide(prettyplease::unparse(&file))
}

/// Narrow source in wide lines, with its comments.
fn wide(text: String) -> String {
    // A group around lines that the first pass joined may fit then.
    width::joined(&width::joined(&with_comments(text)))
}

/// Stand-ins for comments and for several lines of documentation, as these.
fn with_comments(text: String) -> String {
    if !text.contains("comment!(\"") && !text.contains(DOCS) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (start, content) = line.split_at(line.len() - line.trim_start().len());
        let content = content.trim_end();
        let inside = |open: &str, close: &str| content.strip_prefix(open)?.strip_suffix(close);
        if let Some(comment) = inside("comment!(\"", "\");") {
            shown.extend([start, "// ", comment, "\n"]);
        } else if let Some(docs) = inside(DOCS, "\"]") {
            for line in unescaped(docs).split('\n') {
                let space = if line.is_empty() { "" } else { " " };
                shown.extend([start, "///", space, line, "\n"]);
            }
        } else {
            shown.push_str(line);
        }
    }
    shown
}

/// How an attribute with several lines of documentation begins.
const DOCS: &str = "#[docs = \"";

/// The text that a literal stands for, from the characters between its quotes. Parsing it with `syn` would keep
/// every text that was ever parsed.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match rest.next() {
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some('0') => plain.push('\0'),
            Some('u') => {
                let code: String = rest.by_ref().skip(1).take_while(|digit| *digit != '}').collect();
                plain.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
            }
            other => plain.extend(other),
        }
    }
    plain
}

/// Writes as a person would: `0` instead of `0usize`, `f(a + b)` instead of `f((a + b))`.
struct Plain;

impl VisitMut for Plain {
    fn visit_lit_int_mut(&mut self, literal: &mut syn::LitInt) {
        // Every place where these stand names the type.
        if matches!(literal.suffix(), "usize" | "u64" | "u8") {
            *literal = syn::LitInt::new(literal.base10_digits(), literal.span());
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut syn::Expr) {
        visit_mut::visit_expr_mut(self, expr);
        match expr {
            syn::Expr::Paren(paren) if is_one_piece(&paren.expr) => {
                unwrap(expr);
            }
            syn::Expr::Call(call) => {
                call.args.iter_mut().for_each(unwrap);
                if takes_numbers(&call.func) {
                    call.args.iter_mut().for_each(without_suffix);
                }
            }
            syn::Expr::If(choice) => unwrap(&mut choice.cond),
            syn::Expr::MethodCall(call) => call.args.iter_mut().for_each(unwrap),
            syn::Expr::Array(array) => array.elems.iter_mut().for_each(unwrap),
            _ => {}
        }
    }

    fn visit_local_init_mut(&mut self, init: &mut syn::LocalInit) {
        visit_mut::visit_local_init_mut(self, init);
        unwrap(&mut init.expr);
    }
}

/// Whether an expression binds tighter than anything that can stand beside it.
fn is_one_piece(expr: &syn::Expr) -> bool {
    use syn::Expr::{Call, MethodCall, Path, Try};
    matches!(expr, Path(_) | Call(_) | MethodCall(_) | Try(_))
}

/// Whether a function's parameters have types that do not depend on its arguments: a variant of `Scalar`, or a function of
/// the module `raw`.
fn takes_numbers(function: &syn::Expr) -> bool {
    let syn::Expr::Path(path) = function else { return false };
    let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    match names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // A user's module of that name may have generic functions.
        [.., "raw", _] => !names.iter().any(|name| name == "kernels"),
        [.., "Scalar", variant] => matches!(*variant, "Int" | "Float"),
        _ => false,
    }
}

/// A number, or a negative one, without the suffix of its type.
fn without_suffix(expr: &mut syn::Expr) {
    match expr {
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => without_suffix(expr),
        syn::Expr::Lit(syn::ExprLit { lit, .. }) => match lit {
            syn::Lit::Int(number) if number.suffix() == "i64" => {
                *number = syn::LitInt::new(number.base10_digits(), number.span());
            }
            syn::Lit::Float(number) if number.suffix() == "f64" => {
                let digits = number.base10_digits();
                let point = if digits.contains(['.', 'e']) { "" } else { ".0" };
                *number = syn::LitFloat::new(&format!("{digits}{point}"), number.span());
            }
            _ => {}
        },
        _ => {}
    }
}

/// Takes parentheses away that stand around the whole of an expression.
fn unwrap(expr: &mut syn::Expr) {
    while let syn::Expr::Paren(paren) = expr {
        *expr = std::mem::replace(&mut *paren.expr, syn::Expr::Verbatim(TokenStream::new()));
    }
}

/// Stands for `$` while the body of a macro is formatted; longer if the body has such a name.
const DOLLAR: &str = "__dollar_";

/// A macro of one rule whose body is a block, which prettyplease would print as bare tokens.
fn macro_rules(definition: &syn::ItemMacro) -> Option<String> {
    let name = definition.ident.as_ref().filter(|_| definition.attrs.is_empty())?;
    let mut tokens = definition.mac.tokens.clone().into_iter();
    let TokenTree::Group(pattern) = tokens.next()? else { return None };
    let TokenTree::Group(body) = tokens.nth(2)? else { return None };
    let mut dollar = DOLLAR.to_owned();
    let written = body.to_string();
    while written.contains(&dollar) {
        dollar.push('_');
    }
    let mut block = syn::parse2::<syn::Block>(without_dollars(body.stream(), &dollar)).ok()?;
    Plain.visit_block_mut(&mut block);
    let function: syn::File = syn::parse_quote!(fn body() #block);
    let formatted = prettyplease::unparse(&function);
    let body: String = formatted
        .strip_prefix("fn body() {\n")?
        .strip_suffix("}\n")?
        .lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") })
        .collect();
    let (pattern, body) = (pattern.stream().to_string().replace(' ', ""), body.replace(&dollar, "$"));
    Some(format!("macro_rules! {name} {{\n    ({pattern}) => {{{{\n{body}    }}}};\n}}\n"))
}

fn without_dollars(tokens: TokenStream, dollar: &str) -> TokenStream {
    let mut result = TokenStream::new();
    let mut after_dollar = false;
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '$' => {
                after_dollar = true;
                continue;
            }
            TokenTree::Ident(ident) if after_dollar => {
                Ident::new(&format!("{dollar}{ident}"), Span::call_site()).to_tokens(&mut result);
            }
            TokenTree::Group(group) => {
                Group::new(group.delimiter(), without_dollars(group.stream(), dollar)).to_tokens(&mut result);
            }
            other => other.to_tokens(&mut result),
        }
        after_dollar = false;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use quote::quote;

    #[track_caller]
    fn check(tokens: TokenStream, expected: &str) {
        assert_eq!(source(tokens.clone(), || tokens.clone()).unwrap(), expected);
    }

    #[test]
    fn items_stand_apart() {
        check(
            quote! {
                fn a() { b(0usize) }
                static B: i64 = 1i64;
            },
            "fn a() {\n    b(0)\n}\n\nstatic B: i64 = 1i64;\n",
        );
    }

    #[test]
    fn the_body_of_a_macro_is_formatted() {
        check(
            quote! { macro_rules! m { ($T:ty) => {{ type T = $T; f::<$T>() }}; } },
            "macro_rules! m {\n    ($T:ty) => {{\n        type T = $T;\n        f::<$T>()\n    }};\n}\n",
        );
    }

    #[test]
    fn only_parentheses_that_say_nothing_go() {
        check(
            quote! { fn a() { let b = ((c) + 1); f((-b), (2 * (b + c)), [(d)]) } },
            "fn a() {\n    let b = c + 1;\n    f(-b, 2 * (b + c), [d])\n}\n",
        );
    }

    #[test]
    fn comments_are_wrapped() {
        let comment = comment(&"word ".repeat(14));
        check(
            quote! { fn a() { #comment b() } },
            &format!("fn a() {{\n    //{}\n    //{}\n    b()\n}}\n", " word".repeat(12), " word".repeat(2)),
        );
    }

    #[test]
    fn several_lines_of_documentation_are_comments() {
        let text = "One \"line\".\n\n- a\\b\tc \u{7}é";
        check(
            quote! { struct A { #[docs = #text] b: u8 } },
            "struct A {\n    /// One \"line\".\n    ///\n    /// - a\\b\tc \u{7}é\n    b: u8,\n}\n",
        );
    }

    #[test]
    fn what_is_not_rust_is_shown() {
        assert!(source(quote!(fn fn), || quote!(fn fn)).unwrap_err().contains("fn fn"));
    }
}
