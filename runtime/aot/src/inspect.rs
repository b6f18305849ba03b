//! The content of a library, and its defects, for people.
//!
//! In: the path of a shared object, or of a source, which is compiled first. Out: its kernels with the functions
//! beside them, its layout of strings, its variant of the interface, and the problems that would keep a kernel from running. The library is read here; it is loaded in a process
//! of its own, to see whether it can be.

use std::path::{Path, PathBuf};

use opsmith_runtime::error::Result;

use super::build::{self, Recipe};
use super::child::Work;
use super::compiler::Language;
use super::elf::{Interface, LibraryFacts, StringAbi};
use super::file::KernelFile;
use super::kernel::Options;
use super::library;

/// A library as seen from the outside.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The shared object itself.
    pub library: PathBuf,
    /// The layout of strings it was compiled with; `None` if nothing in it shows which.
    pub strings: Option<StringAbi>,
    /// The variant of the interface it was compiled for; `None` if nothing in it shows which.
    pub interface: Option<Interface>,
    /// Its kernels, by name.
    pub kernels: Vec<KernelFacts>,
    /// Defects that would keep kernels from running, each with its cure.
    pub problems: Vec<String>,
}

/// A kernel of a library.
#[derive(Clone, Debug)]
pub struct KernelFacts {
    /// The function.
    pub name: String,
    /// Whether `FInit` is there.
    pub init: bool,
    /// Whether `FInferShape` is there.
    pub infer_shape: bool,
    /// Whether `FInferType` is there.
    pub infer_type: bool,
    /// The signature it was made for, a field a line, if the library carries it.
    pub signature: Option<String>,
}

/// The names of functions beside a kernel.
const BESIDE: [&str; 3] = ["Init", "InferShape", "InferType"];

/// Looks into a library, or into the one that a source compiles to.
///
/// # Errors
/// If it is no library for this processor, must not be loaded, or does not compile.
pub fn inspect(path: &Path) -> Result<Inspection> {
    let file = KernelFile::allowed(path)?;
    match Language::of(path) {
        Some(language) => {
            let recipe = Recipe { source: &file, language, flags: &[], fingerprint: None };
            look(&build::build(&recipe)?.library)
        }
        None => look(&file),
    }
}

/// The content of a library that may be loaded.
pub(super) fn look(file: &KernelFile) -> Result<Inspection> {
    let path = file.path();
    let facts = LibraryFacts::read(file)?;
    let has = |name: &str| facts.has(name);
    let is_beside = |name: &str| {
        let mut owners = BESIDE.iter().filter_map(|end| name.strip_suffix(end));
        owners.any(|owner| !owner.is_empty() && has(owner))
    };
    let plain = facts.functions.iter().filter(|name| !name.starts_with('_') && !is_beside(name));
    let mut inspection = Inspection {
        library: path.to_owned(),
        strings: facts.strings,
        interface: facts.interface(),
        kernels: Vec::new(),
        problems: Vec::new(),
    };
    for name in plain {
        let orphan = BESIDE.iter().find_map(|end| Some((name.strip_suffix(end)?, end)));
        if let Some((owner, end)) = orphan.filter(|(owner, _)| !owner.is_empty()) {
            inspection.problems.push(format!(
                "`{name}` looks like the {end} function of a kernel `{owner}`, which is not there as extern \"C\""
            ));
            continue;
        }
        let beside = |end: &str| has(&format!("{name}{end}"));
        inspection.kernels.push(KernelFacts {
            name: name.clone(),
            init: beside("Init"),
            infer_shape: beside("InferShape"),
            infer_type: beside("InferType"),
            signature: facts.fingerprint(name).map(str::to_owned),
        });
    }
    if inspection.kernels.is_empty() {
        let mangled = facts.functions.iter().any(|name| name.starts_with("_Z"));
        inspection.problems.push(if mangled {
            "it has functions of C++ only; declare kernels extern \"C\"".to_owned()
        } else {
            "it has no function that could be a kernel".to_owned()
        });
    }
    for name in facts.signed().filter(|name| !has(name)) {
        inspection.problems.push(format!(
            "it was made for a kernel `{name}`, which is not there; is the function extern \"C\", and not static?"
        ));
    }
    if let Err(error) = facts.check_types(path).and_then(|()| try_loading(file, &facts)) {
        let help = error.help().map_or(String::new(), |help| format!("; {help}"));
        inspection.problems.push(format!("{}{help}", error.message()));
    }
    Ok(inspection)
}

/// Loads a library in a process of its own: its initialisers may do anything.
///
/// # Errors
/// If the loader refuses it, or an initialiser crashes, ends the process or does not return.
fn try_loading(file: &KernelFile, facts: &LibraryFacts) -> Result<()> {
    let work = Work {
        subject: format!("loading {}", file.path().display()),
        timeout: Options::from_environment()?.timeout,
        note: "its initialisers ran in a process of their own",
    };
    let load = || library::load(file, file.path(), facts).map(|_| Vec::new());
    work.run(&load).map(drop)
}
