//! The `opsmith-run` command: checks, describes and runs programs that `torch.export.save` wrote, and ONNX models.
//!
//! In: a `.pt2` or `.onnx` file, and inputs as NumPy files. Out: text on the terminal, results as a NumPy archive, and an exit
//! status: 0 on success, 1 if the program has mistakes or its results differ, 2 if the command failed. The work is done
//! by `opsmith_programs`; this crate reads arguments and files, and prints.

mod inputs;
mod progress;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
// Makes the devices of CUDA known to programs.
use opsmith_cuda as _;

use opsmith::{DType, Device, Tensor, TensorOps as _};
use opsmith_nn::npz;
use opsmith_programs::Program;

/// Checks, describes and runs exported programs and ONNX models.
#[derive(Parser)]
#[command(
    name = "opsmith-run",
    version,
    after_help = "Examples:\n  opsmith-run model.pt2 --shapes\n  opsmith-run model.pt2 --input x=@x.npy --outputs \
                  results.npz\n  opsmith-run model.pt2 --input 0=@case.npz:x --compare expected.npz\n  opsmith-run \
                  model.pt2 --describe --at s77=64 --html model.html\n  opsmith-run model.pt2 --input x=@x.npy --profile \
                  model.html"
)]
struct Arguments {
    /// The file that `torch.export.save` wrote, or an ONNX model.
    program: PathBuf,
    /// An input by its name or position: `ids=@ids.npy`, `0=@ids.npy`, or an array of an archive, `ids=@case.npz:ids`.
    #[arg(long, value_name = "NAME=@FILE")]
    input: Vec<String>,
    /// The name of one of several models in the file.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Other weights, by their names: a safetensors file, the index of several, `model.safetensors.index.json`, or a NumPy
    /// archive.
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// The device of the run: `cpu`, `cuda`, `cuda:1`.
    #[arg(long, value_name = "DEVICE", default_value = "cpu", value_parser = device)]
    device: Device,
    /// Writes the results to a NumPy archive, under the names `out0`, `out1` and so on; bfloat16 as float32.
    #[arg(long, value_name = "FILE")]
    outputs: Option<PathBuf>,
    /// Compares the results with those of a NumPy archive: floats within 1e-4 of the largest one, at least of 1 (float16
    /// 0.4 %, bfloat16 3 %, of which the archive has float32), others exactly.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Prints the inputs and the outputs with their dtypes and shapes.
    #[arg(long)]
    shapes: bool,
    /// Finds all mistakes of the program, without running it.
    #[arg(long)]
    check: bool,
    /// Prints a line for each tensor of the program's graph, and the memory of a run.
    #[arg(long)]
    describe: bool,
    /// With `--describe`, the size of a symbol, for the memory of a run.
    #[arg(long, value_name = "SYMBOL=SIZE", requires = "describe")]
    at: Vec<String>,
    /// With `--describe`, writes the graph as a page to open in a browser.
    #[arg(long, value_name = "FILE", requires = "describe")]
    html: Option<PathBuf>,
    /// Runs the program this many times after a first run, and prints the times.
    #[arg(long, value_name = "RUNS")]
    bench: Option<usize>,
    /// Profiles a run after a first run, prints a table of its operators, and writes the profile for `opsmith profile`, or as
    /// a page to open in a browser if the file ends in `.html`.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
}

fn main() -> ExitCode {
    // A reader that has seen enough, such as `head`, ends the command.
    sigpipe::reset();
    match run(&Arguments::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The device of a name.
fn device(name: &str) -> Result<Device, String> {
    Device::from_name(name).ok_or_else(|| "write `cpu`, `cuda` or, for one of several, `cuda:1`".to_owned())
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let name = arguments.program.display();
    let program = progress::shown(&arguments.program, |progress| {
        Program::load_with(&arguments.program, arguments.model.as_deref(), progress)
    });
    let mut program = program.with_context(|| format!("{name} cannot be loaded"))?;
    if let Some(weights) = &arguments.weights {
        progress::shown(weights, |progress| program.load_weights_with(weights, progress))
            .with_context(|| format!("{} cannot be loaded", weights.display()))?;
    }
    program
        .move_to(arguments.device)
        .with_context(|| format!("{name} cannot be moved to {}", arguments.device))?;
    if arguments.check {
        return Ok(report::check(&program));
    }
    // A program without a graph runs, and has no table of its nodes.
    let mistakes = match arguments.shapes || arguments.describe {
        true => program.graph().map(drop),
        false => program.has_graph().map(drop),
    };
    if let Err(errors) = mistakes {
        eprintln!("{errors}");
        return Ok(ExitCode::FAILURE);
    }
    if arguments.shapes {
        print!("{}", report::shapes(&program, &*program.graph()?));
    }
    if arguments.describe {
        let graph = program.graph()?;
        print!("{}", report::describe(&graph, &arguments.at)?);
        if let Some(page) = &arguments.html {
            std::fs::write(page, graph.to_html())
                .with_context(|| format!("cannot write {}", page.display()))?;
        }
    }
    if arguments.input.is_empty() && !program.inputs().is_empty() {
        let runs = arguments.outputs.is_some()
            || arguments.compare.is_some()
            || arguments.bench.is_some()
            || arguments.profile.is_some();
        if runs || !(arguments.shapes || arguments.describe) {
            bail!("no input is given; the program takes\n{}", report::inputs(&program));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let inputs = inputs::read(&program, &arguments.input)?;
    let outputs = program.run(&inputs).with_context(|| format!("{name} failed"))?;
    results(arguments, &program, &inputs, &outputs)
}

/// Writes, compares and times results.
fn results(
    arguments: &Arguments,
    program: &Program,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Result<ExitCode> {
    if let Some(file) = &arguments.outputs {
        // NumPy has no `bfloat16`.
        let writable = |output: &Tensor| match output.dtype() {
            DType::BF16 => output.to_dtype(DType::F32),
            _ => Ok(output.clone()),
        };
        let written = outputs.iter().map(writable).collect::<Result<Vec<_>, _>>()?;
        let named = written.iter().enumerate().map(|(number, output)| (format!("out{number}"), output));
        npz::save(file, named)?;
    }
    if let Some(runs) = arguments.bench {
        println!("{}", report::bench(program, inputs, runs)?);
    }
    if let Some(file) = &arguments.profile {
        let name = arguments.program.display().to_string();
        print!("{}", report::profile(program, inputs, &name, file)?);
    }
    if let Some(file) = &arguments.compare {
        let (text, alike) = report::compare(outputs, file)?;
        print!("{text}");
        return Ok(if alike { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if arguments.outputs.is_none() && arguments.bench.is_none() && arguments.profile.is_none() {
        for (number, output) in outputs.iter().enumerate() {
            println!("out{number} = {output}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
