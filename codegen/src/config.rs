//! What a crate that generates code tells the generator about itself.

use std::path::{Path, PathBuf};

use opsmith_core::Backend;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, TokenStreamExt as _, quote};

use syn::parse::Parser as _;

use crate::chain::{self, Library};

/// Where the spec is, and the crates the generated code refers to.
#[derive(Clone, Debug)]
pub struct Config {
    /// The spec.
    pub spec: PathBuf,
    /// The spec's name in generated files and in `location`s: relative, the same on every machine.
    pub spec_name: String,
    /// The spec's folder, as seen from the folder of the crate's manifest. Custom kernels are found there
    /// while the program runs.
    pub folder: PathBuf,
    /// The specs of libraries whose operators formulas may call, with the crates' paths.
    pub parents: Vec<Parent>,
    /// The name of the library.
    pub library: String,
    /// Path of the runtime crate.
    pub runtime: RustPath,
    /// Path of the crate with the macro `spec_kernel!`, for kernels that are compiled while the program runs.
    pub custom_kernels: RustPath,
    /// Path of the module that hand-written functions are named from.
    pub kernels: RustPath,
    /// The backends that kernels are written for in Rust, each with the module they are named from. Commands, which run
    /// no build script, learn of others than the CPU from `[package.metadata.opsmith.kernels]`:
    /// `CUDA = "crate::cuda_kernels"`.
    pub backends: Vec<(Backend, RustPath)>,
    /// Folders with headers for C and C++ kernels.
    pub include: Vec<PathBuf>,
}

/// The path of a crate or module of Rust, as text: syntax would have to stay in its thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RustPath(String);

impl RustPath {
    /// A path without type arguments, such as `::opsmith::runtime` or `crate::kernels`.
    ///
    /// # Errors
    /// If the text is no such path.
    pub fn parse(text: &str) -> syn::Result<RustPath> {
        let path = syn::Path::parse_mod_style.parse_str(text)?;
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect::<Vec<_>>();
        let start = if path.leading_colon.is_some() { "::" } else { "" };
        Ok(RustPath(format!("{start}{}", names.join("::"))))
    }

    /// Its names, without the colons.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split("::").filter(|name| !name.is_empty())
    }
}

impl std::fmt::Display for RustPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl ToTokens for RustPath {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for (index, name) in self.0.split("::").enumerate() {
            if index > 0 {
                tokens.extend(quote!(::));
            }
            match name.strip_prefix("r#") {
                Some(name) => tokens.append(Ident::new_raw(name, Span::call_site())),
                None if name.is_empty() => {}
                None => tokens.append(Ident::new(name, Span::call_site())),
            }
        }
    }
}

/// A library that was generated before.
#[derive(Clone, Debug)]
pub struct Parent {
    /// Its spec.
    pub spec: PathBuf,
    /// Path of its crate.
    pub path: RustPath,
    /// Whether the crate itself depends on it; if not, a parent does.
    pub direct: bool,
}

impl Parent {
    /// The library that the package of that name generated.
    ///
    /// # Panics
    /// If no crate can have that name.
    pub fn new(spec: impl Into<PathBuf>, package: &str) -> Parent {
        let path = format!("::{}", package.replace('-', "_"));
        let path = RustPath::parse(&path).expect("a crate's name is an identifier");
        Parent { spec: spec.into(), path, direct: true }
    }
}

impl Config {
    /// For a crate that depends on `opsmith` and keeps its Rust kernels in `src/kernels/`.
    ///
    /// # Panics
    /// Never; the paths are literals.
    pub fn new(spec: impl AsRef<Path>) -> Config {
        let path = |text: &str| RustPath::parse(text).expect("a literal path");
        let spec = spec.as_ref();
        Config {
            spec: spec.to_owned(),
            spec_name: spec
                .file_name()
                .map_or_else(|| "ops.yaml".into(), |name| name.to_string_lossy().into_owned()),
            folder: folder_of(spec),
            parents: Vec::new(),
            library: "user".to_owned(),
            runtime: path("::opsmith::runtime"),
            custom_kernels: path("::opsmith"),
            kernels: path("crate::kernels"),
            backends: vec![(Backend::Cpu, path("crate::kernels"))],
            include: Vec::new(),
        }
    }

    /// Whether the library is the stock one, from which others take the runtime.
    pub fn is_stock(&self) -> bool {
        self.library == chain::ROOT
    }

    /// The module that a backend's kernels in Rust are named from, if there are such.
    pub fn kernels_of(&self, backend: Backend) -> Option<&RustPath> {
        self.backends.iter().find(|(known, _)| *known == backend).map(|(_, module)| module)
    }

    /// Builds on libraries: their operators are those that formulas may call, and the first of the chain
    /// has the runtime.
    ///
    /// # Errors
    /// If a crate's name is no identifier.
    pub fn build_on(&mut self, libraries: &[Library]) -> Result<(), String> {
        for library in libraries {
            let parse = |path: &str| {
                RustPath::parse(path).map_err(|error| format!("`{path}` is not the path of a crate: {error}"))
            };
            let path = parse(&library.path)?;
            if library.package == chain::ROOT {
                self.runtime = parse(&format!("{}::runtime", library.path))?;
                self.custom_kernels = path.clone();
            }
            self.parents.push(Parent { spec: library.spec.clone(), path, direct: library.is_direct() });
            for folder in &library.include {
                if !self.include.contains(folder) {
                    self.include.push(folder.clone());
                }
            }
        }
        Ok(())
    }

    /// Where generated code finds a public module of the library that declares something: of a parent, by
    /// its number, or of the crate itself.
    pub(crate) fn module(&self, parent: Option<usize>, module: &str) -> TokenStream {
        let module = quote::format_ident!("{module}");
        match parent.and_then(|parent| self.parents.get(parent)) {
            Some(Parent { path, .. }) => quote!(#path::#module),
            None => quote!(#module),
        }
    }

    /// For the stock library itself.
    ///
    /// # Panics
    /// Never; the paths are literals.
    pub fn stock(spec: impl AsRef<Path>) -> Config {
        let path = |text: &str| RustPath::parse(text).expect("a literal path");
        Config {
            library: "opsmith".to_owned(),
            folder: PathBuf::from(".."),
            runtime: path("::opsmith_runtime"),
            custom_kernels: path("::opsmith_aot"),
            kernels: path("::opsmith_kernels"),
            backends: vec![(Backend::Cpu, path("::opsmith_kernels::cpu"))],
            ..Config::new(spec)
        }
    }
}

/// The folder of a spec as seen from that of the manifest, where build scripts run. A spec elsewhere is
/// taken to stand beside its manifest, so that what is generated does not say where that is.
fn folder_of(spec: &Path) -> PathBuf {
    let folder = spec.parent().unwrap_or(Path::new(""));
    if folder.is_relative() {
        return folder.to_owned();
    }
    let here = std::env::current_dir().unwrap_or_default();
    folder.strip_prefix(here).map(Path::to_owned).unwrap_or_default()
}
