//! What a shared object says of itself before it is loaded.
//!
//! In: a file. Out: the functions it has, those it wants, and which layout of `std::string` it was
//! compiled with; or why it cannot be loaded here. Must not load anything.

use std::fs;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Architecture, Endianness, Object, ObjectKind, ObjectSymbol, SymbolKind};

use super::strings::StringAbi;
use crate::error::{Error, Result};

/// Facts about a library.
#[derive(Clone, Debug)]
pub struct LibraryFacts {
    /// The names of its functions, sorted.
    pub functions: Vec<String>,
    /// The names of its data, sorted.
    pub data: Vec<String>,
    /// The names that other libraries must have, sorted.
    pub wanted: Vec<String>,
    /// The layout of strings it was compiled with; `None` if nothing in it shows which, so that it cannot
    /// pass any.
    pub strings: Option<StringAbi>,
    /// Whether it was compiled with libc++, whose strings and vectors are laid out otherwise.
    pub libcxx: bool,
}

impl LibraryFacts {
    /// Reads them.
    ///
    /// # Errors
    /// If the file cannot be read, is no shared object, or one for another processor.
    pub fn read(path: &Path) -> Result<LibraryFacts> {
        let content = fs::read(path)
            .map_err(|error| Error::io(format!("cannot read the library {}: {error}", path.display())))?;
        let refuse = |why: &str| {
            Error::io(format!("{} cannot be loaded: {why}", path.display())).with_help(
                "give a shared object for Linux on this processor, or a source that ends in .cc, .cpp or .cu",
            )
        };
        let file = ElfFile64::<Endianness>::parse(&*content)
            .map_err(|_| refuse("it is no shared object (ELF, 64 bits)"))?;
        if file.kind() != ObjectKind::Dynamic {
            return Err(refuse("it is an object or a program, no shared object; link it with -shared"));
        }
        let here = if cfg!(target_arch = "x86_64") { Architecture::X86_64 } else { Architecture::Aarch64 };
        if file.architecture() != here {
            return Err(refuse(&format!("it is for {:?}, this is {here:?}", file.architecture())));
        }
        let mut facts = LibraryFacts {
            functions: Vec::new(),
            data: Vec::new(),
            wanted: Vec::new(),
            strings: None,
            libcxx: false,
        };
        for symbol in file.dynamic_symbols() {
            let Ok(name) = symbol.name() else { continue };
            facts.note_strings(name);
            match symbol.kind() {
                _ if symbol.is_undefined() => facts.wanted.push(name.to_owned()),
                SymbolKind::Text => facts.functions.push(name.to_owned()),
                SymbolKind::Data => facts.data.push(name.to_owned()),
                _ => {}
            }
        }
        // Functions that were inlined or hidden have left no name above.
        for symbol in file.symbols() {
            symbol.name().into_iter().for_each(|name| facts.note_strings(name));
        }
        for list in [&mut facts.functions, &mut facts.data, &mut facts.wanted] {
            list.sort();
            list.retain(|name| !name.is_empty());
            list.dedup();
        }
        Ok(facts)
    }

    /// Every string of the old layout is made and freed by functions of libstdc++, so a library that
    /// passes one wants them. The new layout often leaves no trace, since short texts need no function.
    fn note_strings(&mut self, name: &str) {
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
    }

    /// Names of functions that look like `name`, nearest first.
    pub fn near(&self, name: &str) -> Vec<&str> {
        // Mangled names are nobody's kernels.
        let plain = self.functions.iter().map(String::as_str).filter(|known| !known.starts_with('_'));
        let mut ranked: Vec<(usize, &str)> =
            plain.map(|known| (crate::library::edit_distance(name, known), known)).collect();
        ranked.sort_unstable();
        ranked.truncate(6);
        ranked.into_iter().map(|(_, known)| known).collect()
    }
}
