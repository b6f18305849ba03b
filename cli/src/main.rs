//! The `opsmith` command: checks operator specs and shows the code they generate.
//!
//! In: spec files and their crates' manifests. Out: text on the terminal, and an exit status: 0 on success, 1 if a spec
//! has mistakes, 2 if the command failed. The work is done by the library (`opsmith_codegen`); this crate finds files
//! and prints.

mod aot;
mod bridge;
mod check;
mod completions;
mod coverage;
mod cuda;
mod diff;
mod docs;
mod evaluate;
mod expand;
mod explain;
mod export;
mod files;
mod fmt;
mod generate;
mod import_torch;
mod init;
mod lsp;
mod new;
mod operator;
mod profile;
mod project;
mod report;
mod style;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The generator makes many small allocations; this allocator takes half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Checks operator specs and shows the code they generate.
#[derive(Parser)]
#[command(name = "opsmith", version, after_help = "`opsmith help COMMAND` shows a command with examples.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Arguments),
    Explain(explain::Arguments),
    Expand(expand::Arguments),
    Generate(generate::Arguments),
    ImportTorch(import_torch::Arguments),
    Fmt(fmt::Arguments),
    New(new::Arguments),
    Init(init::Arguments),
    Bridge(bridge::Arguments),
    Coverage(coverage::Arguments),
    Diff(diff::Arguments),
    Docs(docs::Arguments),
    Export(export::ExportArguments),
    Schema(export::SchemaArguments),
    Completions(completions::Arguments),
    Aot(aot::Arguments),
    Cuda(cuda::Arguments),
    Profile(profile::Arguments),
    Lsp(lsp::Arguments),
}

fn main() -> ExitCode {
    // A reader that has seen enough, such as `head`, ends the command.
    sigpipe::reset();
    let outcome = match Arguments::parse().command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Expand(arguments) => expand::run(&arguments),
        Command::Generate(arguments) => generate::run(&arguments),
        Command::ImportTorch(arguments) => import_torch::run(&arguments),
        Command::Fmt(arguments) => fmt::run(&arguments),
        Command::New(arguments) => new::run(&arguments),
        Command::Init(arguments) => init::run(&arguments),
        Command::Bridge(arguments) => bridge::run(&arguments),
        Command::Coverage(arguments) => coverage::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Docs(arguments) => docs::run(&arguments),
        Command::Export(arguments) => export::run_export(&arguments),
        Command::Schema(arguments) => export::run_schema(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Aot(arguments) => aot::run(&arguments),
        Command::Cuda(arguments) => cuda::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Lsp(arguments) => lsp::run(&arguments),
    };
    match outcome {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Mistakes) => ExitCode::from(1),
        // A reader that ended early, such as `head`, needs no more output.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The result of a command for the given specs.
enum Outcome {
    Fine,
    Mistakes,
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
