//! Names of a crate's modules, from its files: what a path stands for, or that nothing has its name.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use syn::{Item, UseTree};

/// Re-exports of re-exports; a longer chain, or one that goes round, is left to the compiler.
const MAX_STEPS: usize = 32;

/// The sources of a crate.
pub(super) struct Crate {
    root: PathBuf,
    files: RefCell<HashMap<PathBuf, Option<Rc<[Item]>>>>,
}

/// What a path stands for.
pub(super) enum Found {
    /// A function whose text is here.
    Function(Box<Function>),
    /// Something that the files do not tell.
    Unknown,
    /// Nothing, for sure.
    Missing {
        /// The part of the path that is not there.
        name: String,
        /// The file in which it would be.
        file: PathBuf,
        /// The names of that kind that are there.
        known: Vec<String>,
    },
}

/// A function as it is written.
pub(super) struct Function {
    pub signature: syn::Signature,
    /// Whether only its module sees it.
    pub private: bool,
    pub file: PathBuf,
    /// Names of types that the module says itself, so that they mean something of its own.
    pub own_types: Vec<String>,
    /// The paths that the module imports, each ending in the name it has there.
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
    /// Where files of its modules are; `None` where an attribute decides.
    folder: Option<PathBuf>,
    parent: Option<Rc<Module>>,
}

/// What a name inside a module is looked up as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Modules,
    Functions,
}

/// A name that is looked for in the imports of a module.
struct Wanted<'a> {
    module: &'a Rc<Module>,
    name: &'a str,
    namespace: Namespace,
    steps: usize,
    /// Whether globs count.
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

    /// The items of a file; `None` if it cannot be read as Rust, which the compiler will say.
    fn items(&self, file: &Path) -> Option<Rc<[Item]>> {
        if let Some(known) = self.files.borrow().get(file) {
            return known.clone();
        }
        let parsed = std::fs::read_to_string(file).ok().and_then(|text| syn::parse_file(&text).ok());
        let items: Option<Rc<[Item]>> = parsed.map(|parsed| parsed.items.into());
        self.files.borrow_mut().insert(file.to_owned(), items.clone());
        items
    }

    fn member(&self, module: &Rc<Module>, name: &str, namespace: Namespace, steps: usize) -> Member {
        self.seen(module, name, namespace, steps, false)
    }

    /// A name as a module itself sees it, or as others do. What a module imports with a private glob is its own.
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
                    // What the root imports is seen by every module of the crate.
                    let globs = from_inside || !private || module.parent.is_none();
                    let wanted = Wanted { module, name, namespace, steps, globs };
                    self.imported(&wanted, &item.tree, &mut Vec::new())
                }
                other if defines(other, name) => Member::Unknown,
                _ => Member::Missing,
            };
            match found {
                Member::Missing => {}
                // A glob may hide nothing, so what is said outright wins.
                Member::Unknown if matches!(item, Item::Use(_)) => uncertain = true,
                found => return found,
            }
        }
        if uncertain { Member::Unknown } else { Member::Missing }
    }

    /// A name that a `use` may bring in; `prefix` is the path before the tree.
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

    /// What an import names. One that names nothing may be of the other namespace, or of another crate.
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

    /// The module of a path as a `use` in a module says it.
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

/// A function as it is written, unless an attribute may change or drop it.
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

/// The paths that an item imports under their own names; the last name of all that a module has is `*`.
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

/// The names of types that an item defines, or gives to something else.
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

/// Whether an item that is neither a function nor a module has a name.
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

/// Whether an item may become functions and modules of any name.
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

/// A name that is certainly not there, with those that are.
fn missing(module: &Module, name: &str, namespace: Namespace) -> Found {
    let known = module.items.iter().filter_map(|item| match item {
        Item::Fn(item) if namespace == Namespace::Functions => Some(item.sig.ident.to_string()),
        Item::Mod(item) if namespace == Namespace::Modules => Some(item.ident.to_string()),
        _ => None,
    });
    Found::Missing { name: name.to_owned(), file: module.file.clone(), known: known.collect() }
}
