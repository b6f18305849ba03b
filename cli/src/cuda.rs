//! `opsmith cuda`: kernels for CUDA devices, compiled ahead of time.
//!
//! In: texts of kernels that a program has written. Out: an archive of images, or its list. The format and NVRTC are those of
//! `opsmith_cuda`.

mod build;
mod compiler;
mod list;
mod texts;

use anyhow::Result;

use crate::Outcome;

/// Compiles kernels for CUDA devices ahead of time, and lists archives of them
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Build(build::Arguments),
    List(list::Arguments),
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.command {
        Command::Build(arguments) => build::run(arguments),
        Command::List(arguments) => list::run(arguments),
    }
}
