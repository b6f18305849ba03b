//! The texts that an editor has open, saved or not.
//!
//! In: notifications of opened, changed and closed texts. Out: their text now. A file that is not open is read from the
//! disk.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gen_lsp_types::{TextDocumentContentChangeEvent as Change, Uri};

use super::paths::identity;
use super::position::{Encoding, Lines};

/// An open text.
#[derive(Clone)]
pub struct OpenText {
    /// The editor's name of it.
    pub uri: Uri,
    /// The editor's number of its state.
    pub version: i32,
    /// The text.
    pub text: Arc<String>,
}

/// The open texts, by the identity of their files.
#[derive(Clone, Default)]
pub struct Documents {
    texts: HashMap<PathBuf, OpenText>,
}

impl Documents {
    /// Adds a text.
    pub fn open(&mut self, path: &Path, uri: Uri, version: i32, text: String) {
        self.texts.insert(identity(path), OpenText { uri, version, text: Arc::new(text) });
    }

    /// Changes a text in parts, in their order; `false` if it is not open.
    pub fn change(&mut self, path: &Path, version: i32, changes: Vec<Change>, encoding: Encoding) -> bool {
        let Some(open) = self.texts.get_mut(&identity(path)) else { return false };
        open.version = version;
        let text = Arc::make_mut(&mut open.text);
        for change in changes {
            match change {
                Change::TextDocumentContentChangePartial(part) => {
                    let bytes = Lines::new(text, encoding).bytes(part.range);
                    text.replace_range(bytes, &part.text);
                }
                Change::TextDocumentContentChangeWholeDocument(whole) => *text = whole.text,
            }
        }
        true
    }

    /// Forgets a text.
    pub fn close(&mut self, path: &Path) {
        self.texts.remove(&identity(path));
    }

    /// An open text.
    pub fn get(&self, path: &Path) -> Option<&OpenText> {
        self.texts.get(&identity(path))
    }

    /// The files of all open texts.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.texts.keys().map(PathBuf::as_path)
    }

    /// The bytes of a file as the editor has it, or those of the disk.
    ///
    /// # Errors
    /// If it is not open and cannot be read.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.get(path) {
            Some(open) => Ok(open.text.as_bytes().to_vec()),
            None => std::fs::read(path),
        }
    }
}
