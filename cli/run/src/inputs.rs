//! Inputs from the command line: `NAME=@FILE`.
//!
//! In: texts. Out: a tensor for each input of the program, in its order, on its device.

use anyhow::{Context, Result, bail};
use opsmith::{DType, Tensor, TensorOps as _};
use opsmith_nn::npz::NpzArchive;
use opsmith_programs::Program;

use crate::report;

/// The inputs of a program, by name or position.
pub fn read(program: &Program, given: &[String]) -> Result<Vec<Tensor>> {
    let taken = program.inputs();
    let mut inputs: Vec<Option<Tensor>> = vec![None; taken.len()];
    for text in given {
        let Some((name, file)) = text.split_once("=@") else {
            bail!("{text:?} is no input: write NAME=@FILE, such as `x=@x.npy`");
        };
        let by_position = || name.parse().ok().filter(|position| *position < taken.len());
        let position = taken.iter().position(|input| input.name == name).or_else(by_position);
        let Some(position) = position else {
            bail!("the program has no input {name:?}; it takes\n{}", report::inputs(program));
        };
        if inputs[position].is_some() {
            bail!("the input {name:?} is given twice");
        }
        let input = array(file).with_context(|| format!("the input {name:?}"))?;
        // NumPy has no `bfloat16`: its files have `float32` for it.
        let is_widened = taken[position].dtype == DType::BF16 && input.dtype() == DType::F32;
        let input = if is_widened { input.to_dtype(DType::BF16)? } else { input };
        inputs[position] = Some(input.to_device(program.device())?);
    }
    let missing = taken.iter().zip(&inputs).find(|(_, input)| input.is_none());
    if let Some((input, _)) = missing {
        bail!("the input `{}` is missing; the program takes\n{}", input.name, report::inputs(program));
    }
    Ok(inputs.into_iter().flatten().collect())
}

/// The array of a `.npy` file, or of a `.npz` file and a name in it.
fn array(text: &str) -> Result<Tensor> {
    match text.rsplit_once(".npz:") {
        Some((file, name)) => Ok(NpzArchive::open(format!("{file}.npz"))?.read(name)?),
        None => Ok(Tensor::load_npy(text)?),
    }
}
