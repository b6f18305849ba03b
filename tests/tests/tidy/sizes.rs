//! Sizes of files that people write, and of the functions in them.

use syn::visit::{self, Visit};
use syn::{Block, Signature};

use super::{assert_none, rust_files};

/// The most lines of a file, and of the one in the middle.
const FILE: usize = 450;
const MEDIAN: usize = 170;

/// The most lines of a function, from `fn` to the closing brace, and of how many functions there are more.
const FUNCTION: usize = 60;
const LONG_FUNCTIONS: usize = 20;

/// The files of people: neither recorded output of the generator nor programs that the profiler writes.
pub(super) fn written() -> Vec<(String, String)> {
    let is_recorded = |name: &str| name.contains("/golden/") || name.contains("/bad/");
    let mut files = rust_files(".");
    files.retain(|(name, text)| !is_recorded(name) && !text.starts_with("// @generated from "));
    files
}

#[test]
fn files_are_short() {
    let mut sizes: Vec<(usize, String)> =
        written().into_iter().map(|(name, text)| (text.lines().count(), name)).collect();
    sizes.sort();
    let long = sizes.iter().filter(|(size, _)| *size > FILE);
    assert_none(
        long.map(|(size, name)| format!("{name}: {size} lines")).collect(),
        "a file has 450 lines at most",
    );
    let median = sizes[sizes.len() / 2].0;
    assert!(median <= MEDIAN, "half of the files have more than {median} lines");
}

/// The functions and methods of a file that are longer than [`FUNCTION`]: lines, first line and name.
#[derive(Default)]
struct LongFunctions(Vec<(usize, usize, String)>);

impl LongFunctions {
    fn measure(&mut self, signature: &Signature, block: &Block) {
        let first = signature.fn_token.span.start().line;
        let lines = block.brace_token.span.close().end().line - first + 1;
        if lines > FUNCTION {
            self.0.push((lines, first, signature.ident.to_string()));
        }
    }
}

impl<'ast> Visit<'ast> for LongFunctions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        self.measure(&method.sig, &method.block);
        visit::visit_impl_item_fn(self, method);
    }

    fn visit_trait_item_fn(&mut self, method: &'ast syn::TraitItemFn) {
        if let Some(block) = &method.default {
            self.measure(&method.sig, block);
        }
        visit::visit_trait_item_fn(self, method);
    }
}

#[test]
fn functions_are_short() {
    let mut long: Vec<(usize, String)> = Vec::new();
    for (file, text) in written() {
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut found = LongFunctions::default();
        found.visit_file(&parsed);
        let row = |(lines, first, name)| (lines, format!("{file}:{first}: `{name}` has {lines} lines"));
        long.extend(found.0.into_iter().map(row));
    }
    long.sort_by(|a, b| b.cmp(a));
    let rows: Vec<&str> = long.iter().map(|(_, row)| row.as_str()).collect();
    assert!(
        rows.len() <= LONG_FUNCTIONS,
        "{} functions have more than {FUNCTION} lines, and {LONG_FUNCTIONS} may; split one of them:\n  {}",
        rows.len(),
        rows.join("\n  ")
    );
}
