//! The specs that are open, each with its last check.
//!
//! In: changes of files. Out: checks. The checker runs after each change and keeps the parts that did not change; the code that a spec
//! names is looked up in a thread, once the editor rests, because that reads whole crates.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use opsmith_codegen::Config;
use opsmith_codegen::diagnostics::Diagnostic;
use opsmith_codegen::pipeline::{self, Checked, Failure, Kept};
use opsmith_tools::editor::EditedSpec;
use opsmith_tools::rust_code;

use super::documents::Documents;
use super::guarded;
use super::paths::identity;
use super::roots::root_of;
use super::transport::ServerEvent;
use crate::project::BuildsOn;

/// All open specs, by their first file.
#[derive(Default)]
pub struct Specs {
    specs: BTreeMap<PathBuf, Spec>,
    /// The spec of each open text.
    owners: HashMap<PathBuf, PathBuf>,
}

/// One spec.
pub struct Spec {
    config: Config,
    kept: Kept,
    checked: Option<Checked>,
    /// The last check in which every file was YAML, if that is not `checked`.
    last_whole: Option<Checked>,
    /// An earlier check, whose memory is freed when the editor rests: that takes milliseconds.
    stale: Option<Checked>,
    /// The number of checks so far.
    generation: u64,
    is_dirty: bool,
    /// Whether the code has not been looked up since the last change.
    needs_code: bool,
    /// The files that have diagnostics in the editor.
    pub published: BTreeSet<PathBuf>,
}

/// The mistakes in the code that a spec names.
pub struct CodeFindings {
    /// The spec.
    root: PathBuf,
    /// The check that they belong to.
    generation: u64,
    /// The files of that check with the lengths of their texts: spans are right only in the same.
    files: Vec<(String, usize)>,
    diagnostics: Vec<Diagnostic>,
}

impl Specs {
    /// Finds the specs of all open texts, and forgets those without one. Returns messages for the user.
    pub fn assign(&mut self, documents: &Documents, builds_on: &BuildsOn) -> Vec<String> {
        let mut messages = Vec::new();
        let paths: Vec<&Path> = documents.paths().collect();
        let owner = |path: &&Path| Some((path.to_path_buf(), root_of(documents, path)?));
        self.owners = paths.iter().filter_map(owner).collect();
        for root in self.owners.values() {
            if !self.specs.contains_key(root) {
                let (config, message) = configuration(builds_on, root);
                messages.extend(message);
                self.specs.insert(root.clone(), Spec::new(config));
            }
        }
        messages
    }

    /// The specs without an open text, which are forgotten.
    pub fn take_unused(&mut self) -> Vec<Spec> {
        let unused: Vec<PathBuf> = self
            .specs
            .keys()
            .filter(|root| !self.owners.values().any(|owner| owner == *root))
            .cloned()
            .collect();
        unused.iter().filter_map(|root| self.specs.remove(root)).collect()
    }

    /// Forgets all checks and configurations, because a manifest changed.
    pub fn take_all(&mut self) -> Vec<Spec> {
        std::mem::take(&mut self.specs).into_values().collect()
    }

    /// Marks the specs that read a file, or of which that is unknown, for the next check.
    pub fn changed(&mut self, path: &Path) {
        let path = identity(path);
        let owner = self.owners.get(&path).cloned();
        for (root, spec) in &mut self.specs {
            let reads = spec.checked.as_ref().is_none_or(|checked| {
                !checked.unparsed.is_empty() || checked.files.iter().any(|file| identity(file) == path)
            });
            if reads || owner.as_ref() == Some(root) {
                spec.is_dirty = true;
            }
        }
    }

    /// Marks all specs.
    pub fn all_changed(&mut self) {
        self.specs.values_mut().for_each(|spec| spec.is_dirty = true);
    }

    /// Checks the specs that changed. Returns their names, and messages for the user.
    pub fn check(&mut self, documents: &Documents) -> (Vec<PathBuf>, Vec<String>) {
        let (mut checked, mut messages) = (Vec::new(), Vec::new());
        for (root, spec) in self.specs.iter_mut().filter(|(_, spec)| spec.is_dirty) {
            match spec.check(documents) {
                Ok(()) => checked.push(root.clone()),
                Err(message) => messages.push(message),
            }
        }
        (checked, messages)
    }

    /// Frees memory that is of no more use.
    pub fn rest(&mut self) {
        self.specs.values_mut().for_each(|spec| spec.stale = None);
    }

    /// Whether the code of a spec has to be looked up.
    pub fn need_code(&self) -> bool {
        self.specs.values().any(|spec| spec.needs_code)
    }

    /// Looks up the code of the specs that changed, each in a thread.
    pub fn look_up_code(&mut self, documents: &Documents, events: &Sender<ServerEvent>) {
        for (root, spec) in self.specs.iter_mut().filter(|(_, spec)| spec.needs_code) {
            spec.needs_code = false;
            let (root, config, generation) = (root.clone(), spec.config.clone(), spec.generation);
            let (documents, events) = (documents.clone(), events.clone());
            std::thread::spawn(move || {
                let find = || code_findings(&root, &config, generation, &documents);
                if let Some(Some(found)) = guarded(find) {
                    // The loop has ended if nothing receives.
                    _ = events.send(ServerEvent::Code(found));
                }
            });
        }
    }

    /// Adds the mistakes of code to the check that they belong to; returns its spec, if that has not changed since.
    pub fn add_code(&mut self, found: CodeFindings) -> Option<PathBuf> {
        let spec = self.specs.get_mut(&found.root)?;
        let checked = spec.checked.as_mut().filter(|_| spec.generation == found.generation)?;
        if files(checked) != found.files || found.diagnostics.is_empty() {
            return None;
        }
        checked.diagnostics.extend(found.diagnostics);
        Some(found.root)
    }

    /// The spec of a file.
    pub fn of(&self, path: &Path) -> Option<&Spec> {
        self.specs.get(self.owners.get(&identity(path))?)
    }

    /// A spec by its first file.
    pub fn get_mut(&mut self, root: &Path) -> Option<&mut Spec> {
        self.specs.get_mut(root)
    }

    /// All specs.
    pub fn all(&self) -> impl Iterator<Item = (&Path, &Spec)> {
        self.specs.iter().map(|(root, spec)| (root.as_path(), spec))
    }

    /// Whether another spec has a file as its own, rather than as that of a library it builds on.
    pub fn is_of_another(&self, root: &Path, file: &Path) -> bool {
        let has = |spec: &Spec| spec.own_files().iter().any(|own| identity(own) == identity(file));
        self.specs.iter().any(|(other, spec)| other != root && has(spec))
    }
}

impl Spec {
    fn new(config: Config) -> Spec {
        Spec {
            config,
            kept: Kept::default(),
            checked: None,
            last_whole: None,
            stale: None,
            generation: 0,
            is_dirty: true,
            needs_code: true,
            published: BTreeSet::new(),
        }
    }

    fn check(&mut self, documents: &Documents) -> Result<(), String> {
        self.is_dirty = false;
        let run = || pipeline::check_again(&self.config, &|path| documents.read(path), &mut self.kept);
        let found = match guarded(run) {
            Some(Ok(found)) => found,
            Some(Err(failure)) => return Err(unreadable(&failure)),
            None => {
                // The parts that were kept may be half of a check.
                self.kept = Kept::default();
                return Err("the checker has a defect; please report it with its output".to_owned());
            }
        };
        self.generation += 1;
        self.needs_code = found.unparsed.is_empty();
        let last = self.checked.replace(found);
        let was_whole = last.as_ref().is_some_and(|last| last.unparsed.is_empty());
        self.stale = match (self.needs_code, was_whole) {
            (true, _) => {
                self.last_whole = None;
                last
            }
            (false, true) => std::mem::replace(&mut self.last_whole, last),
            (false, false) => last,
        };
        Ok(())
    }

    /// The last check.
    pub fn checked(&self) -> Option<&Checked> {
        self.checked.as_ref()
    }

    /// The spec for the features of an editor; `None` before the first check.
    pub fn edited(&self) -> Option<EditedSpec<'_>> {
        let checked = self.checked.as_ref()?;
        let known = self.last_whole.as_ref().unwrap_or(checked);
        Some(EditedSpec { checked, known, config: &self.config })
    }

    /// The files of the spec itself; those of libraries that it builds on come before them.
    fn own_files(&self) -> &[PathBuf] {
        let files = self.checked.as_ref().map_or(&[][..], |checked| &checked.files);
        let first = files.iter().position(|file| *file == self.config.spec).unwrap_or(0);
        &files[first..]
    }
}

/// The configuration of a spec. Without one of its crate, formulas may call the spec's own operators alone.
fn configuration(builds_on: &BuildsOn, root: &Path) -> (Config, Option<String>) {
    let (mut config, message) = match builds_on.config(root) {
        Ok(config) => (config, None),
        Err(error) => {
            let message = format!("{}: {error:#}; only its own operators are known", root.display());
            (Config::new(root), Some(message))
        }
    };
    // Places in documentation are relative to the spec's folder.
    if let Some(name) = root.file_name() {
        config.spec_name = name.to_string_lossy().into_owned();
    }
    (config, message)
}

fn unreadable(failure: &Failure) -> String {
    format!("the spec cannot be checked: {failure}")
}

fn code_findings(
    root: &Path,
    config: &Config,
    generation: u64,
    documents: &Documents,
) -> Option<CodeFindings> {
    let open = |path: &Path| documents.read(path);
    let mut checked = pipeline::check_again(config, &open, &mut Kept::default()).ok()?;
    if !checked.unparsed.is_empty() {
        return None;
    }
    let known = checked.diagnostics.len();
    pipeline::check_kernel_files(&mut checked, config);
    rust_code::check(&mut checked, config);
    let files = files(&checked);
    let diagnostics = checked.diagnostics.into_iter().skip(known).collect();
    Some(CodeFindings { root: root.to_owned(), generation, files, diagnostics })
}

/// The files of a check with the lengths of their texts.
fn files(checked: &Checked) -> Vec<(String, usize)> {
    checked.sources.files().map(|(_, file)| (file.path().to_owned(), file.text().len())).collect()
}
