//! The configuration of the generator for one crate.

use std::path::{Path, PathBuf};

use opsmith_core::Backend;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, TokenStreamExt as _, quote};

use syn::parse::Parser as _;

use crate::chain::{self, Library};

/// The location of the spec, and the crates that the generated code refers to.
#[derive(Clone, Debug)]
pub struct Config {
    /// The spec.
    pub spec: PathBuf,
    /// The spec's name in generated files and in `location`s: relative, the same on every machine.
    pub spec_name: String,
    /// The spec's folder, relative to the folder of the crate's manifest. Custom kernels are found there at run time.
    pub folder: PathBuf,
    /// The specs of libraries whose operators formulas may call, with the crates' paths.
    pub parents: Vec<Parent>,
    /// The cargo features that are on, as the variables of a build script name them; all if absent, as in commands.
    pub features: Option<Vec<String>>,
    /// The name of the library.
    pub library: String,
    /// The package whose library has the generated code, for the examples of its documentation. A build script knows it;
    /// without it, that of the library's name.
    pub package: Option<String>,
    /// Path of the runtime crate.
    pub runtime: RustPath,
    /// Path of the crate with the macro `spec_kernel!`, for kernels that are compiled at run time.
    pub custom_kernels: RustPath,
    /// Path of the module that contains hand-written functions.
    pub kernels: RustPath,
    /// The backends with kernels in Rust, each with the module of its kernels. `opsmith_codegen::build` and commands read those other than
    /// the CPU's from the manifest, `[package.metadata.opsmith.kernels]`: `CUDA = "crate::cuda_kernels"`.
    pub backends: Vec<(Backend, RustPath)>,
    /// The folder of the crate with the kernels, if it is neither the library's own nor beside the spec.
    pub kernel_crate: Option<PathBuf>,
    /// Folders with headers for C and C++ kernels.
    pub include: Vec<PathBuf>,
    /// The crates that have the kernel tables.
    pub tables: Tables,
    /// The device library, with which pointwise expressions have loops on devices; without it, they have none.
    pub device: Option<DeviceLibrary>,
}

/// The texts of the device library, and the library whose scalar functions it has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceLibrary {
    /// Path of a `&[&str]`, the texts.
    pub headers: RustPath,
    /// The library, by its number among the parents, or the crate's own: the functions of its spec are in the device library
    /// under their paths in Rust.
    pub library: Option<usize>,
}

/// The crates that have the kernel tables of a library. Kernels are compiled where their tables are, so that several crates
/// let cargo compile kernels and the rest side by side.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Tables {
    /// The library's own.
    #[default]
    Inside,
    /// Those at these paths, generated from the same spec as [`Tables::Families`].
    Of(Vec<RustPath>),
    /// This one, which has the tables of the entries in these files of the spec, and nothing else. No other file is read, so they
    /// have the scalar functions that the expressions of these entries call, too.
    Families(Vec<String>),
}

impl Tables {
    /// Whether the library has the tables of the entries in a file of the spec itself.
    pub fn has(&self, file: &str) -> bool {
        match self {
            Tables::Inside => true,
            Tables::Of(_) => false,
            Tables::Families(files) => files.iter().any(|known| known == file),
        }
    }
}

/// The path of a Rust crate or module, as text: `syn`'s syntax trees cannot leave their thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RustPath(String);

impl RustPath {
    /// A path without type arguments, such as `::opsmith::runtime` or `crate::kernels`.
    ///
    /// # Errors
    /// If the text is not such a path.
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

/// A library that was generated by another crate.
#[derive(Clone, Debug)]
pub struct Parent {
    /// Its spec.
    pub spec: PathBuf,
    /// Path of its crate.
    pub path: RustPath,
    /// Whether it is a direct dependency; if not, a parent depends on it.
    pub direct: bool,
    /// The cargo features that are on there, as [`Config::features`].
    pub features: Option<Vec<String>>,
}

impl Parent {
    /// The library generated by the package of that name.
    ///
    /// # Panics
    /// If no crate can have that name.
    pub fn new(spec: impl Into<PathBuf>, package: &str) -> Parent {
        let path = format!("::{}", package.replace('-', "_"));
        let path = RustPath::parse(&path).expect("a crate's name is an identifier");
        Parent { spec: spec.into(), path, direct: true, features: None }
    }
}

impl Config {
    /// The configuration of a crate that depends on `opsmith` and keeps its Rust kernels in `src/kernels/`.
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
            features: None,
            library: "user".to_owned(),
            package: None,
            runtime: path("::opsmith::runtime"),
            custom_kernels: path("::opsmith"),
            kernels: path("crate::kernels"),
            backends: vec![(Backend::Cpu, path("crate::kernels"))],
            kernel_crate: None,
            include: Vec::new(),
            tables: Tables::Inside,
            device: None,
        }
    }

    /// Whether the library is the stock one, from which others take the runtime.
    pub fn is_stock(&self) -> bool {
        self.library == chain::ROOT
    }

    /// The module of a backend's kernels in Rust, if it has any.
    pub fn kernels_of(&self, backend: Backend) -> Option<&RustPath> {
        self.backends.iter().find(|(known, _)| *known == backend).map(|(_, module)| module)
    }

    /// Builds on libraries: formulas may call their operators, and the first of the chain has the runtime.
    ///
    /// # Errors
    /// If a crate's name is not an identifier.
    pub fn build_on(&mut self, libraries: &[Library]) -> Result<(), String> {
        for library in libraries {
            let parse = |path: &str| {
                RustPath::parse(path).map_err(|error| format!("`{path}` is not the path of a crate: {error}"))
            };
            let path = parse(&library.path)?;
            if library.package == chain::ROOT {
                self.runtime = parse(&format!("{}::runtime", library.path))?;
                self.custom_kernels = path.clone();
                let headers = parse(&format!("{}::kernels::device::HEADERS", library.path))?;
                self.device = Some(DeviceLibrary { headers, library: Some(self.parents.len()) });
            }
            self.parents.push(Parent {
                spec: library.spec.clone(),
                path,
                direct: library.is_direct(),
                features: library.features.clone(),
            });
            for folder in &library.include {
                if !self.include.contains(folder) {
                    self.include.push(folder.clone());
                }
            }
        }
        Ok(())
    }

    /// The path of a public module in generated code: of a parent, by its number, or of the crate itself.
    pub(crate) fn module(&self, parent: Option<usize>, module: &str) -> TokenStream {
        let module = quote::format_ident!("{module}");
        match parent.and_then(|parent| self.parents.get(parent)) {
            Some(Parent { path, .. }) => quote!(#path::#module),
            None => quote!(#module),
        }
    }

    /// The configuration of the stock library itself.
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
            backends: vec![
                (Backend::Cpu, path("::opsmith_kernels::cpu")),
                (Backend::Cuda, path("::opsmith_kernels::cuda")),
            ],
            device: Some(DeviceLibrary {
                headers: path("::opsmith_kernels::device::HEADERS"),
                library: None,
            }),
            ..Config::new(spec)
        }
    }
}

/// The folder of a spec relative to that of the manifest, where build scripts run. A spec elsewhere is treated as if it
/// were beside its manifest, so that generated code contains no absolute path.
fn folder_of(spec: &Path) -> PathBuf {
    let folder = spec.parent().unwrap_or(Path::new(""));
    if folder.is_relative() {
        return folder.to_owned();
    }
    let here = std::env::current_dir().unwrap_or_default();
    folder.strip_prefix(here).map(Path::to_owned).unwrap_or_default()
}
