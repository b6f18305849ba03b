//! Loading of programs, and of other weights for them.
//!
//! In: files, or bytes. Out: programs, and on the way the numbers of weights that are done and of all.

use std::path::Path;
use std::sync::Mutex;

use opsmith_onnx::OnnxModel;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};

use super::Program;
use crate::archive::Archive;
use crate::checkpoint::Checkpoint;
use crate::dead;
use crate::errors::ProgramErrors;
use crate::inputs::{self, ProgramInput};
use crate::lower;
use crate::models::{self, Member};
use crate::ranges;
use crate::schema;
use crate::source::{self, Source};
use crate::weights;

impl Program {
    /// Reads the program in a `.pt2` file, with its weights, or the model in an ONNX file, with the files beside it. The
    /// content tells one from the other, not the name.
    ///
    /// # Errors
    /// If the file cannot be read, is no such archive or model, has several models, a schema or operators of another version,
    /// or is damaged. Mistakes of single weights and nodes are those of [`Program::check`].
    pub fn load(path: impl AsRef<Path>) -> Result<Program> {
        Program::load_with(path, None, &mut |_, _| {})
    }

    /// Reads one of the models in an archive that `torch.export.pt2_archive` packed, by its name.
    ///
    /// # Errors
    /// As [`Program::load`], and if the archive has no such model; the error lists those that it has.
    pub fn load_model(path: impl AsRef<Path>, name: &str) -> Result<Program> {
        Program::load_with(path, Some(name), &mut |_, _| {})
    }

    /// Reads a program as [`Program::load`], or as [`Program::load_model`] if a name is given, and reports its progress: the
    /// function gets the numbers of weights that are done and of all, after each one. An ONNX model reports none, since its
    /// files are mapped into memory.
    ///
    /// # Errors
    /// As [`Program::load`] and [`Program::load_model`].
    pub fn load_with(
        path: impl AsRef<Path>,
        model: Option<&str>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Program> {
        let path = path.as_ref();
        match (source::is_model(path), model) {
            (true, None) => Ok(Program::of_model(OnnxModel::load(path)?)),
            (true, Some(_)) => {
                Err(Error::io("an ONNX model has no models by name").with_help("load it without a name"))
            }
            (false, model) => Program::of(Archive::open(path)?, model, progress),
        }
    }

    /// Reads the program in the bytes of a `.pt2` file, or the model in those of an ONNX file without files beside it.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Program> {
        let bytes = bytes.into();
        match OnnxModel::is_model(&bytes) {
            true => Ok(Program::of_model(OnnxModel::from_bytes(bytes)?)),
            false => Program::of(Archive::from_bytes(bytes)?, None, &mut |_, _| {}),
        }
    }

    fn of_model(model: OnnxModel) -> Program {
        let inputs = model.inputs().iter().map(ProgramInput::of_spec).collect();
        Program::new(Source::Onnx(model), inputs, None, Vec::new())
    }

    fn new(
        source: Source,
        inputs: Vec<ProgramInput>,
        wide: Option<Vec<ProgramInput>>,
        mistakes: Vec<Error>,
    ) -> Program {
        let wide = wide.unwrap_or_else(|| inputs.clone());
        Program { source, inputs, wide, mistakes, built: Mutex::default(), checked: Mutex::default() }
    }

    fn of(
        mut archive: Archive,
        wanted: Option<&str>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Program> {
        let Member { name, member } = models::member(&mut archive, wanted)?;
        let text = archive.text(&member)?;
        let mut model = lower::program(&member, schema::program(&member, &text)?)?;
        let is_read = dead::remove(&mut model);
        let found = weights::read(&mut archive, &name, &mut model, &is_read, progress);
        let (mut inputs, mut mistakes) = inputs::of(&model);
        let wide = inputs.clone();
        ranges::narrow(&mut inputs, &model.guards, &|symbol| model.examples.get(symbol).copied());
        mistakes.extend(found.mistakes);
        let source = Source::Exported { model, weights: found.of_inputs, device: Device::CPU };
        Ok(Program::new(source, inputs, Some(wide), mistakes))
    }

    /// Gives the program other weights, by their names: those of a safetensors file, of the files of an index,
    /// `model.safetensors.index.json`, or of a NumPy archive (`.npz`). Safetensors files are mapped into memory: their pages are
    /// read when they are needed, and shared between processes. Elements of another dtype are converted. Of tied parameters,
    /// one name is enough. Constants, and buffers that are not persistent, stay if the files lack them, as state dicts do.
    ///
    /// # Errors
    /// Every mistake: files that cannot be read, parameters and persistent buffers that they lack, names that the program does
    /// not have, other shapes, and names of one tensor with elements that differ. Then the program keeps all of its weights.
    pub fn load_weights(&mut self, path: impl AsRef<Path>) -> Result<(), ProgramErrors> {
        self.load_weights_with(path, &mut |_, _| {})
    }

    /// Gives the program other weights, as [`Program::load_weights`], and reports its progress: the function gets the numbers of
    /// tensors that are done and of all, after each one. Tied parameters are one tensor.
    ///
    /// ```no_run
    /// # use opsmith_programs::Program;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut program = Program::load("model.pt2")?;
    /// program.load_weights_with("model.npz", &mut |done, of| println!("{done} of {of}"))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Program::load_weights`].
    pub fn load_weights_with(
        &mut self,
        path: impl AsRef<Path>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(), ProgramErrors> {
        let only = |error: Error| ProgramErrors::of(vec![error]).expect_err("there is a mistake");
        let mut checkpoint = Checkpoint::open(path.as_ref()).map_err(only)?;
        self.source.replace_weights(&mut checkpoint, progress)?;
        self.forget();
        Ok(())
    }
}
