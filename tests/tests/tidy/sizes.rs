//! Sizes of files and functions, written by hand.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{assert_none, rust_files};

/// The most lines of a file, of the one in the middle, and of a function.
const FILE: usize = 450;
const MEDIAN: usize = 170;
const FUNCTION: usize = 60;
/// How many functions may be longer.
const LONG_FUNCTIONS: usize = 20;

/// The files of people: neither recorded output of the generator nor programs that the profiler writes.
fn written() -> Vec<(String, String)> {
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

/// Functions that are too long, with their lines.
struct Functions<'a> {
    file: &'a str,
    long: Vec<String>,
}

impl Functions<'_> {
    fn add(&mut self, name: &syn::Ident, block: &syn::Block) {
        let (start, end) = (block.span().start().line, block.span().end().line);
        if end - start + 1 > FUNCTION {
            self.long.push(format!("{}:{start}: {name} has {} lines", self.file, end - start + 1));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }
}

#[test]
fn functions_are_short() {
    let mut long = Vec::new();
    for (name, text) in written() {
        let Ok(file) = syn::parse_file(&text) else { continue };
        let mut functions = Functions { file: &name, long: Vec::new() };
        functions.visit_file(&file);
        long.append(&mut functions.long);
    }
    assert!(
        long.len() <= LONG_FUNCTIONS,
        "{} functions have more than 60 lines:\n  {}",
        long.len(),
        long.join("\n  ")
    );
}
