//! Reading: the specs of a configuration and the files that they include, to entries.
//!
//! In: a [`Config`] and files. Out: documents in the order of reading, parents first; text that cannot be parsed is a
//! diagnostic. Must not know the meaning of entries.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Config;
use crate::diagnostics::{Diagnostic, Diagnostics, SourceId, SourceMap, catalogue};
use crate::spec::document::{Document, Loaded, OfArguments, Text};
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

/// The context of a file.
struct Origin<'a> {
    /// The library that it belongs to.
    parent: Option<usize>,
    /// The facts of arguments of the file that includes it.
    of_arguments: OfArguments,
    /// The source of it and of its includes.
    open: Open<'a>,
    /// The cargo features of the library that are on; all of them if absent.
    features: Option<&'a [String]>,
}

impl<'a> Origin<'a> {
    fn first(parent: Option<usize>, open: Open<'a>) -> Origin<'a> {
        Origin { parent, of_arguments: OfArguments::default(), open, features: None }
    }

    /// The same, for a build with these features.
    fn with_features(self, features: &'a Option<Vec<String>>) -> Origin<'a> {
        Origin { features: features.as_deref(), ..self }
    }

    /// Whether a file that a document includes is left out: it has features there, and none is on.
    fn leaves_out(&self, document: &Document, file: &str) -> bool {
        let Some(on) = self.features else { return false };
        let with_it =
            || document.features.iter().filter(|(_, files)| files.iter().any(|known| known.as_str() == file));
        with_it().next().is_some()
            && !with_it().any(|(feature, _)| on.contains(&feature_variable(&feature.text)))
    }
}

/// The name of a feature as cargo has it in the variables of a build script: `FFT` of `CARGO_FEATURE_FFT`.
pub fn feature_variable(feature: &str) -> String {
    feature.to_uppercase().replace('-', "_")
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
    /// The files that have text and are not YAML, so that nothing is known of their entries.
    pub unparsed: Vec<SourceId>,
    /// The cargo features of the library itself, each with a file that needs it.
    pub features: Vec<(String, String)>,
    /// The files of all libraries that are not read, since their features are off, each with these.
    pub left_out: Vec<(String, Vec<String>)>,
    /// The files of an earlier run.
    pub parsed: Parsed,
    /// The same files, by canonical path.
    known: HashSet<PathBuf>,
}

/// Files as they were parsed in an earlier run: a text that did not change is not parsed again.
#[derive(Default)]
pub struct Parsed {
    files: HashMap<SourceId, ParsedFile>,
}

/// One of them. Its spans have the number of its source, so it serves as the same source only.
struct ParsedFile {
    name: String,
    text: String,
    document: Option<Arc<Document>>,
    diagnostics: Vec<Diagnostic>,
}

impl Reader {
    /// A reader that need not parse these files again.
    pub fn with_parsed(parsed: Parsed) -> Reader {
        Reader { parsed, ..Reader::default() }
    }

    /// Reads the specs of the parent libraries.
    ///
    /// # Errors
    /// If one cannot be read; included files that cannot be read are diagnostics.
    pub fn read_parents(&mut self, config: &Config) -> Result<(), Unreadable> {
        self.read_parents_from(config, DISK)
    }

    /// Reads the specs of the parent libraries from another source.
    ///
    /// # Errors
    /// As [`read_parents`](Reader::read_parents).
    pub fn read_parents_from(&mut self, config: &Config, open: Open<'_>) -> Result<(), Unreadable> {
        for (number, parent) in config.parents.iter().enumerate() {
            let origin = Origin::first(Some(number), open).with_features(&parent.features);
            self.read(&parent.spec, &parent.spec.display().to_string(), &origin)?;
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
        self.read(&config.spec, &config.spec_name, &Origin::first(None, open).with_features(&config.features))
    }

    /// Reads some files of the spec, named as entries' places name them, without the files that they include; those that a
    /// file before them leaves out by its features are not read.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read_files(&mut self, config: &Config, files: &[String]) -> Result<(), Unreadable> {
        let folder = config.spec.parent().unwrap_or(Path::new(""));
        let origin = Origin::first(None, DISK).with_features(&config.features);
        for name in files {
            if self.documents.iter().any(|loaded| origin.leaves_out(&loaded.document, name)) {
                continue;
            }
            let path = folder.join(name);
            let bytes = DISK(&path).map_err(|error| Unreadable { path: path.clone(), error })?;
            if self.is_new(&path) {
                let source = encoding::add(&mut self.sources, name, bytes, &mut self.diagnostics);
                self.add(source, &origin);
            }
        }
        Ok(())
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
        let inner = Origin { of_arguments: document.of_arguments.before(&origin.of_arguments), ..*origin };
        let folder = path.parent().unwrap_or(Path::new(""));
        let name = PathBuf::from(self.sources.file(source).path());
        for (feature, files) in &document.features {
            let is_included =
                |file: &&Text| document.include.iter().any(|known| known.as_str() == file.as_str());
            for file in files.iter().filter(|file| !is_included(file)) {
                self.diagnostics.push(catalogue::feature_of_no_file(
                    file.span(),
                    file.as_str(),
                    &feature.text,
                ));
            }
        }
        for include in &document.include {
            if origin.leaves_out(&document, include.as_str()) {
                let has = |(_, files): &&(Key, Vec<Text>)| {
                    files.iter().any(|file| file.as_str() == include.as_str())
                };
                let features = document.features.iter().filter(has).map(|(feature, _)| feature.text.clone());
                self.left_out.push((include.as_str().to_owned(), features.collect()));
                continue;
            }
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

    fn add(&mut self, source: SourceId, origin: &Origin<'_>) -> Option<Arc<Document>> {
        let file = self.sources.file(source);
        let known = self.parsed.files.get(&source);
        let document = match known.filter(|known| known.name == file.path() && known.text == file.text()) {
            Some(known) => {
                self.diagnostics.extend(known.diagnostics.iter().cloned());
                known.document.clone()
            }
            None => self.parse(source),
        };
        if document.is_none() && !self.sources.text(source).trim().is_empty() {
            self.unparsed.push(source);
        }
        let document = document?;
        if origin.parent.is_none() {
            let each = document.features.iter();
            let each = each.flat_map(|(feature, files)| files.iter().map(move |file| (feature, file)));
            self.features
                .extend(each.map(|(feature, file)| (feature.text.clone(), file.as_str().to_owned())));
        }
        self.documents.push(Loaded {
            document: document.clone(),
            parent: origin.parent,
            inherited: origin.of_arguments.clone(),
        });
        Some(document)
    }

    /// Parses a file, and keeps the result for a later run.
    fn parse(&mut self, source: SourceId) -> Option<Arc<Document>> {
        let mut diagnostics = Diagnostics::new();
        let document = yaml::parse(&self.sources, source, &mut diagnostics).and_then(|root| {
            let intact = !diagnostics.has_errors();
            let mut document = Document::from_node(&root, &self.sources, &mut diagnostics)?;
            if !intact {
                document.mark_incomplete();
            }
            Some(Arc::new(document))
        });
        let diagnostics: Vec<Diagnostic> = diagnostics.into_iter().collect();
        self.diagnostics.extend(diagnostics.iter().cloned());
        let file = self.sources.file(source);
        let (name, text) = (file.path().to_owned(), file.text().to_owned());
        self.parsed.files.insert(source, ParsedFile { name, text, document: document.clone(), diagnostics });
        document
    }
}
