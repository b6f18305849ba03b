//! `opsmith new`: a new operator with a kernel skeleton.

use std::io;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use opsmith_tools::scaffold::{self, KernelLanguage, Refusal};

use crate::project::BuildsOn;
use crate::report::{self, Color, Format};
use crate::{Outcome, files};

/// Adds an operator: its entry, a kernel to fill in, and a test that calls it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith new 'soft_clip(Tensor self, *, float limit=1.0) -> Tensor'
      An entry in ./ops.yaml, a Rust kernel and a test. It builds, and the test fails with
      \"not implemented\" until the kernel is written.
  opsmith new 'my_sort(Tensor self) -> (Tensor values, Tensor order)' --kernel cpp
      With a kernel in C++.
  opsmith new 'blur(Tensor self) -> Tensor' --spec my_ops/ops.yaml
      In another crate.

The shape and dtype in the entry are a guess, those of the first tensor; put right what is wrong.
Exit status: 0, 1 if the signature or the spec has mistakes, 2 if nothing could be written.")]
pub struct Arguments {
    /// Signature of the functional form, in PyTorch's schema language
    #[arg(value_name = "SIGNATURE")]
    signature: String,
    /// The language of the kernel
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    kernel: Language,
    /// The spec
    #[arg(long, value_name = "FILE", default_value = "ops.yaml")]
    spec: PathBuf,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(flatten)]
    builds_on: BuildsOn,
}

/// The language of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Language {
    /// A generic Rust function
    Rust,
    /// A C++ function
    Cpp,
    /// A CUDA file, and a Rust function for the host; CUDA files are not compiled yet
    Cuda,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let config = arguments.builds_on.config(&arguments.spec)?;
    let language = match arguments.kernel {
        Language::Rust => KernelLanguage::Rust,
        Language::Cpp => KernelLanguage::Cpp,
        Language::Cuda => KernelLanguage::Cuda,
    };
    let planned = match scaffold::operator(&config, &arguments.signature, language) {
        Ok(planned) => planned,
        Err(Refusal::Because(text)) => bail!(text),
        Err(Refusal::Mistakes(sources, diagnostics)) => {
            let mut out = io::stdout().lock();
            for diagnostic in diagnostics.sorted() {
                report::write(&mut out, &sources, diagnostic, Format::Text, arguments.color.on_stdout())?;
            }
            println!("nothing was written");
            return Ok(Outcome::Mistakes);
        }
    };
    files::apply(&planned.changes)?;
    println!("added `{}`", planned.name);
    for change in &planned.changes {
        let verb = if change.exists { "changed" } else { "new" };
        println!("  {verb} {}", change.path.display());
    }
    println!(
        "write the kernel in {}; until then this fails with \"not implemented\":",
        planned.kernel.display()
    );
    println!("  cargo test --test {}", planned.test);
    Ok(Outcome::Fine)
}
