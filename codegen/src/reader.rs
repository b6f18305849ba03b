//! Reading: the specs of a configuration and the files that they include, to entries.
//!
//! In: a [`Config`] and files. Out: documents in the order of reading, parents first; text that cannot be parsed is a
//! diagnostic. Must not know the meaning of entries.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::diagnostics::{Diagnostics, SourceId, SourceMap, catalogue};
use crate::spec::document::{Document, Loaded, Text};
use crate::spec::yaml::Key;
use crate::spec::{encoding, yaml};

/// A file that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub error: io::Error,
}

/// A function that returns the bytes of a file.
pub type Open<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// The file system.
const DISK: Open<'static> = &|path| std::fs::read(path);

/// Aliases of arguments.
type Aliases = Vec<(Key, Vec<Text>)>;

/// The context of a file.
struct Origin<'a> {
    /// The library that it belongs to.
    parent: Option<usize>,
    /// The aliases of the file that includes it.
    aliases: Aliases,
    /// The source of it and of its includes.
    open: Open<'a>,
}

impl<'a> Origin<'a> {
    fn first(parent: Option<usize>, open: Open<'a>) -> Origin<'a> {
        Origin { parent, aliases: Aliases::new(), open }
    }
}

/// The files that were read so far.
#[derive(Default)]
pub struct Reader {
    /// Their texts.
    pub sources: SourceMap,
    /// Their mistakes as YAML and as documents.
    pub diagnostics: Diagnostics,
    /// Their entries.
    pub documents: Vec<Loaded>,
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// The same files, by canonical path.
    known: HashSet<PathBuf>,
}

impl Reader {
    /// Reads the specs of the parent libraries.
    ///
    /// # Errors
    /// If one cannot be read; included files that cannot be read are diagnostics.
    pub fn read_parents(&mut self, config: &Config) -> Result<(), Unreadable> {
        for (number, parent) in config.parents.iter().enumerate() {
            self.read(&parent.spec, &parent.spec.display().to_string(), &Origin::first(Some(number), DISK))?;
        }
        Ok(())
    }

    /// Reads the spec itself.
    ///
    /// # Errors
    /// As [`read_parents`](Reader::read_parents).
    pub fn read_spec(&mut self, config: &Config) -> Result<(), Unreadable> {
        self.read_spec_from(config, DISK)
    }

    /// Reads the spec and its includes from another source, such as a revision.
    ///
    /// # Errors
    /// As [`read_parents`](Reader::read_parents).
    pub fn read_spec_from(&mut self, config: &Config, open: Open<'_>) -> Result<(), Unreadable> {
        self.read(&config.spec, &config.spec_name, &Origin::first(None, open))
    }

    /// Adds the spec with these bytes.
    pub fn add_spec(&mut self, config: &Config, bytes: Vec<u8>) {
        self.add_file(&config.spec, &config.spec_name, bytes, &Origin::first(None, DISK));
    }

    /// Adds a text as a spec; includes are ignored.
    pub fn add_text(&mut self, name: &str, text: &str) {
        let source = self.sources.add(name, text);
        self.add(source, &Origin::first(None, DISK));
    }

    fn read(&mut self, path: &Path, name: &str, origin: &Origin<'_>) -> Result<(), Unreadable> {
        let bytes = (origin.open)(path).map_err(|error| Unreadable { path: path.to_owned(), error })?;
        self.add_file(path, name, bytes, origin);
        Ok(())
    }

    /// Adds a file and those it includes; each file is read once.
    fn add_file(&mut self, path: &Path, name: &str, bytes: Vec<u8>, origin: &Origin<'_>) {
        if self.is_new(path) {
            let source = encoding::add(&mut self.sources, name, bytes, &mut self.diagnostics);
            self.add_with_includes(path, source, origin);
        }
    }

    /// Records a file; returns whether it was new, under any path.
    fn is_new(&mut self, path: &Path) -> bool {
        let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let new = self.known.insert(whole);
        if new {
            self.files.push(path.to_owned());
        }
        new
    }

    fn add_with_includes(&mut self, path: &Path, source: SourceId, origin: &Origin<'_>) {
        let Some(document) = self.add(source, origin) else { return };
        let includes = document.include.clone();
        let inner = Origin { aliases: document.all_aliases(), ..*origin };
        let folder = path.parent().unwrap_or(Path::new(""));
        let name = PathBuf::from(self.sources.file(source).path());
        for include in includes {
            let path = folder.join(include.as_str());
            match (origin.open)(&path) {
                Ok(bytes) => {
                    let name = name.with_file_name(include.as_str()).display().to_string();
                    self.add_file(&path, &name, bytes, &inner);
                }
                Err(error) => {
                    let why = match error.kind() {
                        std::io::ErrorKind::NotFound => "there is no such file",
                        std::io::ErrorKind::PermissionDenied => "it may not be read",
                        _ => "it cannot be read",
                    };
                    self.diagnostics.push(catalogue::include_unreadable(
                        include.span(),
                        include.as_str(),
                        why,
                    ));
                }
            }
        }
    }

    fn add(&mut self, source: SourceId, origin: &Origin<'_>) -> Option<&Document> {
        let errors = self.diagnostics.error_count();
        let root = yaml::parse(&self.sources, source, &mut self.diagnostics)?;
        let intact = self.diagnostics.error_count() == errors;
        let mut document = Document::from_node(&root, &self.sources, &mut self.diagnostics)?;
        if !intact {
            document.mark_incomplete();
        }
        document.inherited_aliases.clone_from(&origin.aliases);
        self.documents.push(Loaded { document, parent: origin.parent });
        self.documents.last().map(|loaded| &loaded.document)
    }
}
