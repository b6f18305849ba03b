//! Name resolution in a crate's modules, from its files: the item of a path, or its certain absence.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use opsmith_codegen::expr::parse;
use syn::{Item, UseTree};

/// Maximal length of a chain of re-exports; longer or cyclic ones are left to the compiler.
const MAX_STEPS: usize = 32;

/// The sources of a crate.
pub(super) struct Crate {
    root: PathBuf,
    files: RefCell<HashMap<PathBuf, Option<Rc<[Item]>>>>,
}

/// The result of resolving a path.
pub(super) enum Found {
    /// A function with its source.
    Function(Box<Function>),
    /// Undetermined from the files.
    Unknown,
    /// Certainly missing.
    Missing {
        /// The missing part of the path.
        name: String,
        /// The file that it is missing from.
        file: PathBuf,
        /// The existing names of that kind.
        known: Vec<String>,
    },
}

/// A parsed function.
pub(super) struct Function {
    pub signature: syn::Signature,
    /// Whether it is private to its module.
    pub private: bool,
    pub file: PathBuf,
    /// Names of types that the module itself defines, which hide others.
    pub own_types: Vec<String>,
    /// The paths that the module imports, each ending in its local name.
    pub imports: Vec<Vec<String>>,
}

impl Function {
    /// The line of its name.
    pub fn line(&self) -> usize {
        self.signature.ident.span().start().line
    }
}

#[derive(Clone)]
struct Module {
    items: Rc<[Item]>,
    file: PathBuf,
    /// The folder of its modules' files; `None` if an attribute decides.
    folder: Option<PathBuf>,
    parent: Option<Rc<Module>>,
}

/// The namespace in which a name is looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Modules,
    Functions,
}

/// A name that is looked up in the imports of a module.
struct Wanted<'a> {
    module: &'a Rc<Module>,
    name: &'a str,
    namespace: Namespace,
    steps: usize,
    /// Whether glob imports are considered.
    globs: bool,
}

enum Member {
    Module(Rc<Module>),
    Function(Box<Function>),
    Unknown,
    Missing,
}

impl Crate {
    pub fn new(root: PathBuf) -> Crate {
        Crate { root, files: RefCell::default() }
    }

    /// The function of a path that starts in the root.
    pub fn function(&self, path: &[&str]) -> Found {
        let folder = self.root.parent().map(Path::to_owned);
        let Some(items) = self.items(&self.root) else { return Found::Unknown };
        let mut module = Rc::new(Module { items, file: self.root.clone(), folder, parent: None });
        let Some((last, names)) = path.split_last() else { return Found::Unknown };
        for name in names {
            module = match self.member(&module, name, Namespace::Modules, 0) {
                Member::Module(next) => next,
                Member::Missing => return missing(&module, name, Namespace::Modules),
                _ => return Found::Unknown,
            };
        }
        match self.member(&module, last, Namespace::Functions, 0) {
            Member::Function(function) => Found::Function(function),
            Member::Missing => missing(&module, last, Namespace::Functions),
            _ => Found::Unknown,
        }
    }

    /// The items of a file; `None` if it cannot be parsed, which the compiler will report, or is too deep for it.
    fn items(&self, file: &Path) -> Option<Rc<[Item]>> {
        if let Some(known) = self.files.borrow().get(file) {
            return known.clone();
        }
        let parsed = std::fs::read_to_string(file).ok().and_then(|text| parse::file(&text));
        let items: Option<Rc<[Item]>> = parsed.map(|parsed| parsed.items.into());
        self.files.borrow_mut().insert(file.to_owned(), items.clone());
        items
    }

    fn member(&self, module: &Rc<Module>, name: &str, namespace: Namespace, steps: usize) -> Member {
        self.seen(module, name, namespace, steps, false)
    }

    /// The item of a name, seen from the module itself or from others. A private glob import is visible to the module
    /// only.
    fn seen(
        &self,
        module: &Rc<Module>,
        name: &str,
        namespace: Namespace,
        steps: usize,
        from_inside: bool,
    ) -> Member {
        if steps > MAX_STEPS {
            return Member::Unknown;
        }
        let mut uncertain = false;
        for item in module.items.iter() {
            uncertain |= may_define_anything(item);
            let found = match item {
                Item::Fn(function) if function.sig.ident == name && namespace == Namespace::Functions => {
                    self::function(module, function)
                }
                Item::Mod(inner) if inner.ident == name && namespace == Namespace::Modules => {
                    self.child(module, inner)
                }
                Item::Use(item) => {
                    let private = matches!(item.vis, syn::Visibility::Inherited);
                    // Imports of the root are visible in every module of the crate.
                    let globs = from_inside || !private || module.parent.is_none();
                    let wanted = Wanted { module, name, namespace, steps, globs };
                    self.imported(&wanted, &item.tree, &mut Vec::new())
                }
                other if defines(other, name) => Member::Unknown,
                _ => Member::Missing,
            };
            match found {
                Member::Missing => {}
                // A glob import may hide nothing, so explicit names take precedence.
                Member::Unknown if matches!(item, Item::Use(_)) => uncertain = true,
                found => return found,
            }
        }
        if uncertain { Member::Unknown } else { Member::Missing }
    }

    /// A name that a `use` may import; `prefix` is the path before the tree.
    fn imported(&self, wanted: &Wanted<'_>, tree: &UseTree, prefix: &mut Vec<String>) -> Member {
        let Wanted { module, name, namespace, steps, globs } = *wanted;
        let named = |last: &str, prefix: &[String]| {
            let path = [prefix, &[last.to_owned()]].concat();
            self.target(module, &path, namespace, steps)
        };
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                let found = self.imported(wanted, &path.tree, prefix);
                prefix.pop();
                found
            }
            UseTree::Name(only) if only.ident == "self" => match prefix.split_last() {
                Some((last, before)) if last == name => named(last, before),
                _ => Member::Missing,
            },
            UseTree::Name(only) if only.ident == name => named(name, prefix),
            UseTree::Rename(renamed) if renamed.rename == name => named(&renamed.ident.to_string(), prefix),
            UseTree::Glob(_) if !globs => Member::Missing,
            UseTree::Glob(_) => match self.walk(module, prefix, steps) {
                Some(target) if Rc::ptr_eq(&target.items, &module.items) => Member::Missing,
                Some(target) => self.member(&target, name, namespace, steps + 1),
                None => Member::Unknown,
            },
            UseTree::Group(group) => {
                let mut found = Member::Missing;
                for tree in &group.items {
                    match self.imported(wanted, tree, prefix) {
                        Member::Missing => {}
                        Member::Unknown => found = Member::Unknown,
                        certain => return certain,
                    }
                }
                found
            }
            UseTree::Name(_) | UseTree::Rename(_) => Member::Missing,
        }
    }

    /// The target of an import. A missing one may be of the other namespace, or of another crate.
    fn target(&self, module: &Rc<Module>, path: &[String], namespace: Namespace, steps: usize) -> Member {
        let Some((last, names)) = path.split_last() else { return Member::Unknown };
        match self.walk(module, names, steps) {
            // `use name;` alone names another crate, or an item of the same module.
            Some(inner) if !names.is_empty() => match self.member(&inner, last, namespace, steps + 1) {
                Member::Missing => Member::Unknown,
                found => found,
            },
            _ => Member::Unknown,
        }
    }

    /// The module of a path in a module's `use`.
    fn walk(&self, module: &Rc<Module>, path: &[String], steps: usize) -> Option<Rc<Module>> {
        let mut at = module.clone();
        for (index, name) in path.iter().enumerate() {
            at = match name.as_str() {
                "crate" if index == 0 => root_of(module),
                "self" if index == 0 => at,
                "super" => at.parent.clone()?,
                name => match self.seen(&at, name, Namespace::Modules, steps + 1, index == 0) {
                    Member::Module(next) => next,
                    _ => return None,
                },
            };
        }
        Some(at)
    }

    /// The module of a `mod` item.
    fn child(&self, module: &Rc<Module>, item: &syn::ItemMod) -> Member {
        let name = item.ident.to_string();
        let name = name.trim_start_matches("r#");
        let parent = Some(module.clone());
        let conditional = item.attrs.iter().any(|attr| attr.path().is_ident("cfg_attr"));
        let attribute = item.attrs.iter().find(|attr| attr.path().is_ident("path"));
        if conditional {
            return Member::Unknown;
        }
        if let Some((_, items)) = &item.content {
            let folder =
                module.folder.as_ref().filter(|_| attribute.is_none()).map(|folder| folder.join(name));
            let items: Rc<[Item]> = items.clone().into();
            return Member::Module(Rc::new(Module { items, file: module.file.clone(), folder, parent }));
        }
        let (file, folder) = match attribute {
            Some(attribute) => {
                let Some(folder) = module.file.parent() else { return Member::Unknown };
                let syn::Meta::NameValue(pair) = &attribute.meta else { return Member::Unknown };
                let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = &pair.value else {
                    return Member::Unknown;
                };
                let file = folder.join(path.value());
                let folder = file.parent().map(Path::to_owned);
                (file, folder)
            }
            None => {
                let Some(folder) = &module.folder else { return Member::Unknown };
                let inner = folder.join(name);
                let beside = folder.join(format!("{name}.rs"));
                let file = if beside.is_file() { beside } else { inner.join("mod.rs") };
                (file, Some(inner))
            }
        };
        match self.items(&file) {
            Some(items) => Member::Module(Rc::new(Module { items, file, folder, parent })),
            None => Member::Unknown,
        }
    }
}

fn root_of(module: &Rc<Module>) -> Rc<Module> {
    let mut at = module.clone();
    while let Some(parent) = at.parent.clone() {
        at = parent;
    }
    at
}

/// A parsed function, unless an attribute may change or drop it.
fn function(module: &Module, item: &syn::ItemFn) -> Member {
    if item.attrs.iter().any(|attr| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr"))
        || item.attrs.iter().any(|attr| !is_built_in(attr))
    {
        return Member::Unknown;
    }
    let own_types = module.items.iter().flat_map(own_types).collect();
    let private = matches!(item.vis, syn::Visibility::Inherited);
    let (signature, file) = (item.sig.clone(), module.file.clone());
    let imports = module.items.iter().flat_map(imports).collect();
    Member::Function(Box::new(Function { signature, private, file, own_types, imports }))
}

/// The paths that an item imports under their own names; a glob import ends in `*`.
fn imports(item: &Item) -> Vec<Vec<String>> {
    fn collect(tree: &UseTree, prefix: &[String], found: &mut Vec<Vec<String>>) {
        let joined = |name: String| [prefix, &[name]].concat();
        match tree {
            UseTree::Path(path) => collect(&path.tree, &joined(path.ident.to_string()), found),
            UseTree::Group(group) => group.items.iter().for_each(|tree| collect(tree, prefix, found)),
            UseTree::Name(name) => found.push(joined(name.ident.to_string())),
            UseTree::Glob(_) => found.push(joined("*".to_owned())),
            UseTree::Rename(_) => {}
        }
    }
    let mut found = Vec::new();
    if let Item::Use(item) = item {
        collect(&item.tree, &[], &mut found);
    }
    found
}

/// The names of types that an item defines, or imports under a new name.
fn own_types(item: &Item) -> Vec<String> {
    fn renamed(tree: &UseTree, found: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => renamed(&path.tree, found),
            UseTree::Group(group) => group.items.iter().for_each(|tree| renamed(tree, found)),
            UseTree::Rename(rename) => found.push(rename.rename.to_string()),
            UseTree::Name(_) | UseTree::Glob(_) => {}
        }
    }
    match item {
        Item::Struct(item) => vec![item.ident.to_string()],
        Item::Enum(item) => vec![item.ident.to_string()],
        Item::Union(item) => vec![item.ident.to_string()],
        Item::Type(item) => vec![item.ident.to_string()],
        Item::Trait(item) => vec![item.ident.to_string()],
        Item::Use(item) => {
            let mut found = Vec::new();
            renamed(&item.tree, &mut found);
            found
        }
        _ => Vec::new(),
    }
}

/// Whether an item other than a function or module has a name.
fn defines(item: &Item, name: &str) -> bool {
    match item {
        Item::Const(item) => item.ident == name,
        Item::Static(item) => item.ident == name,
        Item::ExternCrate(item) => {
            item.rename.as_ref().map_or(item.ident == name, |(_, renamed)| *renamed == name)
        }
        Item::ForeignMod(item) => item.items.iter().any(|item| match item {
            syn::ForeignItem::Fn(function) => function.sig.ident == name,
            _ => true,
        }),
        other => own_types(other).iter().any(|known| known == name),
    }
}

/// Whether an item may expand to functions and modules of any name.
fn may_define_anything(item: &Item) -> bool {
    let attrs = match item {
        // `macro_rules!` has a name and defines only a macro.
        Item::Macro(item) => return item.ident.is_none(),
        Item::Fn(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Verbatim(_) => return true,
        _ => return false,
    };
    attrs.iter().any(|attr| !is_built_in(attr))
}

/// Attributes of the compiler and its tools; any other is a macro.
fn is_built_in(attr: &syn::Attribute) -> bool {
    const KNOWN: [&str; 32] = [
        "allow",
        "automatically_derived",
        "cfg",
        "cfg_attr",
        "clippy",
        "cold",
        "deny",
        "deprecated",
        "derive",
        "diagnostic",
        "doc",
        "expect",
        "export_name",
        "forbid",
        "ignore",
        "inline",
        "link",
        "link_name",
        "macro_export",
        "macro_use",
        "must_use",
        "no_mangle",
        "non_exhaustive",
        "path",
        "repr",
        "rustfmt",
        "should_panic",
        "target_feature",
        "test",
        "track_caller",
        "unsafe",
        "warn",
    ];
    attr.path().segments.first().is_some_and(|first| KNOWN.iter().any(|known| first.ident == known))
}

/// A certainly missing name, with the existing ones.
fn missing(module: &Module, name: &str, namespace: Namespace) -> Found {
    let known = module.items.iter().filter_map(|item| match item {
        Item::Fn(item) if namespace == Namespace::Functions => Some(item.sig.ident.to_string()),
        Item::Mod(item) if namespace == Namespace::Modules => Some(item.ident.to_string()),
        _ => None,
    });
    Found::Missing { name: name.to_owned(), file: module.file.clone(), known: known.collect() }
}
