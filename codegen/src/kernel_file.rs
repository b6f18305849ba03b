//! Kernel files, and the functions that entries name in them.
//!
//! In: the model, and sources in C, C++ or CUDA, or libraries. Out: a diagnostic for each missing file and each
//! function that is certainly missing, with the names that exist; nothing where only a compiler could decide. A name in
//! a comment does not count; a name that a macro may construct, or that occurs in a string, which may be an assembler
//! label, may exist. Must not run a compiler.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use opsmith_core::cpp::pieces::{self, Piece};

use crate::config::Config;
use crate::diagnostics::{Diagnostic, SourceMap, Span, catalogue};
use crate::model::{KernelSource, Model};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 26;
/// Maximal number of included files per source.
const MOST: usize = 200;
/// Headers that every source finds by the include path; they define no kernels.
const KNOWN: [&str; 1] = ["custom_aot_extra.h"];

/// The kernels of the spec's own entries whose file or function is missing.
pub fn check(model: &Model, config: &Config, sources: &SourceMap) -> Vec<Diagnostic> {
    let folder = config.spec.parent().unwrap_or(Path::new(""));
    let own = model.ops.iter().filter(|op| !op.is_external());
    let kernels = own.flat_map(|op| op.body.kernels.iter().filter(|kernel| op.body.refers_to(kernel)));
    let mut found = Vec::new();
    for kernel in kernels {
        let (KernelSource::Foreign { file, symbol } | KernelSource::Aot { file, symbol }) = &kernel.source
        else {
            continue;
        };
        let (path, name) = (folder.join(file), file.display().to_string());
        if !path.is_file() {
            found.push(catalogue::kernel_file_missing(kernel.span, &name));
        } else if let Some(known) = names_without(&path, symbol) {
            let place = place_of_symbol(sources, kernel.span, symbol);
            found.push(catalogue::kernel_function_missing(place, &name, symbol, &known));
        }
    }
    found
}

/// The span of the function in the text that names a kernel.
fn place_of_symbol(sources: &SourceMap, span: Span, symbol: &str) -> Span {
    let found = sources.slice(span).rfind(symbol);
    let start = found.map(|found| span.range().start + found);
    start.map_or(span, |start| Span::new(span.source, start..start + symbol.len()))
}

/// The names in a kernel's file, if the function is not among them and no macro could construct it.
fn names_without(path: &Path, function: &str) -> Option<BTreeSet<String>> {
    if path.extension().is_some_and(|extension| extension == "so") {
        return (!has_symbol(&read(path)?, function)).then(BTreeSet::new);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut names = BTreeSet::new();
    let mut waiting = vec![path.to_owned()];
    let mut seen = HashSet::new();
    while let Some(path) = waiting.pop() {
        if !seen.insert(fs::canonicalize(&path).ok()?) {
            continue;
        }
        let text = String::from_utf8_lossy(&read(&path)?).replace("\r\n", "\n").replace("\\\n", "");
        let source = Source::of(&text);
        let makes_names = source.pastes || source.texts.iter().any(|text| text.contains(function));
        if makes_names || source.names.contains(function) || seen.len() > MOST {
            return None;
        }
        for include in source.includes {
            match find(&include, path.parent().unwrap_or(folder), folder) {
                Place::File(path) => waiting.push(path),
                Place::System => {}
                Place::Unknown => return None,
            }
        }
        names.extend(source.names.into_iter().map(str::to_owned));
    }
    Some(names)
}

/// The content of a regular file of a sensible size.
pub(crate) fn read(path: &Path) -> Option<Vec<u8>> {
    let facts = fs::metadata(path).ok()?;
    if !facts.is_file() || facts.len() > LARGEST {
        return None;
    }
    fs::read(path).ok()
}

/// Whether a library's string table, of zero-terminated names, has a name with this ending.
fn has_symbol(library: &[u8], function: &str) -> bool {
    let name = [function.as_bytes(), &[0]].concat();
    library.windows(name.len()).any(|bytes| bytes == name)
}

/// The location of an included file.
enum Place {
    /// A file that can be read.
    File(PathBuf),
    /// A header of the system or of opsmith, which names no kernel.
    System,
    /// Determined by a macro or a compiler flag.
    Unknown,
}

fn find(include: &Include<'_>, beside: &Path, folder: &Path) -> Place {
    let (name, quoted) = match include {
        Include::Quoted(name) => (*name, true),
        Include::System(name) => (*name, false),
        Include::Computed => return Place::Unknown,
    };
    let own = [quoted.then_some(beside), Some(folder)].into_iter().flatten().map(|folder| folder.join(name));
    if let Some(path) = own.into_iter().find(|path| path.is_file()) {
        return Place::File(path);
    }
    let extension = Path::new(name).extension();
    let of_system = !quoted && extension.is_none_or(|extension| extension == "h");
    if of_system || KNOWN.contains(&name) { Place::System } else { Place::Unknown }
}

/// A file that another one includes.
enum Include<'a> {
    Quoted(&'a str),
    System(&'a str),
    /// An include given by a macro.
    Computed,
}

/// The relevant parts of a source.
#[derive(Default)]
struct Source<'a> {
    names: BTreeSet<&'a str>,
    texts: Vec<&'a str>,
    includes: Vec<Include<'a>>,
    /// Whether macros may construct names, or names have unusual spellings.
    pastes: bool,
}

impl<'a> Source<'a> {
    /// Reads a source after removal of escaped line breaks.
    fn of(text: &'a str) -> Source<'a> {
        let mut source = Source::default();
        let mut rest = text;
        while let Some((piece, length)) = pieces::first(rest) {
            let length = match piece {
                Piece::Sign('#') => source.directive(rest),
                // An alternative spelling of `#`, and an escaped letter.
                Piece::Sign('%') if rest.starts_with("%:") => source.unusual(2),
                Piece::Sign('\\') => source.unusual(1),
                Piece::Word(word) => {
                    source.names.insert(word);
                    length
                }
                Piece::Literal(text, _) => {
                    source.texts.push(text);
                    length
                }
                Piece::Comment | Piece::Blank | Piece::Number(_) | Piece::Sign(_) => length,
            };
            rest = &rest[length..];
        }
        source
    }

    fn unusual(&mut self, length: usize) -> usize {
        self.pastes = true;
        length
    }

    /// `#` of a directive, or an operator of macros.
    fn directive(&mut self, rest: &'a str) -> usize {
        if rest.starts_with("##") {
            return self.unusual(2);
        }
        let word = rest[1..].trim_start_matches([' ', '\t']);
        let Some(file) =
            ["include_next", "include", "import"].iter().find_map(|name| word.strip_prefix(name))
        else {
            return 1;
        };
        let file = file.trim_start_matches([' ', '\t']);
        let line = &file[..file.find('\n').unwrap_or(file.len())];
        let between = |open, close| Some(line.strip_prefix(open)?.split_once(close)?.0);
        self.includes.push(match (between('"', '"'), between('<', '>')) {
            (Some(name), _) => Include::Quoted(name),
            (_, Some(name)) => Include::System(name),
            _ => Include::Computed,
        });
        rest.len() - file.len() + line.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `Kernel` is reported as missing in a source.
    fn is_missing(text: &str) -> bool {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("opsmith-kernel-file-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("k.cc"), text).unwrap();
        fs::write(folder.join("has.h"), "int Kernel();").unwrap();
        fs::write(folder.join("has_not.h"), "#include \"k.cc\"\nint Other();").unwrap();
        let missing = names_without(&folder.join("k.cc"), "Kernel").is_some();
        fs::remove_dir_all(folder).unwrap();
        missing
    }

    #[test]
    fn a_function_that_is_there_or_may_be_is_not_missing() {
        for text in [
            "extern \"C\" int Kernel() { return 0; }",
            "extern \"C\" int\n  Ker\\\nnel() { return 0; }",
            "#define DEFINE(name) extern \"C\" int name()\nDEFINE(Kernel) { return 0; }",
            "#define DEFINE(name) extern \"C\" int Ker##name()\nDEFINE(nel) { return 0; }",
            "#define DEFINE(name) extern \"C\" int Ker%:%:name()\nDEFINE(nel) { return 0; }",
            "#include \"has.h\"\n",
            "  #  include  <has.h>\n",
            "#include \"has_not.h\"\n#include \"elsewhere.h\"\n",
            "#define FILE \"has.h\"\n#include FILE\n",
            "#include <generated/kernels.inc>\n",
            "extern \"C\" int other() asm(\"Kernel\");",
            "const char *text = \"/*\"; int Kernel(); /* */",
            "int million = 1'000'000; int Kernel(); char quote = '\\'';",
            "const char *raw = R\"(\")\"; int Kernel();",
            "extern \"C\" int \\u004Bernel();",
        ] {
            assert!(!is_missing(text), "{text}");
        }
    }

    #[test]
    fn a_function_that_is_nowhere_is_missing() {
        for text in [
            "",
            "extern \"C\" int Kernels() { return 0; } int MyKernel; int kernel;",
            "// int Kernel();\nint other();",
            "/* int Kernel(); */ int other();",
            "// goes on \\\nint Kernel();\nint other();",
            "#include <vector>\n#include <stdio.h>\n#include \"custom_aot_extra.h\"\nint other();",
            "#include \"has_not.h\"\n",
            "int million = 1'000'000; // 'int Kernel();'\n",
            "char quote = '\"'; // Kernel \"\n",
            "char backslash = '\\\\'; // Kernel\n",
            "const char *raw = R\"a(\")\" )a\"; // Kernel\n",
        ] {
            assert!(is_missing(text), "{text}");
        }
    }

    #[test]
    fn names_of_a_library_end_with_a_zero() {
        assert!(has_symbol(b"\0MyKernel\0other\0", "Kernel"));
        assert!(!has_symbol(b"\0MyKernels\0other\0", "Kernel"));
    }
}
