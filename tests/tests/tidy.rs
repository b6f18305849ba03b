//! Rules that hold for every file and every operator. Each test names all offenders.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use opsmith_codegen::model::{Model, Operation, Role};
use opsmith_codegen::spec::document::{constraints, keys};
use opsmith_codegen::spec::schema;
use opsmith_codegen::{Config, Parent, emit, model, pipeline};
use opsmith_core::{Backend, DType, DTypeSet, rules};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

#[path = "tidy/commands.rs"]
mod commands;
#[path = "tidy/comments.rs"]
mod comments;
#[path = "tidy/definitions.rs"]
mod definitions;
#[path = "tidy/documented.rs"]
mod documented;
#[path = "tidy/kernels.rs"]
mod kernels;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/parsing.rs"]
mod parsing;
#[path = "tidy/sizes.rs"]
mod sizes;
#[path = "tidy/stages.rs"]
mod stages;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Rust file under a folder of the workspace, by its path from the root.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with(['.', '_']) && !name.starts_with("target") {
                walk(&path, found);
            } else if name.ends_with(".rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).unwrap())
    };
    found.into_iter().map(read).collect()
}

#[track_caller]
fn assert_none(offenders: Vec<String>, rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

#[test]
fn every_file_says_what_it_is() {
    let files = rust_files(".");
    assert!(files.len() > 100, "only {} files were found", files.len());
    // Recorded output of the generator says in its first line where it comes from; it is included into
    // modules, where `//!` cannot stand.
    let written = files.iter().filter(|(_, text)| !text.starts_with("// @generated from "));
    let silent = written.filter(|(_, text)| !text.starts_with("//! ")).map(|(name, _)| name.clone());
    assert_none(silent.collect(), "a file starts with `//!` and what it is, what goes in, what comes out");
}

#[test]
fn every_unsafe_says_why() {
    let mut offenders = Vec::new();
    for (name, text) in rust_files(".") {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let opens = ["unsafe {", "unsafe impl", "unsafe extern"].iter().any(|start| code.contains(start));
            // Texts about unsafe code, such as this file's and the generator's.
            let quoted = code.contains('"') || code.contains("quote!");
            if !opens || quoted || is_generated_template(&lines, number) {
                continue;
            }
            let above = &lines[number.saturating_sub(8)..=number];
            if !above.iter().any(|line| line.contains("SAFETY") || line.contains("# Safety")) {
                offenders.push(format!("{name}:{}", number + 1));
            }
        }
    }
    assert_none(offenders, "an unsafe block is preceded by `// SAFETY:` and why it is sound");
}

/// Whether a line stands between `quote! {` and its end: the emitter writes the comment another way.
fn is_generated_template(lines: &[&str], number: usize) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut depth = indent(lines[number]);
    for line in lines[..number].iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) < depth {
            depth = indent(line);
            if line.contains("quote!") {
                return true;
            }
        }
    }
    false
}

// ---- No operator is known to the generator or the runtime ----

/// The names of operators, and the words of the spec language that some operators share.
struct Names {
    /// `add.Tensor`, `add`, `add_`, `add_out`, …
    operators: BTreeSet<String>,
    /// The functions that only generated code has: `add_tensor`.
    raw: BTreeSet<String>,
    vocabulary: BTreeSet<&'static str>,
}

impl Names {
    fn read() -> Names {
        let model = stock().model;
        let mut operators = BTreeSet::new();
        let mut raw = BTreeSet::new();
        for op in &model.ops {
            let forms = [Some(&op.name), op.forms.inplace.as_ref(), op.forms.out.as_ref()];
            operators.extend(forms.into_iter().flatten().cloned());
            operators.extend([op.base.clone(), op.rust_name.clone()]);
            if op.name.contains('.') {
                raw.insert(emit::raw_name(op).to_string());
            }
        }
        let mut vocabulary: BTreeSet<&str> = BTreeSet::new();
        vocabulary.extend(rules::SHAPE_RULES.iter().chain(rules::DTYPE_RULES).map(|rule| rule.name()));
        vocabulary.extend(DTypeSet::NAMED.iter().map(|(name, _)| *name));
        vocabulary.extend(DType::ALL.iter().map(|dtype| dtype.name()));
        vocabulary.extend(Backend::ALL.iter().flat_map(|backend| [backend.key(), backend.name()]));
        vocabulary.extend(Operation::ALL.iter().map(|(_, spelling)| *spelling));
        vocabulary.extend(keys::ELEMENT_WORDS);
        vocabulary.extend(keys::SYNONYMS.iter().map(|(other, _)| *other));
        vocabulary.extend(constraints::CONSTRAINTS);
        vocabulary.extend(constraints::CONSTRAINT_SYNONYMS.iter().map(|(other, _)| *other));
        vocabulary.extend(Role::ALL.iter().map(|(_, name)| *name));
        vocabulary.extend(model::expr::QUERIES.iter().map(|query| query.name));
        vocabulary.extend(schema::BEGIN_WITH_I);
        vocabulary.extend(model::RANGE_OPERATORS.iter().map(|operator| operator.text));
        let tables = [keys::FILE_KEYS, keys::OP_KEYS, keys::DECLARATION_KEYS, keys::FUNCTION_KEYS];
        vocabulary.extend(tables.into_iter().flatten().map(|key| key.name));
        Names { operators, raw, vocabulary }
    }

    fn is_operator(&self, text: &str) -> bool {
        self.operators.contains(text) && !self.vocabulary.contains(text)
    }
}

/// Finds operators that code names: as a text, or by calling the function that is generated for one.
/// Documentation, comments and tests may name them as examples, and methods such as `sum` of an iterator
/// are not calls of operators.
struct Finder<'a> {
    names: &'a Names,
    file: &'a str,
    /// The names that the file itself defines.
    own: BTreeSet<String>,
    found: Vec<String>,
}

impl Finder<'_> {
    fn report(&mut self, span: proc_macro2::Span, what: &str) {
        self.found.push(format!("{}:{}: {what}", self.file, span.start().line));
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut previous: [Option<String>; 2] = [None, None];
        for token in tokens {
            match &token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                        self.text(&text.value(), literal.span());
                    }
                }
                TokenTree::Ident(ident) => {
                    let name = ident.to_string();
                    let after_raw = previous == [Some("raw".to_owned()), Some(":".to_owned())];
                    if self.names.raw.contains(&name) && (after_raw || name.contains('_')) {
                        self.report(ident.span(), &format!("calls `{name}`"));
                    }
                }
                TokenTree::Punct(_) => {}
            }
            if !matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':' && previous[1].as_deref() == Some(":"))
            {
                previous = [previous[1].take(), Some(token.to_string())];
            }
        }
    }

    fn text(&mut self, text: &str, span: proc_macro2::Span) {
        if self.names.is_operator(text) {
            self.report(span, &format!("the text \"{text}\""));
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let test = module.attrs.iter().any(|attribute| {
            attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
        });
        if !test {
            visit::visit_item_mod(self, module);
        }
    }

    // Documentation is an attribute.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.text(&literal.value(), literal.span());
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(function) = &*call.func {
            let segments: Vec<String> =
                function.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let known = match segments.as_slice() {
                [name] => self.names.is_operator(name) && !self.own.contains(name),
                // A type's or trait's function, such as `Arithmetic::add`, or a module's, such as a rule's.
                [.., owner, name] => {
                    matches!(&**owner, "raw" | "functions" | "opsmith") && self.names.is_operator(name)
                }
                [] => false,
            };
            if known {
                self.report(
                    function.path.segments[0].ident.span(),
                    &format!("calls `{}`", segments.join("::")),
                );
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.tokens(invocation.tokens.clone());
    }
}

/// The names that a file gives to functions, parameters and variables of its own.
#[derive(Default)]
struct Definitions(BTreeSet<String>);

impl<'ast> Visit<'ast> for Definitions {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.insert(signature.ident.to_string());
        visit::visit_signature(self, signature);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.0.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }
}

fn operators_named_in(names: &Names, file: &str, text: &str) -> Vec<String> {
    let tree = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut own = Definitions::default();
    own.visit_file(&tree);
    let mut finder = Finder { names, file, own: own.0, found: Vec::new() };
    finder.visit_file(&tree);
    finder.found
}

#[test]
fn neither_the_generator_nor_the_runtime_names_an_operator() {
    let names = Names::read();
    let mut offenders = Vec::new();
    for folder in [
        "codegen/src",
        "codegen/shared/src",
        "codegen/tools/src",
        "runtime/src",
        "runtime/graph/src",
        "runtime/graph/programs/src",
        "runtime/profile/src",
        "runtime/abi/src",
        "runtime/aot/src",
        "runtime/cuda/src",
    ] {
        for (file, text) in rust_files(folder).into_iter().filter(|(file, _)| !file.contains("/tests/")) {
            offenders.extend(operators_named_in(&names, &file, &text));
        }
    }
    assert_none(
        offenders,
        "what is special about an operator is said in its entry of ops.yaml, in a field of its own",
    );
}

#[test]
fn the_search_for_named_operators_finds_them() {
    let names = Names::read();
    let find = |text: &str| operators_named_in(&names, "a.rs", text);
    assert_eq!(
        find(
            "fn a() {\n f(\"add.Tensor\");\n exp(x);\n opsmith::raw::exp(x);\n quote!(super::raw::add_tensor(a)); }"
        ),
        [
            "a.rs:2: the text \"add.Tensor\"",
            "a.rs:3: calls `exp`",
            "a.rs:4: calls `opsmith::raw::exp`",
            "a.rs:5: calls `add_tensor`"
        ]
    );
    let fine =
        "//! As `add.Tensor`.\n/// As `exp`.\nfn a() { x.exp(); Arithmetic::add(a, b); shape(\"cat\"); }";
    assert!(find(fine).is_empty(), "{:?}", find(fine));
    assert!(find("#[cfg(test)] mod tests { fn a() { f(\"add.Tensor\") } }").is_empty());
}

// ---- Both sides of a table agree ----

/// The public functions of a module of `runtime/src/infer`, with the number of their parameters.
fn functions_of(module: &str) -> Vec<(String, usize)> {
    let text = fs::read_to_string(root().join(format!("runtime/src/infer/{module}.rs"))).unwrap();
    let file = syn::parse_file(&text).unwrap();
    let functions = file.items.iter().filter_map(|item| match item {
        syn::Item::Fn(function) if matches!(function.vis, syn::Visibility::Public(_)) => Some(function),
        _ => None,
    });
    let mut found: Vec<_> =
        functions.map(|function| (function.sig.ident.to_string(), function.sig.inputs.len())).collect();
    found.sort();
    found
}

#[test]
fn rules_of_the_spec_are_functions_of_the_runtime() {
    for (module, table) in [("shape", rules::SHAPE_RULES), ("dtype", rules::DTYPE_RULES)] {
        let mut rules: Vec<_> =
            table.iter().map(|rule| (rule.name().to_owned(), rule.params().len())).collect();
        rules.sort();
        assert_eq!(rules, functions_of(module), "opsmith_core::rules and opsmith_runtime::infer::{module}");
    }
}

// ---- The generator is a function of the spec ----

fn stock() -> pipeline::Checked {
    pipeline::check(&Config::stock(root().join("ops.yaml"))).unwrap()
}

/// The stock spec and the files it includes, by their paths from the root.
fn spec_files() -> Vec<PathBuf> {
    let files = stock().files;
    files.iter().map(|file| file.strip_prefix(root()).unwrap().to_owned()).collect()
}

/// The files generated from copies of the specs in a folder of that name.
fn generated_in(name: &str) -> Vec<emit::File> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let (stock, custom) = (folder.join("ops.yaml"), folder.join("custom.yaml"));
    fs::create_dir_all(folder.join("ops")).unwrap();
    for file in spec_files() {
        fs::copy(root().join(&file), folder.join(file)).unwrap();
    }
    fs::copy(root().join("examples/custom_op/ops.yaml"), &custom).unwrap();
    let mut of_custom = Config::new(&custom);
    of_custom.parents.push(Parent::new(&stock, "opsmith"));
    let mut files = Vec::new();
    for config in [Config::stock(&stock), of_custom] {
        let checked = pipeline::check(&config).unwrap();
        assert!(!checked.diagnostics.has_errors());
        files.extend(pipeline::generate(&checked, &config).unwrap());
    }
    let path = folder.to_string_lossy().into_owned();
    for file in &files {
        assert!(!file.text.contains(&path), "{} names the folder it was generated in", file.name);
    }
    files
}

#[test]
fn equal_specs_generate_equal_bytes_wherever_they_are() {
    let (first, second) = (generated_in("first_place"), generated_in("another/place"));
    assert_eq!(first.len(), second.len());
    for (first, second) in first.iter().zip(&second) {
        assert!(first == second, "{} differs between two runs in different folders", first.name);
    }
}

// ---- Every operator ----

#[test]
fn every_name_is_callable_once_and_found() {
    let names = opsmith::LIBRARY.names;
    assert!(names.is_sorted_by(|a, b| a.0 < b.0), "names are sorted and distinct");
    for (name, op, form) in names {
        let found = opsmith::LIBRARY.find(name).map(|(op, form)| (op.name, form));
        assert_eq!(found, Some((op.name, *form)));
    }
    let generated: BTreeSet<&str> = opsmith::LIBRARY.ops.iter().map(|op| op.name).collect();
    let model: Model = stock().model;
    let own = model.ops.iter().filter(|op| op.alias_of.is_none());
    let declared: BTreeSet<&str> = own.map(|op| &*op.name).collect();
    assert_eq!(generated, declared, "what ops.yaml declares is what exists");
    for (op, target) in model.ops.iter().filter_map(|op| Some((op, op.alias_of?.0))) {
        let found = opsmith::LIBRARY.find(&op.name);
        assert!(found.is_some_and(|(found, _)| found.name == model.ops[target].name), "{}", op.name);
    }
}

#[test]
fn definitions_describe_each_argument() {
    for op in opsmith::LIBRARY.ops {
        assert_eq!(op.element_types.len(), op.schema.args.len(), "{}", op.name);
        assert!(op.schema.text.starts_with(op.name), "{}: {}", op.name, op.schema.text);
        let file = op.location.split(':').next().unwrap_or_default();
        assert!(root().join(file).is_file() && file.starts_with("ops"), "{}: {}", op.name, op.location);
        let bodies = [op.kernels.is_some(), op.view.is_some(), op.composite.is_some(), op.host.is_some()];
        assert!(bodies.contains(&true), "nothing computes {}", op.name);
    }
}
