//! Texts for the terminal.
//!
//! In: a program, its graph and results. Out: text.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use opsmith::{DType, Device, Tensor, TensorOps, view_as_real};
use opsmith_graph::Graph;
use opsmith_nn::npz::NpzArchive;
use opsmith_profile::{Group, ProfileOptions, profile_with};
use opsmith_programs::{OutputRole, Program, ProgramSize};

/// Prints the mistakes of a program, or that there are none.
pub fn check(program: &Program) -> ExitCode {
    match program.check() {
        Ok(checked) => {
            println!("{checked}");
            ExitCode::SUCCESS
        }
        Err(errors) => {
            eprintln!("{errors}");
            ExitCode::FAILURE
        }
    }
}

/// A line for each input.
pub fn inputs(program: &Program) -> String {
    program.inputs().iter().fold(String::new(), |text, input| text + &format!("  {input}\n"))
}

/// Inputs, outputs, and the bounds of symbols.
pub fn shapes(program: &Program, graph: &Graph) -> String {
    let mut text = String::new();
    let mut symbols: Vec<(&str, i64, Option<i64>)> = Vec::new();
    for input in program.inputs() {
        _ = writeln!(text, "input {input}");
        for size in &input.sizes {
            if let ProgramSize::Symbol { name, least, most, .. } = size
                && !symbols.iter().any(|(known, ..)| known == name)
            {
                symbols.push((name, *least, *most));
            }
        }
    }
    for (number, (output, described)) in graph.outputs().iter().zip(program.outputs()).enumerate() {
        let info = &graph.tensors()[output.0 as usize];
        let sizes: Vec<String> = info.layout.sizes.iter().map(|size| graph.text(size)).collect();
        _ = write!(text, "output out{number}: {} ({})", info.dtype, sizes.join(", "));
        _ = match &described.role {
            OutputRole::Result if described.name == format!("out{number}") => writeln!(text),
            OutputRole::Result => writeln!(text, ", `{}`", described.name),
            OutputRole::Loss => writeln!(text, ", the loss"),
            OutputRole::Gradient { of } => writeln!(text, ", its gradient by `{of}`"),
        };
    }
    for (name, least, most) in symbols {
        let most = most.map_or(String::new(), |most| format!(", at most {most}"));
        _ = writeln!(text, "symbol {name}: at least {least}{most}");
    }
    text
}

/// The table of the graph's tensors; with sizes of all symbols, also the memory of a run.
pub fn describe(graph: &Graph, at: &[String]) -> Result<String> {
    let mut text = graph.describe();
    if at.is_empty() {
        return Ok(text);
    }
    let mut symbols = Vec::with_capacity(at.len());
    for given in at {
        let size = given.split_once('=').and_then(|(name, size)| Some((name, size.parse::<i64>().ok()?)));
        let Some(size) = size else { bail!("{given:?} is no size of a symbol: write SYMBOL=SIZE") };
        symbols.push(size);
    }
    let memory = graph.memory_at(&symbols).with_context(|| format!("no run with {}", at.join(", ")))?;
    _ = writeln!(
        text,
        "with {}: arena {} bytes, at least {} needed",
        at.join(", "),
        memory.planned,
        memory.lower_bound
    );
    Ok(text)
}

/// The times of some runs, until their results are on the host.
pub fn bench(program: &Program, inputs: &[Tensor], runs: usize) -> Result<String> {
    let mut times: Vec<Duration> = Vec::with_capacity(runs);
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        for output in program.run(inputs)? {
            output.to_device(Device::CPU)?;
        }
        times.push(start.elapsed());
    }
    times.sort();
    // Microseconds have the digits that differ in programs of a few of them.
    let text = |time: Duration| match time.as_secs_f64() {
        seconds if seconds < 1e-4 => format!("{:.2} us", seconds * 1e6),
        seconds => format!("{:.3} ms", seconds * 1e3),
    };
    Ok(format!("{} runs: median {}, least {}", times.len(), text(times[times.len() / 2]), text(times[0])))
}

/// A table of a run's operators, with the lines of the program's source; the profile goes into a file.
pub fn profile(program: &Program, inputs: &[Tensor], name: &str, file: &Path) -> Result<String> {
    let (outputs, profile) = profile_with(ProfileOptions::new().name(name), || program.run(inputs))?;
    outputs?;
    if file.extension().is_some_and(|extension| extension == "html") {
        profile.save_report(file)?;
    } else {
        profile.save(file)?;
    }
    let rows = profile.key_averages(Group::Operator).row_limit(20).table();
    let lines = profile.key_averages(Group::Site).row_limit(10).table();
    Ok(format!("{rows}\n{lines}"))
}

/// The differences between outputs and recorded ones, and whether all are within the tolerance.
pub fn compare(outputs: &[Tensor], file: &Path) -> Result<(String, bool)> {
    let mut expected = NpzArchive::open(file)?;
    let (mut text, mut alike) = (String::new(), true);
    for (number, output) in outputs.iter().enumerate() {
        let expected = expected.read(&format!("out{number}"))?;
        let verdict = difference(output, &expected)?;
        alike &= verdict.is_ok();
        let (Ok(verdict) | Err(verdict)) = verdict;
        _ = writeln!(text, "out{number}: {verdict}");
    }
    let more = format!("out{}", outputs.len());
    if expected.names().contains(&more) {
        alike = false;
        _ = writeln!(text, "{more}: expected, and the program has {} results", outputs.len());
    }
    Ok((text, alike))
}

/// The difference between an output and the largest expected element, by that, up to which both count as equal; integers and
/// truth values are exact.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 | DType::F64 | DType::C64 | DType::C128 => 1e-4,
        // Four units of the last place.
        DType::F16 => 4.0 / 1024.0,
        DType::BF16 => 4.0 / 128.0,
        _ => 0.0,
    }
}

/// The difference of two tensors in words: within the tolerance, or not.
fn difference(output: &Tensor, expected: &Tensor) -> Result<Result<String, String>> {
    let of = |tensor: &Tensor| format!("{} {:?}", tensor.dtype(), tensor.shape());
    // NumPy has no `bfloat16`.
    let is_widened = output.dtype() == DType::BF16 && expected.dtype() == DType::F32;
    if output.dtype() != expected.dtype() && !is_widened || output.shape() != expected.shape() {
        return Ok(Err(format!("is {}, expected {}", of(output), of(expected))));
    }
    let (found, wanted) = (numbers(output)?, numbers(expected)?);
    let largest =
        wanted.iter().filter(|value| value.is_finite()).fold(1.0f64, |most, value| most.max(value.abs()));
    let bound = tolerance(output.dtype()) * largest;
    let (mut most, mut same) = (0.0f64, true);
    for (a, b) in found.iter().zip(&wanted) {
        let distance = if a == b || a.is_nan() && b.is_nan() { 0.0 } else { (a - b).abs() };
        most = if distance.is_nan() || most.is_nan() { f64::NAN } else { most.max(distance) };
        // A distance that is NaN is not within the bound.
        same &= distance <= bound;
    }
    let text = format!("{}, largest difference {most:.3e}, allowed {bound:.3e}", of(output));
    Ok(if same { Ok(text) } else { Err(format!("differs: {text}")) })
}

/// The elements of a tensor; of a complex one, real and imaginary parts.
fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    let parts = if tensor.dtype().is_complex() { view_as_real(tensor)? } else { tensor.clone() };
    Ok(parts.to_dtype(DType::F64)?.to_vec::<f64>()?)
}
