//! The symbols and sections of a shared object, read before it is loaded.
//!
//! In: a file. Out: the functions it has, those it wants, the signatures it carries, which layout of
//! `std::string` and which variant of the interface it was compiled with; or why it cannot be loaded here.
//! Must not load anything.

use std::path::Path;

use object::read::elf::ElfFile64;
use object::{
    Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind,
};
use opsmith_runtime::error::{Error, Result};

use super::file::KernelFile;

/// The start of the name under which a library carries the signature of one of its functions.
pub(super) const FINGERPRINT: &str = "opsmith_aot_signature_";

/// The layout of `std::string` that a library was compiled with; libstdc++ has two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StringAbi {
    /// `_GLIBCXX_USE_CXX11_ABI=0`
    Old,
    /// `_GLIBCXX_USE_CXX11_ABI=1`
    New,
}

/// The form in which a library passes names of attributes, which decides the class of its objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Names {
    /// `std::string` of that layout: `AotExtra`.
    Strings(StringAbi),
    /// `std::vector<char>`: `AotExtraDualABI`.
    Vectors,
    /// The library's symbols do not show which. Its first query of an attribute will.
    Either(StringAbi),
}

/// The variant of the interface that a library was compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Interface {
    /// `AotExtra`, of `custom_aot_extra.h`: names of attributes are `std::string`.
    Plain,
    /// `AotExtraDualABI`, of `custom_aot_extra_dual_abi.h`: names of attributes are `std::vector<char>`.
    DualAbi,
}

/// Facts about a library.
#[derive(Clone, Debug)]
pub struct LibraryFacts {
    /// The names of its functions, sorted.
    pub functions: Vec<String>,
    /// The names that other libraries must have, sorted.
    pub wanted: Vec<String>,
    /// The functions it carries signatures of, with these, sorted.
    fingerprints: Vec<(String, String)>,
    /// The layout of strings it was compiled with; `None` if nothing in it shows which, so that it cannot
    /// pass any.
    pub strings: Option<StringAbi>,
    /// Whether its symbols name `AotExtra` or `AotKernelData`.
    plain: bool,
    /// Whether they name `AotExtraDualABI` or `AotKernelDataDualABI`.
    dual: bool,
    /// Whether it was compiled with libc++, whose strings and vectors are laid out otherwise.
    libcxx: bool,
}

impl LibraryFacts {
    /// Reads them.
    ///
    /// # Errors
    /// If the file cannot be read, is no shared object, one for another processor, or not whole.
    pub fn read(library: &KernelFile) -> Result<LibraryFacts> {
        let content = library.read()?;
        let refuse = |why: &str| {
            Error::io(format!("{} cannot be loaded: {why}", library.path().display())).with_help(
                "give a shared object for Linux on this processor, or a source that ends in .cc, .cpp or .cu",
            )
        };
        let file = ElfFile64::<Endianness>::parse(content).map_err(|_| {
            match content.starts_with(b"\x7fELF\x02") {
                true => refuse("it was cut off, or overwritten"),
                false => refuse("it is no shared object (ELF, 64 bits)"),
            }
        })?;
        if file.kind() != ObjectKind::Dynamic {
            return Err(refuse("it is an object or a program, no shared object; link it with -shared"));
        }
        let here = if cfg!(target_arch = "x86_64") { Architecture::X86_64 } else { Architecture::Aarch64 };
        if file.architecture() != here {
            return Err(refuse(&format!("it is for {:?}, this is {here:?}", file.architecture())));
        }
        // The loader maps all that the header promises, and an access to a missing part ends the process.
        let ends = file
            .segments()
            .map(|segment| segment.file_range())
            .map(|(start, size)| start.saturating_add(size));
        if let Some(end) = ends.max().filter(|end| *end > content.len() as u64) {
            return Err(refuse(&format!("it was cut off: it has {} bytes of at least {end}", content.len())));
        }
        let mut facts = LibraryFacts {
            functions: Vec::new(),
            wanted: Vec::new(),
            fingerprints: Vec::new(),
            strings: None,
            plain: false,
            dual: false,
            libcxx: false,
        };
        facts.note_symbols(&file);
        Ok(facts)
    }

    fn note_symbols(&mut self, file: &ElfFile64<'_, Endianness>) {
        for symbol in file.dynamic_symbols() {
            let Ok(name) = symbol.name() else { continue };
            self.note_types(name);
            match symbol.kind() {
                _ if symbol.is_undefined() => self.wanted.push(name.to_owned()),
                SymbolKind::Text => self.functions.push(name.to_owned()),
                SymbolKind::Data => {
                    let function = name.strip_prefix(FINGERPRINT);
                    let text =
                        function.and_then(|function| Some((function.to_owned(), text(file, &symbol)?)));
                    self.fingerprints.extend(text);
                }
                _ => {}
            }
        }
        // Functions that were inlined or hidden have left no name above.
        for symbol in file.symbols() {
            symbol.name().into_iter().for_each(|name| self.note_types(name));
        }
        for list in [&mut self.functions, &mut self.wanted] {
            list.sort();
            list.retain(|name| !name.is_empty());
            list.dedup();
        }
        self.fingerprints.sort();
    }

    /// Notes which types a mangled name has. Every string of the old layout is made and freed by functions of
    /// libstdc++, so a library that passes one wants them. The new layout often leaves no trace, since short
    /// texts need no function; nor do functions of headers that were inlined.
    fn note_types(&mut self, name: &str) {
        if !name.starts_with("_Z") {
            return;
        }
        let old = ["_ZNSs", "_ZNKSs"].iter().any(|start| name.starts_with(start));
        // `Attr<…>(std::string)` and the like, as in code that is not optimised.
        let old = old || name.ends_with("Ss") || name.contains("AotExtra") && name.contains("ESs");
        if old {
            self.strings = Some(StringAbi::Old);
        } else if name.contains("NSt7__cxx1112basic_string") && self.strings.is_none() {
            self.strings = Some(StringAbi::New);
        }
        self.libcxx |= name.contains("NSt3__1");
        let has = |types: [&str; 2]| types.iter().any(|ty| has_type(name, ty));
        self.plain |= has(["AotExtra", "AotKernelData"]);
        self.dual |= has(["AotExtraDualABI", "AotKernelDataDualABI"]);
    }

    /// The variant of the interface it was compiled for; `None` if nothing in it shows which, or it has both.
    pub fn interface(&self) -> Option<Interface> {
        match (self.plain, self.dual) {
            (true, false) => Some(Interface::Plain),
            (false, true) => Some(Interface::DualAbi),
            _ => None,
        }
    }

    /// How it says names of attributes.
    pub fn names(&self) -> Names {
        let strings = self.strings.unwrap_or(StringAbi::New);
        match self.interface() {
            Some(Interface::Plain) => Names::Strings(strings),
            Some(Interface::DualAbi) => Names::Vectors,
            None => Names::Either(strings),
        }
    }

    /// Whether it has a function of that name.
    pub fn has(&self, function: &str) -> bool {
        self.functions.binary_search_by(|known| known.as_str().cmp(function)).is_ok()
    }

    /// The signature that it was made for, if it carries one of the function.
    pub fn fingerprint(&self, function: &str) -> Option<&str> {
        self.fingerprints.iter().find(|(known, _)| known == function).map(|(_, text)| text.as_str())
    }

    /// The functions it carries signatures of.
    pub fn signed(&self) -> impl Iterator<Item = &str> {
        self.fingerprints.iter().map(|(function, _)| function.as_str())
    }

    /// Refuses a library whose types are not those of the interface.
    ///
    /// # Errors
    /// If it was compiled with another standard library.
    pub fn check_types(&self, source: &Path) -> Result<()> {
        if !self.libcxx {
            return Ok(());
        }
        Err(Error::kernel(format!(
            "{} was compiled with libc++, whose strings and vectors are not those of the interface",
            source.display()
        ))
        .with_help("compile it with g++, or with clang++ -stdlib=libstdc++"))
    }

    /// The error of a function that is not there.
    #[cold]
    pub fn missing(&self, source: &Path, function: &str) -> Error {
        let mangled = self.functions.iter().any(|name| {
            let start = format!("{}{function}", function.len());
            name.strip_prefix("_Z").is_some_and(|rest| rest.starts_with(&start))
        });
        let error = Error::not_found(format!("there is no function `{function}` in {}", source.display()));
        if mangled {
            return error
                .with_help(format!("`{function}` is there as a function of C++: declare it extern \"C\""));
        }
        let near: Vec<String> = self.near(function).into_iter().map(|name| format!("`{name}`")).collect();
        error.with_help(match near.as_slice() {
            [] => "it has no extern \"C\" function at all".to_owned(),
            near => format!("the functions there are: {}", near.join(", ")),
        })
    }

    /// Names of functions that look like `name`, nearest first.
    pub fn near(&self, name: &str) -> Vec<&str> {
        // Mangled names are not kernels.
        let plain = self.functions.iter().map(String::as_str).filter(|known| !known.starts_with('_'));
        let mut ranked: Vec<(usize, &str)> =
            plain.map(|known| (strsim::levenshtein(name, known), known)).collect();
        ranked.sort_unstable();
        ranked.truncate(6);
        ranked.into_iter().map(|(_, known)| known).collect()
    }
}

/// Whether a mangled name has a type of that name, before which its length stands.
fn has_type(mangled: &str, ty: &str) -> bool {
    let part = format!("{}{ty}", ty.len());
    mangled.match_indices(&part).any(|(at, _)| !mangled[..at].ends_with(|c: char| c.is_ascii_digit()))
}

/// The text that a symbol of a file names, up to its final zero.
fn text<'data>(file: &ElfFile64<'data, Endianness>, symbol: &impl ObjectSymbol<'data>) -> Option<String> {
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let bytes = section.data_range(symbol.address(), symbol.size()).ok()??;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}
