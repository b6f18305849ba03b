//! `opsmith cuda build`: an archive of images from texts of kernels.
//!
//! In: texts and architectures. Out: a file, written whole or not at all, and a summary. A kernel that does not compile is
//! named with the compiler's message, all of them in one run.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use opsmith_cuda::images::{CompiledImage, ImageArchive, ImageTarget, archive_compressed};
use opsmith_runtime::internals;

use super::compiler::{Choice, Compiler};
use super::list;
use super::texts::{self, Text};
use crate::Outcome;

/// The level of compression: slow to write, and as fast to read as others.
const LEVEL: i32 = 19;

/// Compiles texts of kernels to an archive of images
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith cuda build texts -o kernels.images --arch sm_90,sm_100 --ptx compute_75
      Compiles the texts that a program has written, to machine code of two architectures and to PTX for all
      others from 7.5 on.
  OPSMITH_CUDA_KEEP_TEXT=texts my-program
      Writes the text of each kernel that the program loads.
  OPSMITH_CUDA_IMAGES=kernels.images my-program
      Loads machine code without a compiler; PTX where there is neither machine code nor NVRTC.
  OPSMITH_CUDA_EMBED=$PWD/kernels.images cargo build --release
      The archive becomes part of the program. As opsmith.images beside it, it is found, too.

Compilers: nvcc of --nvcc, OPSMITH_NVCC, NVCC, the path or CUDA_HOME; where there is none, NVRTC. A driver
does not load images of a CUDA version with a higher major number than its own.

Exit status: 0 if the file was written, 1 if a kernel does not compile, 2 if the command failed.")]
pub struct Arguments {
    /// Files with texts, or folders of files *.cu
    #[arg(required = true, value_name = "TEXTS")]
    texts: Vec<PathBuf>,
    /// The archive
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Architectures of machine code, such as sm_90, or sm_90a with features that no other has
    #[arg(long, value_name = "SM", value_delimiter = ',')]
    arch: Vec<ImageTarget>,
    /// Architectures of PTX, such as compute_75
    #[arg(long, value_name = "COMPUTE", value_delimiter = ',')]
    ptx: Vec<ImageTarget>,
    /// The compiler; nvcc if it is found, else NVRTC
    #[arg(long, value_name = "COMPILER")]
    compiler: Option<Choice>,
    /// Adds texts that follow from the given ones: each loop for all ways through memory, and all kernels
    /// that move and convert elements
    #[arg(long)]
    complete: bool,
    /// The program nvcc
    #[arg(long, value_name = "PATH", conflicts_with = "compiler")]
    nvcc: Option<PathBuf>,
    /// Kernels compiled at once; as many as the machine has processors
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<std::num::NonZeroUsize>,
    /// Lists each kernel with registers and shared memory
    #[arg(long)]
    list: bool,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let targets = targets(arguments)?;
    let texts = texts::read(&arguments.texts)?;
    let texts = if arguments.complete { texts::complete(texts) } else { texts };
    let compiler = Compiler::find(arguments.compiler, arguments.nvcc.as_deref())?;
    compiler.check(&targets)?;
    let start = Instant::now();
    let jobs = match arguments.jobs {
        Some(jobs) => jobs.get(),
        None => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
    };
    let (images, failures) = compile(&compiler, &texts, &targets, jobs);
    let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    if !failures.is_empty() {
        for failure in &failures {
            eprintln!("{failure}\n");
        }
        eprintln!(
            "error: {} of {} by {}; {} is not written",
            count(failures.len(), "failure"),
            count(texts.len() * targets.len(), "compilation"),
            compiler.title(),
            arguments.output.display()
        );
        return Ok(Outcome::Mistakes);
    }
    let bytes = archive_compressed(images, &|part| zstd::bulk::compress(part, LEVEL))?;
    internals::replace(&arguments.output, |file: &mut File| file.write_all(&bytes))
        .map_err(|error: io::Error| error)
        .with_context(|| format!("cannot write {}", arguments.output.display()))?;
    let archive = ImageArchive::open(&arguments.output)?;
    let mut out = io::stdout().lock();
    if arguments.list {
        list::kernels(&mut out, &archive)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let (kernels, by) = (count(texts.len(), "kernel"), compiler.title());
    writeln!(out, "{}: {kernels} by {by} in {seconds:.1} s", archive.place())?;
    list::summary(&mut out, &archive)?;
    Ok(Outcome::Fine)
}

/// All architectures, each once.
fn targets(arguments: &Arguments) -> Result<Vec<ImageTarget>> {
    if let Some(target) = arguments.arch.iter().find(|target| !target.is_cubin()) {
        bail!("--arch {target} is no architecture of machine code: write sm_{}", target.architecture());
    }
    if let Some(target) = arguments.ptx.iter().find(|target| target.is_cubin()) {
        bail!("--ptx {target} is no architecture of PTX: write compute_{}", target.architecture());
    }
    let mut targets = [&arguments.arch[..], &arguments.ptx].concat();
    targets.sort();
    targets.dedup();
    if targets.is_empty() {
        bail!("no architecture is named: write --arch sm_90 for machine code, or --ptx compute_75, or both");
    }
    Ok(targets)
}

/// The images, and the failures by text and architecture.
fn compile(
    compiler: &Compiler,
    texts: &[Text],
    targets: &[ImageTarget],
    jobs: usize,
) -> (Vec<CompiledImage>, Vec<String>) {
    let of_text = |text| Text::targets(text, targets).into_iter().map(move |target| (text, target));
    let all: Vec<(&Text, ImageTarget)> = texts.iter().flat_map(of_text).collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(all.len()));
    let work = || {
        while let Some((text, target)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let compiled = compiler.compile(text, *target).map_err(|message| {
                format!("{} ({}) for {target}:\n{}", text.name, text.line, message.trim_end())
            });
            done.lock().unwrap_or_else(PoisonError::into_inner).push(compiled);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(all.len()) {
            scope.spawn(work);
        }
    });
    let (mut images, mut failures) = (Vec::new(), Vec::new());
    for compiled in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        match compiled {
            Ok(image) => images.push(image),
            Err(failure) => failures.push(failure),
        }
    }
    failures.sort();
    (images, failures)
}
