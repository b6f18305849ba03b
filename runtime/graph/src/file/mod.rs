//! Graphs as files: JSON for structure, safetensors for constants.
//!
//! In: a graph. Out: a folder with `graph.json` and `constants.safetensors`; and back. `format` defines the JSON,
//! `save` and `load` convert, `changes` compares operators with those of this program. Loaded data is not trusted:
//! `structure` checks it once, `verify` at each bind to sizes.

mod argument;
mod changes;
mod format;
mod load;
mod save;
mod structure;

use std::io::Write as _;
use std::path::Path;

use opsmith_runtime::error::{Error, ErrorKind, Result};
use opsmith_runtime::internals::replace;

use crate::ir::Graph;

const STRUCTURE: &str = "graph.json";
const CONSTANTS: &str = "constants.safetensors";

impl Graph {
    /// Writes the graph into a folder, which is made if it does not exist.
    ///
    /// Constants are written with their present elements. Calls keep their sites, as text.
    ///
    /// # Errors
    /// If a file cannot be written, or the graph uses a random generator other than the default one, or an operator
    /// declared at run time.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let folder = folder.as_ref();
        let (structure, constants) = save::texts(self)?;
        std::fs::create_dir_all(folder).map_err(|error| io(folder, &error))?;
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            replace(&path, |file| file.write_all(bytes)).map_err(|error: std::io::Error| io(&path, &error))
        };
        // The structure has a digest of the constants, so a mismatched pair is detected.
        write(CONSTANTS, &constants)?;
        write(STRUCTURE, structure.as_bytes())
    }

    /// Reads a graph from a folder that [`Graph::save`] wrote.
    ///
    /// # Errors
    /// If a file cannot be read or does not have the format; if an operator has changed since the graph was saved, with
    /// all changes; and if the graph breaks a rule of an operator.
    pub fn load(folder: impl AsRef<Path>) -> Result<Graph> {
        /// More than the structure of a million nodes.
        const LARGEST: u64 = 1 << 30;
        let folder = folder.as_ref();
        let read = |name: &str| {
            let path = folder.join(name);
            let size = std::fs::metadata(&path).map_err(|error| io(&path, &error))?.len();
            if name == STRUCTURE && size > LARGEST {
                return Err(Error::graph(format!(
                    "{} has {size} bytes, at most {LARGEST} are read",
                    path.display()
                )));
            }
            std::fs::read(&path).map_err(|error| io(&path, &error))
        };
        load::graph(&read(STRUCTURE)?, &read(CONSTANTS)?)
            .map_err(|error| error.with_note(format!("in the graph that was saved in {}", folder.display())))
    }
}

fn io(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{}: {error}", path.display()))
        .with_help("`Graph::save` writes a folder, and `Graph::load` reads one")
}
