//! The stages of the generator: only the last one writes files, and after lowering a choice is a type, not a text.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::{assert_none, rust_files};

/// Functions of `std::fs` that change files.
const WRITES: [&str; 12] = [
    "write",
    "create_dir",
    "create_dir_all",
    "rename",
    "remove_file",
    "remove_dir",
    "remove_dir_all",
    "copy",
    "hard_link",
    "set_permissions",
    "File",
    "OpenOptions",
];

/// The names that follow `fs::` in code, outside of modules of tests.
fn uses_of_files(text: &str) -> Vec<String> {
    fn collect(tokens: TokenStream, found: &mut Vec<String>) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let word = |index: usize| tokens.get(index).map(ToString::to_string).unwrap_or_default();
        for (index, token) in tokens.iter().enumerate() {
            let is_tests = index >= 2 && word(index - 1) == "tests" && word(index - 2) == "mod";
            match token {
                TokenTree::Group(group) if !is_tests => collect(group.stream(), found),
                TokenTree::Ident(name) if name == "fs" && word(index + 1) == ":" => {
                    match tokens.get(index + 3) {
                        Some(TokenTree::Group(names)) => {
                            found.extend(names.stream().into_iter().map(|name| name.to_string()));
                        }
                        _ => found.push(word(index + 3)),
                    }
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(text.parse().expect("the file compiles"), &mut found);
    found
}

#[test]
fn only_the_output_stage_writes_files() {
    let mut offenders = Vec::new();
    for folder in ["codegen/src", "codegen/shared/src", "codegen/tools/src"] {
        for (name, text) in rust_files(folder) {
            let is_output = name.starts_with("codegen/src/output");
            let used = uses_of_files(&text);
            let writes = used.into_iter().filter(|used| WRITES.contains(&used.as_str()) && !is_output);
            offenders.extend(writes.map(|used| format!("{name}: `fs::{used}`")));
        }
    }
    assert_none(offenders, "`output` writes generated files; commands write the changes that a tool returns");
}

#[test]
fn a_write_outside_of_the_output_stage_is_found() {
    let used = uses_of_files;
    assert_eq!(used("fn f() { std::fs::write(a, b)?; }"), ["write"]);
    assert_eq!(used("use std::fs::{read, File};"), ["read", ",", "File"]);
    assert!(used("mod tests { fn f() { fs::write(a, b); } }").is_empty());
}

/// Text in the model: words for people, names and code that a spec writes itself, never one of several choices.
const TEXTS: &[&str] = &[
    // Words for people, and texts as written, for documents and messages.
    "Arg.doc",
    "CheckedCondition.text",
    "Deprecated.since",
    "Derivative.text",
    "DocumentedFunction.gives",
    "DocumentedFunction.parameters",
    "DocumentedFunction.refuses",
    "ExprKind.NotImplemented",
    "ExprKind.Opaque",
    "Facts.since",
    "Facts.tags",
    "FormulaLine.text",
    "FormulaNode.Name",
    "FormulaNode.Number",
    "FormulaNode.Words",
    "ForwardFormula.text",
    "Function.doc",
    "Kernel.place",
    "Kernel.text",
    "Model.kept_errors",
    "Model.kept_results",
    "NotationPart.Superscript",
    "NotationPart.Symbol",
    "Op.doc",
    "Op.location",
    "Op.signature",
    "Output.doc",
    "Sample.text",
    // Names that the spec gives.
    "ExprKind.Map",
    "Arg.aliases",
    "Arg.name",
    "Deprecated.instead",
    "ExprKind.Block",
    "Facts.known_as",
    "ForeignNames.known_as",
    "ForeignNames.namespaces",
    "ForeignNames.unlike",
    "Forms.inplace",
    "Forms.out",
    "Function.name",
    "Function.operator",
    "Function.params",
    "Infer.run_sizes",
    "Model.documented",
    "Op.base",
    "Op.name",
    "Op.rust_name",
    "Output.name",
    "Variable.Local",
    // Values of text attributes.
    "Default.Str",
    "ExprKind.Str",
    "SampleValue.Str",
    // Functions in Rust and C++, by their paths.
    "Body.host",
    "Body.view",
    "ExprKind.Native",
    "Function.rust",
    "Infer.function",
    "KernelSource.path",
    "KernelSource.symbol",
    // Records of another project, which only documents read.
    "Note.Map",
    "Note.Text",
    "SuppliedKernel.backend",
    "SuppliedKernel.form",
    "SuppliedKernel.function",
    // Expressions that are read again where they are needed: docs/design/derived-gradients.md, "Not done".
    "Function.derivatives",
    "Function.wirtinger",
];

/// The fields of structs and enums that hold text, as `Type.field` or `Type.Variant`.
#[derive(Default)]
struct TextFields(Vec<String>);

impl TextFields {
    fn add(&mut self, owner: &syn::Ident, name: &str, ty: &syn::Type) {
        struct Text(bool);
        impl<'ast> Visit<'ast> for Text {
            fn visit_ident(&mut self, ident: &'ast syn::Ident) {
                self.0 |= ident == "String";
            }
        }
        let mut text = Text(false);
        text.visit_type(ty);
        if text.0 {
            self.0.push(format!("{owner}.{name}"));
        }
    }
}

impl<'ast> Visit<'ast> for TextFields {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        for field in &item.fields {
            let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            self.add(&item.ident, &name, &field.ty);
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        for variant in &item.variants {
            for field in &variant.fields {
                let name = field.ident.as_ref().unwrap_or(&variant.ident).to_string();
                self.add(&item.ident, &name, &field.ty);
            }
        }
    }
}

#[test]
fn after_lowering_no_choice_is_a_text() {
    let mut found = TextFields::default();
    for (_, text) in rust_files("codegen/src/model") {
        found.visit_file(&syn::parse_file(&text).unwrap());
    }
    let new = found.0.iter().filter(|field| !TEXTS.contains(&field.as_str())).cloned();
    assert_none(
        new.collect(),
        "the model has an enum for a choice; another text is a row of `TEXTS`, with its kind",
    );
    let gone = TEXTS.iter().filter(|field| !found.0.iter().any(|known| known == *field));
    assert_none(gone.map(|field| (*field).to_owned()).collect(), "rows of `TEXTS` without a field");
}
