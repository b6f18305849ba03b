//! Arrows between the modules of a crate: which may use which.
//!
//! In: the sources of a crate, as syntax, and a table with a row for each module at the crate's root. Out:
//! every use of one module by another that no row allows, every row or arrow that nothing needs, and every
//! cycle outside the named core. `lib.rs` and code for tests only may use everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};

mod arrows {
    pub mod abi;
    pub mod aot;
    pub mod codegen;
    pub mod cuda;
    pub mod graph;
    pub mod loader;
    pub mod nn;
    pub mod onnx;
    pub mod profile;
    pub mod programs;
    pub mod runtime;
}

/// The modules at the root of a crate, from the lowest, each with those that it may use.
struct Table {
    /// The folder of the sources, from the root of the workspace.
    folder: &'static str,
    /// Modules and the modules they use.
    rows: &'static [(&'static str, &'static [&'static str])],
    /// The modules that may depend on each other.
    core: &'static [&'static str],
}

#[test]
fn modules_of_the_generator_use_only_lower_ones() {
    check(&arrows::codegen::CODEGEN);
    check(&arrows::codegen::TOOLS);
}

#[test]
fn modules_of_the_runtime_use_only_lower_ones_and_the_core() {
    check(&arrows::runtime::TABLE);
}

#[test]
fn modules_of_graph_mode_use_only_lower_ones_and_the_core() {
    check(&arrows::graph::TABLE);
}

#[test]
fn modules_of_programs_use_only_lower_ones() {
    check(&arrows::programs::TABLE);
}

#[test]
fn modules_of_the_reader_of_onnx_use_only_lower_ones_and_the_core() {
    check(&arrows::onnx::TABLE);
}

#[test]
fn modules_of_layers_use_only_lower_ones() {
    check(&arrows::nn::TABLE);
}

#[test]
fn modules_of_the_profiler_use_only_lower_ones() {
    check(&arrows::profile::TABLE);
}

#[test]
fn modules_of_the_c_interface_use_only_lower_ones() {
    check(&arrows::abi::TABLE);
}

#[test]
fn modules_of_custom_kernels_use_only_lower_ones_and_the_core() {
    check(&arrows::aot::TABLE);
}

#[test]
fn modules_of_the_loader_use_only_lower_ones_and_the_core() {
    check(&arrows::loader::TABLE);
}

#[test]
fn modules_of_cuda_devices_use_only_lower_ones() {
    check(&arrows::cuda::TABLE);
}

#[track_caller]
fn check(table: &Table) {
    let offenders = offenders(table, &Sources::read(table.folder));
    assert!(
        offenders.is_empty(),
        "the arrows between the modules of {} and its table in tests/tests/arrows.rs differ; move the item \
         to a module that both may use, or change the table and ARCHITECTURE.md with it:\n  {}",
        table.folder,
        offenders.join("\n  ")
    );
}

fn offenders(table: &Table, sources: &Sources) -> Vec<String> {
    let rows: BTreeMap<&str, &[&str]> = table.rows.iter().copied().collect();
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for Arrow { file, line, from, to } in sources.arrows() {
        if !rows.get(from.as_str()).is_some_and(|allowed| allowed.contains(&to.as_str())) {
            found.push(format!("{file}:{line}: {from} -> {to}"));
        }
        used.insert((from, to));
    }
    for module in &sources.modules {
        if !rows.contains_key(module.as_str()) {
            found.push(format!("the table has no row for {module}"));
        }
    }
    for (from, allowed) in table.rows {
        if !sources.modules.contains(*from) {
            found.push(format!("the table has a row for {from}, which is no module"));
        }
        let unused = allowed.iter().filter(|to| !used.contains(&((*from).to_owned(), (**to).to_owned())));
        found.extend(unused.map(|to| format!("the table allows {from} -> {to}, which nothing uses")));
    }
    found.extend(upward(table));
    found
}

/// The arrows of a table that lead to a row which is not above, outside the core.
fn upward(table: &Table) -> Vec<String> {
    let position = |module: &str| table.rows.iter().position(|(name, _)| *name == module);
    let in_core = |module: &str| table.core.contains(&module);
    let mut found = Vec::new();
    for (index, (from, allowed)) in table.rows.iter().enumerate() {
        for to in *allowed {
            if position(to).is_some_and(|to| to >= index) && !(in_core(from) && in_core(to)) {
                found.push(format!("the table allows {from} -> {to}, whose row stands below"));
            }
        }
    }
    found
}

/// The sources of one crate, parsed.
struct Sources {
    files: Vec<Source>,
    /// The modules at the root.
    modules: BTreeSet<String>,
    /// Items at the root that a module has: re-exports of `lib.rs`, and exported macros.
    items: BTreeMap<String, String>,
}

struct Source {
    name: String,
    /// The path of its module; empty for `lib.rs`.
    module: Vec<String>,
    tree: syn::File,
}

/// One use of a module by another.
#[derive(PartialEq)]
struct Arrow {
    file: String,
    line: usize,
    from: String,
    to: String,
}

impl Sources {
    fn read(folder: &str) -> Sources {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
        let mut paths = Vec::new();
        walk(&root.join(folder), &mut paths);
        paths.sort();
        let texts = paths.into_iter().map(|path| {
            let name = path.strip_prefix(root.join(folder)).unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        });
        Sources::of(texts.collect())
    }

    /// Files by their paths from the folder of `lib.rs`.
    fn of(texts: Vec<(String, String)>) -> Sources {
        let mut files = Vec::new();
        for (name, text) in texts {
            let module = module_of(&name);
            // Tests may use the modules under test.
            if module.iter().all(|part| part != "tests") {
                let tree = syn::parse_file(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
                files.push(Source { name, module, tree });
            }
        }
        let mut sources = Sources { files, modules: BTreeSet::new(), items: BTreeMap::new() };
        for source in &sources.files {
            let mut root = Root { module: &source.module, modules: BTreeSet::new(), items: BTreeMap::new() };
            root.visit_file(&source.tree);
            sources.modules.append(&mut root.modules);
            sources.items.append(&mut root.items);
        }
        sources
    }

    fn arrows(&self) -> Vec<Arrow> {
        let mut found = Vec::new();
        for source in self.files.iter().filter(|source| !source.module.is_empty()) {
            let mut uses = Uses { module: source.module.clone(), found: Vec::new() };
            uses.visit_file(&source.tree);
            for (name, line) in uses.found {
                let module = if self.modules.contains(&name) { Some(&name) } else { self.items.get(&name) };
                if module.is_some_and(|module| !self.modules.contains(module)) {
                    // `lib.rs` has it from another crate.
                    continue;
                }
                let (from, to) = (source.module[0].clone(), module.map_or("lib", String::as_str).to_owned());
                let arrow = Arrow { file: source.name.clone(), line, from, to };
                if arrow.from != arrow.to && !found.contains(&arrow) {
                    found.push(arrow);
                }
            }
        }
        found
    }
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// `emit/expr/literal.rs` is the module `emit::expr::literal`.
fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// The items that a file adds to the root of its crate.
struct Root<'a> {
    module: &'a [String],
    modules: BTreeSet<String>,
    items: BTreeMap<String, String>,
}

impl<'ast> Visit<'ast> for Root<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if self.module.is_empty() && !is_for_tests(&item.attrs) {
            self.modules.insert(item.ident.to_string());
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if self.module.is_empty() {
            for path in paths(&item.tree) {
                let names =
                    path.iter().map(ToString::to_string).filter(|name| name != "crate" && name != "self");
                if let [module, .., item] | [module @ item] = &names.collect::<Vec<_>>()[..] {
                    self.items.insert(item.clone(), module.clone());
                }
            }
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
        if let (Some(name), Some(module), true) = (&item.ident, self.module.first(), exported) {
            self.items.insert(name.to_string(), module.clone());
        }
    }
}

/// The paths of a `use`, each with the name that it is used by.
fn paths(tree: &syn::UseTree) -> Vec<Vec<Ident>> {
    let below = |first: &Ident, tree| {
        let behind = |path: Vec<Ident>| std::iter::once(first.clone()).chain(path).collect();
        paths(tree).into_iter().map(behind).collect()
    };
    match tree {
        syn::UseTree::Path(path) => below(&path.ident, &path.tree),
        syn::UseTree::Name(name) => vec![vec![name.ident.clone()]],
        syn::UseTree::Rename(rename) => vec![vec![rename.ident.clone()]],
        syn::UseTree::Glob(_) => vec![Vec::new()],
        syn::UseTree::Group(group) => group.items.iter().flat_map(paths).collect(),
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string();
            let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
            words.contains(&"test") && !words.contains(&"not") && !words.contains(&"any")
        }
        _ => attribute.path().is_ident("test"),
    })
}

/// Finds the items at the root of the crate that a file names by paths, with the line.
struct Uses {
    /// The module that the visit is in.
    module: Vec<String>,
    found: Vec<(String, usize)>,
}

impl Uses {
    /// Notes the item at the root that a path leads through, if it starts with `crate`, `self` or `super`.
    fn note(&mut self, path: &[Ident]) {
        let mut module = self.module.clone();
        for (index, part) in path.iter().enumerate() {
            match part.to_string().as_str() {
                "crate" if index == 0 => module.clear(),
                "self" if index == 0 => {}
                "super" => _ = module.pop(),
                _ if index == 0 => return,
                // The root alone decides.
                name => {
                    let root = module.first().cloned().unwrap_or_else(|| name.to_owned());
                    return self.found.push((root, part.span().start().line));
                }
            }
        }
    }

    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<Ident> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.note(&std::mem::take(&mut path));
                    }
                    path.push(ident);
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                other => {
                    self.note(&std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.note_tokens(group.stream());
                    }
                }
            }
        }
        self.note(&path);
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            paths(&item.tree).iter().for_each(|path| self.note(path));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<Ident> = path.segments.iter().map(|segment| segment.ident.clone()).collect();
        self.note(&names);
        visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() && !is_for_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.visit_path(&invocation.path);
        // Templates of other crates' code.
        let templates = ["quote", "quote_spanned", "parse_quote"];
        let is_template = invocation
            .path
            .segments
            .last()
            .is_some_and(|last| templates.iter().any(|name| last.ident == name));
        if !is_template {
            self.note_tokens(invocation.tokens.clone());
        }
    }
}

#[test]
fn the_search_for_arrows_finds_them() {
    let text = "//! A module.\nuse crate::{high, low::{self, Item}};\nuse super::super::high as other;\n\
        fn a() {\n    crate::high::f(quote!(crate::none::f()), format!(\"{}\", crate::high::g()));\n    \
        crate::Shown::new();\n    crate::exported!();\n    super::below();\n}\n\
        mod inner { use super::super::other; use super::super::super::high; }\n\
        #[cfg(test)]\nmod tests { use crate::high; }\n";
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let sources = Sources::of(vec![
        file("lib.rs", "mod high;\nmod low;\nmod middle;\npub use high::Shown;\npub fn root() {}"),
        file("high.rs", "#[macro_export]\nmacro_rules! exported { () => {} }\nuse crate::root;"),
        file("low/mod.rs", ""),
        file("middle/part.rs", text),
        file("middle/tests/all.rs", "use crate::high;"),
    ]);
    let table = Table {
        folder: "made/up",
        rows: &[("gone", &[]), ("low", &["middle"]), ("middle", &["low"])],
        core: &[],
    };
    assert_eq!(
        offenders(&table, &sources),
        [
            "high.rs:3: high -> lib",
            "middle/part.rs:2: middle -> high",
            "middle/part.rs:3: middle -> high",
            "middle/part.rs:5: middle -> high",
            "middle/part.rs:6: middle -> high",
            "middle/part.rs:7: middle -> high",
            "middle/part.rs:10: middle -> high",
            "the table has no row for high",
            "the table has a row for gone, which is no module",
            "the table allows low -> middle, which nothing uses",
            "the table allows low -> middle, whose row stands below",
        ]
    );
    let core = Table { core: &["low", "middle"], ..table };
    assert!(!offenders(&core, &sources).iter().any(|offender| offender.ends_with("below")));
}
