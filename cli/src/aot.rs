//! `opsmith aot`: custom kernels from the shell.
//!
//! In: a kernel and inputs, or a library. Out: outputs, or the library's functions. The work is done by `opsmith_aot`.

mod inputs;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use opsmith_aot::{AttrValue, Declaration, Interface, StringAbi, inspect};
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Backend, DType, Tensor};

use crate::Outcome;

/// Tries custom kernels and looks into their libraries
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Run(Run),
    Check(Check),
}

/// Calls a kernel and prints its outputs
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith aot run add_reduce.cc:CustomKernel --input x=ones:4x5 --input y=randn:4x5 --attr axis=1
      Compiles the file unless that was done before, infers the output with CustomKernelInferShape,
      calls the kernel and prints the output.
  opsmith aot run square.cc:Square --input x=arange:i32:10 --output y=i32:10
      Says what the output is, for a kernel that does not.
  opsmith aot run libmine.so:F --input x=@data.npy --check --sandbox
      Looks for writes outside of buffers and reads of what was never written, and survives a crash.
  opsmith aot run square.cu:Square --input x=arange:10 --output y=10
      Runs on a device: inputs are copied there, outputs back.

Inputs: ones:SHAPE, zeros:SHAPE, randn:SHAPE (the same numbers every time), arange:SHAPE, each with a
dtype before the shape if it is not f32 (ones:f64:4x5), or @FILE.npy. A shape is 4x5; () has no
dimensions.

Exit status: 0 if the kernel ran, 1 if it failed, 2 if the call makes no sense.")]
struct Run {
    /// The kernel: a source (.cc, .cpp, .cu) or a library, and the function
    #[arg(value_name = "FILE:FUNCTION")]
    kernel: String,
    /// An input, in order
    #[arg(long = "input", value_name = "NAME=VALUE")]
    inputs: Vec<String>,
    /// An attribute: a truth value, number, list in brackets, or text
    #[arg(long = "attr", value_name = "NAME=VALUE")]
    attributes: Vec<String>,
    /// An output: its dtype and shape, one or both, if the kernel has no functions that infer them. With
    /// no output named there is one, of the first input's dtype if nothing else says it
    #[arg(long = "output", value_name = "NAME[=[DTYPE:]SHAPE]")]
    outputs: Vec<String>,
    /// A flag for the compiler
    #[arg(long = "flag", value_name = "FLAG", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// Where the kernel runs, if its file does not say it: a source in .cu runs on a CUDA device, all else
    /// on the CPU
    #[arg(long, value_name = "BACKEND", value_parser = target)]
    target: Option<Backend>,
    /// Guards, poisons and compares buffers, in two calls
    #[arg(long)]
    check: bool,
    /// Runs the kernel in a process of its own
    #[arg(long)]
    sandbox: bool,
}

/// Lists the contents of a library, or of the library that a source compiles to: kernels, layout of strings, problems
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith aot check libmine.so
  opsmith aot check kernel.cu
      Compiles the file as a call of its kernels would, with nvcc of OPSMITH_NVCC, the path or CUDA_HOME.

Exit status: 0 without problems, 1 with some, 2 if it is no library for this processor or does not
compile.")]
struct Check {
    /// The library, or a source (.cc, .cpp, .cu)
    #[arg(value_name = "LIB")]
    library: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.command {
        Command::Run(arguments) => call(arguments),
        Command::Check(arguments) => check(arguments),
    }
}

fn call(arguments: &Run) -> Result<Outcome> {
    let mut tensors: Vec<Tensor> = Vec::new();
    let mut inputs = Vec::new();
    for text in &arguments.inputs {
        let (name, value) = pair("--input", text)?;
        tensors.push(inputs::parse(value).with_context(|| format!("--input {text}"))?);
        inputs.push(name);
    }
    let attributes = arguments.attributes.iter().map(|text| pair("--attr", text));
    let attributes = attributes.collect::<Result<Vec<(&str, &str)>>>()?;
    let outputs = Outputs::read(&arguments.outputs)?;
    let declaration = |dtypes| declaration(arguments, &inputs, &attributes, &outputs, dtypes);
    let mut out = io::stdout().lock();
    let start = Instant::now();
    let mut operator = declaration((!outputs.dtypes.is_empty()).then(|| outputs.dtypes.clone())).declare()?;
    let infers = if outputs.dtypes.is_empty() { operator.infers_dtypes() } else { Ok(true) };
    let compiled = operator.compile_time()?.is_some();
    let infers = match infers {
        Ok(infers) => infers,
        Err(error) => {
            writeln!(out, "{error}")?;
            return Ok(Outcome::Mistakes);
        }
    };
    if !infers {
        // A guess that is right for most kernels.
        let guess = tensors.first().map_or(DType::F32, Tensor::dtype);
        operator = declaration(Some(vec![guess; outputs.names.len()])).declare()?;
    }
    if let Err(error) = operator.load() {
        writeln!(out, "{error}")?;
        return Ok(Outcome::Mistakes);
    }
    let compiled = compiled || operator.compile_time()?.is_some();
    let loaded = start.elapsed();
    let start = Instant::now();
    let inputs: Vec<&Tensor> = tensors.iter().collect();
    match operator.call_several(&inputs) {
        Ok(results) => {
            let ran = start.elapsed();
            for (index, output) in results.iter().enumerate() {
                let name = outputs.names.get(index).copied().unwrap_or("output");
                writeln!(out, "{name}: {} {}\n{output}", output.dtype(), ShapeText(output.shape()))?;
            }
            let how = if compiled { "compiled and loaded" } else { "loaded" };
            eprintln!(
                "{how} in {:.1} ms, ran in {:.3} ms",
                loaded.as_secs_f64() * 1e3,
                ran.as_secs_f64() * 1e3
            );
            Ok(Outcome::Fine)
        }
        Err(error) => {
            writeln!(out, "{error}")?;
            Ok(Outcome::Mistakes)
        }
    }
}

/// The kernel with its given inputs, attributes and outputs, and with dtypes of outputs if known.
fn declaration(
    arguments: &Run,
    inputs: &[&str],
    attributes: &[(&str, &str)],
    outputs: &Outputs,
    dtypes: Option<Vec<DType>>,
) -> Declaration {
    let mut declaration = Declaration::new("kernel", &arguments.kernel).unlisted();
    declaration = inputs.iter().fold(declaration, |declaration, name| declaration.input(*name));
    for (name, value) in attributes {
        declaration = declaration.attribute(*name, AttrValue::parse(value));
    }
    declaration = outputs.names.iter().fold(declaration, |declaration, name| declaration.output(*name));
    if !outputs.shapes.is_empty() {
        declaration = declaration.output_shapes(outputs.shapes.clone());
    }
    declaration = dtypes.into_iter().fold(declaration, Declaration::output_dtypes);
    declaration = arguments.flags.iter().fold(declaration, Declaration::flag);
    declaration = arguments.target.into_iter().fold(declaration, Declaration::target);
    declaration = if arguments.check { declaration.check(true) } else { declaration };
    if arguments.sandbox { declaration.sandbox(true) } else { declaration }
}

/// A backend by its name, or by its key in a spec.
fn target(text: &str) -> Result<Backend, String> {
    let found = Backend::from_name(text).or_else(|| Backend::from_key(text));
    found.ok_or_else(|| format!("there are {}", Backend::ALL.map(Backend::name).join(" and ")))
}

/// The parsed `--output`.
struct Outputs<'a> {
    /// The names, at least one.
    names: Vec<&'a str>,
    /// Of each output, or empty.
    shapes: Vec<Vec<i64>>,
    dtypes: Vec<DType>,
}

impl Outputs<'_> {
    fn read(texts: &[String]) -> Result<Outputs<'_>> {
        let mut outputs = Outputs { names: Vec::new(), shapes: Vec::new(), dtypes: Vec::new() };
        for text in texts {
            let (name, value) =
                text.split_once('=').map_or((text.as_str(), None), |(name, value)| (name, Some(value)));
            outputs.names.push(name);
            let Some(value) = value else { continue };
            let (dtype, shape) =
                inputs::dtype_and_shape(value).with_context(|| format!("--output {text}"))?;
            outputs.dtypes.extend(dtype);
            outputs.shapes.extend(shape);
        }
        if outputs.names.is_empty() {
            outputs.names.push("output");
        }
        let some = |count: usize| ![0, outputs.names.len()].contains(&count);
        if some(outputs.shapes.len()) || some(outputs.dtypes.len()) {
            bail!("give the shape of every --output or of none, and so the dtypes");
        }
        Ok(outputs)
    }
}

/// The name and the value of `NAME=VALUE`.
pub(crate) fn pair<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str)> {
    text.split_once('=').with_context(|| format!("{option} {text}: write NAME=VALUE"))
}

fn check(arguments: &Check) -> Result<Outcome> {
    let inspection = inspect(&arguments.library)?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}", arguments.library.display())?;
    if std::fs::canonicalize(&arguments.library).is_ok_and(|path| path != inspection.library) {
        writeln!(out, "compiled to {}", inspection.library.display())?;
    }
    let strings = match inspection.strings {
        Some(StringAbi::Old) => "old (_GLIBCXX_USE_CXX11_ABI=0)",
        Some(StringAbi::New) => "new (_GLIBCXX_USE_CXX11_ABI=1)",
        None => "it uses none",
    };
    writeln!(out, "layout of std::string: {strings}")?;
    if inspection.interface == Some(Interface::DualAbi) {
        writeln!(out, "interface: AotExtraDualABI (custom_aot_extra_dual_abi.h)")?;
    }
    for kernel in &inspection.kernels {
        let beside =
            [(kernel.init, "Init"), (kernel.infer_shape, "InferShape"), (kernel.infer_type, "InferType")];
        let beside: Vec<&str> =
            beside.into_iter().filter_map(|(there, name)| there.then_some(name)).collect();
        let beside = if beside.is_empty() { String::new() } else { format!(" (with {})", beside.join(", ")) };
        writeln!(out, "kernel {}{beside}", kernel.name)?;
        for line in kernel.signature.iter().flat_map(|signature| signature.lines()) {
            writeln!(out, "  made for {line}")?;
        }
    }
    for problem in &inspection.problems {
        writeln!(out, "problem: {problem}")?;
    }
    Ok(if inspection.problems.is_empty() { Outcome::Fine } else { Outcome::Mistakes })
}
