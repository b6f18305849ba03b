//! Calls of the runtime's macros whose rows are functions, options or items, as people write them.
//!
//! In: the tokens between the braces. Out: the call as text, one row after another. Rows are printed as the Rust that
//! they resemble, since prettyplease knows no other, and get their own signs back afterwards. Must not know the
//! meaning of a macro.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{Attribute, Expr, Generics, LitStr, ReturnType, Token, Type, TypeParam, bracketed};

use super::{Plain, STEP, fits, printed};

/// The text of a call with braces; `None` if its content has no rows.
pub(super) fn call(call: &syn::ItemMacro) -> Option<String> {
    if call.ident.is_some() || !matches!(call.mac.delimiter, syn::MacroDelimiter::Brace(_)) {
        return None;
    }
    let tokens = || call.mac.tokens.clone();
    let content = syn::parse2::<Functions>(tokens())
        .map(Functions::text)
        .or_else(|_| syn::parse2::<Options>(tokens()).map(Options::text))
        .or_else(|_| syn::parse2::<syn::File>(tokens()).map(|items| inside(quote!(#items))))
        .ok()?;
    Some(format!("{}! {{\n{content}}}\n", path(&call.mac)))
}

fn path(call: &syn::Macro) -> String {
    call.path.to_token_stream().to_string().replace(' ', "")
}

/// Items as they stand inside of braces.
fn inside(items: TokenStream) -> String {
    let mut module: syn::Item = syn::parse_quote!(mod m { #items });
    Plain.visit_item_mut(&mut module);
    let module = printed(module);
    let content = module.trim_start_matches("mod m {\n");
    content.trim_end_matches('\n').trim_end_matches('}').to_owned()
}

/// A head and `[words] fn f(a: A, b => B) -> R = body;` …
struct Functions {
    head: Head,
    rows: Vec<Function>,
}

enum Head {
    None,
    /// `name: "summary";`
    Forms(Ident, LitStr),
}

/// `[words] fn f(a: A, b => B) -> R = body;`
struct Function {
    attributes: Vec<Attribute>,
    words: Vec<Ident>,
    name: Ident,
    generics: Generics,
    params: Punctuated<Param, Token![,]>,
    result: ReturnType,
    body: Expr,
}

/// `a: A`, or `b => B` where the argument is converted.
struct Param {
    name: Ident,
    is_converted: bool,
    ty: Type,
}

impl Parse for Functions {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = input.call(Attribute::parse_outer)?;
        let mut head = Head::None;
        if input.peek(syn::Ident) && input.peek2(Token![:]) {
            let name = input.parse()?;
            input.parse::<Token![:]>()?;
            head = Head::Forms(name, input.parse()?);
            input.parse::<Token![;]>()?;
        }
        let mut rows = Vec::new();
        while !input.is_empty() {
            let mut row: Function = input.parse()?;
            // Those of the first row stand where a head would.
            row.attributes.splice(..0, attributes.drain(..));
            rows.push(row);
        }
        if rows.is_empty() { Err(input.error("no rows")) } else { Ok(Functions { head, rows }) }
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let mut words = Vec::new();
        if input.peek(syn::token::Bracket) {
            let content;
            syn::bracketed!(content in input);
            while !content.is_empty() {
                words.push(content.parse()?);
            }
        }
        input.parse::<Token![fn]>()?;
        let (name, generics) = (input.parse()?, input.parse()?);
        let content;
        syn::parenthesized!(content in input);
        let params = content.parse_terminated(Param::parse, Token![,])?;
        let result = input.parse()?;
        input.parse::<Token![=]>()?;
        let body = input.parse()?;
        input.parse::<Token![;]>()?;
        Ok(Function { attributes, words, name, generics, params, result, body })
    }
}

impl Parse for Param {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        let is_converted = input.peek(Token![=>]);
        match is_converted {
            true => _ = input.parse::<Token![=>]>()?,
            false => _ = input.parse::<Token![:]>()?,
        }
        Ok(Param { name, is_converted, ty: input.parse()? })
    }
}

impl Functions {
    fn text(self) -> String {
        let indent = " ".repeat(STEP);
        let (first, last) = (format!("{indent}fn "), format!("{indent}}}"));
        let head = match self.head {
            Head::None => String::new(),
            Head::Forms(name, summary) => format!("    {name}: {};\n", summary.token()),
        };
        let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
        // One after another, so that only one is a tree: there are as many as operators.
        for row in self.rows {
            let text = inside(row.as_rust());
            let mut rest = text.lines();
            while let Some(line) = rest.next() {
                if !line.starts_with(&first) {
                    lines.push(line.to_owned());
                    continue;
                }
                let function = std::iter::once(line).chain(rest.by_ref().take_while(|line| *line != last));
                lines.extend(row.with_signs(function));
            }
        }
        lines.join("\n") + "\n"
    }
}

impl Function {
    /// The words in brackets with a space behind them; nothing without words.
    fn brackets(&self) -> String {
        let words: Vec<String> = self.words.iter().map(Ident::to_string).collect();
        if words.is_empty() { String::new() } else { format!("[{}] ", words.join(" ")) }
    }

    /// A name as long as the name with the words.
    fn long_name(&self) -> Ident {
        format_ident!("{}{}", "_".repeat(self.brackets().len()), self.name)
    }

    /// A function that is printed as the row is.
    fn as_rust(&self) -> TokenStream {
        let (name, Function { attributes, generics, result, body, .. }) = (self.long_name(), self);
        let params = self.params.iter().map(|Param { name, is_converted, ty }| match is_converted {
            true => quote!(#name: I<#ty>),
            false => quote!(#name: #ty),
        });
        quote!(#(#attributes)* fn #name #generics(#(#params),*) #result { #body })
    }

    /// The lines of that function but the last, as the row's.
    fn with_signs<'a>(&self, function: impl Iterator<Item = &'a str>) -> Vec<String> {
        let long_name = format!("fn {}", self.long_name());
        let name = format!("{}fn {}", self.brackets(), self.name);
        let (mut signature, mut body) = (Vec::new(), Vec::new());
        for line in function {
            let is_body = signature.last().is_some_and(|line: &&str| line.ends_with('{'));
            if is_body { body.push(line.to_owned()) } else { signature.push(line) }
        }
        let mut text = signature.join("\n").replacen(&long_name, &name, 1);
        while let Some((before, ty, after)) = converted(&text) {
            text = format!("{before} => {ty}{after}");
        }
        let mut signature: Vec<String> = text.lines().map(str::to_owned).collect();
        let last = signature.pop().unwrap_or_default();
        let head = format!("{}=", last.trim_end_matches('{'));
        signature.extend(behind(head, body));
        signature
    }
}

/// The first `: I<Type>` of a signature: the text before it, the type, the text after it. A type too
/// long for a line is in lines of its own there, with a comma behind it.
fn converted(signature: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = signature.split_once(": I<")?;
    let (ty, after) = rest.split_at(closing(rest)?);
    Some((before, ty.trim().trim_end_matches(','), &after[1..]))
}

/// Where the angle bracket closes that opens before a text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    let closes = |letter: char| {
        depth += i32::from(letter == '<') - i32::from(letter == '>');
        depth == 0
    };
    text.find(closes)
}

/// `/// Docs.` `Name;`
fn titled(attributes: &[Attribute], name: &Ident) -> String {
    let text = inside(quote!(#(#attributes)* struct #name;));
    text.replacen(&format!("struct {name};"), &format!("{name};"), 1)
}

/// A value behind a `=`, in its line or opened there if that fits.
fn behind(head: String, mut value: Vec<String>) -> Vec<String> {
    let Some(last) = value.last_mut() else { return vec![head] };
    last.push(';');
    let together = format!("{head} {}", value[0].trim_start());
    if !fits(&together) || value.len() > 1 && !together.ends_with(['(', '[', '{']) {
        value.insert(0, head);
        return value;
    }
    let rest = value[1..].iter().map(|line| line.get(STEP..).unwrap_or_default().to_owned());
    std::iter::once(together).chain(rest).collect()
}

/// `/// Docs.` `Name;` `a: A = default, set B => value, from [V: C] V;` …
struct Options {
    attributes: Vec<Attribute>,
    name: Ident,
    fields: Vec<OptionField>,
}

struct OptionField {
    attributes: Vec<Attribute>,
    name: Ident,
    ty: Type,
    default: Expr,
    given: Type,
    value: Expr,
    /// The parameters of a conversion, and the type that converts.
    source: Option<(Option<TypeParam>, Type)>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let name = input.parse()?;
        input.parse::<Token![;]>()?;
        let mut fields = Vec::new();
        while !input.is_empty() {
            fields.push(input.parse()?);
        }
        Ok(Options { attributes, name, fields })
    }
}

impl Parse for OptionField {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let ty = input.parse()?;
        input.parse::<Token![=]>()?;
        let default = input.parse()?;
        input.parse::<Token![,]>()?;
        let word: Ident = input.parse()?;
        if word != Ident::new("set", Span::call_site()) {
            return Err(syn::Error::new(word.span(), "expected `set`"));
        }
        let given = input.parse()?;
        input.parse::<Token![=>]>()?;
        let value = input.parse()?;
        let mut source = None;
        if input.parse::<Option<Token![,]>>()?.is_some() {
            let word: Ident = input.parse()?;
            if word != Ident::new("from", Span::call_site()) {
                return Err(syn::Error::new(word.span(), "expected `from`"));
            }
            let inside;
            bracketed!(inside in input);
            let parameter = if inside.is_empty() { None } else { Some(inside.parse()?) };
            source = Some((parameter, input.parse()?));
        }
        input.parse::<Token![;]>()?;
        Ok(OptionField { attributes, name, ty, default, given, value, source })
    }
}

impl Options {
    fn text(self) -> String {
        let Options { attributes, name, fields } = self;
        let mut text = titled(&attributes, &name);
        for OptionField { attributes, name, ty, default, given, value, source } in fields {
            let docs = inside(quote!(#(#attributes)* struct M;));
            text.push_str(docs.trim_end().trim_end_matches("struct M;").trim_end_matches(' '));
            let [default, value] = [default, value].map(|value| {
                let line = one_line(quote!(const M: () = #value;));
                line.trim_start_matches("const M: () = ").trim_end_matches(';').to_owned()
            });
            let [ty, given] = [ty, given].map(type_text);
            let source = source.map_or(String::new(), |(parameter, ty)| {
                let line = one_line(quote!(type M<#parameter> = ();));
                let parameter = line.trim_start_matches("type M").trim_end_matches(" = ();");
                let inside = parameter.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
                let parameter = inside.unwrap_or(parameter);
                format!(", from [{parameter}] {}", type_text(ty))
            });
            let (first, second) =
                (format!("    {name}: {ty} = {default},"), format!("set {given} => {value}{source};"));
            let together = format!("{first} {second}");
            match fits(&together) {
                true => text.push_str(&format!("{together}\n")),
                false => text.push_str(&format!("{first}\n        {second}\n")),
            }
        }
        text
    }
}

fn type_text(ty: Type) -> String {
    let line = one_line(quote!(type M = #ty;));
    line.trim_start_matches("type M = ").trim_end_matches(';').to_owned()
}

fn one_line(item: TokenStream) -> String {
    let text = inside(item);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("( ", "(").replace("[ ", "[").replace(", )", ")").replace(", ]", "]")
}
