//! `opsmith generate`: the output of a build script, written into a folder.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use opsmith_codegen::emit::formatted::Formatted;
use opsmith_codegen::output::{self, stamp};
use opsmith_codegen::pipeline;

use crate::Outcome;
use crate::project::BuildsOn;
use crate::report::{self, Color, Format};

/// Writes the code that a spec generates into a folder
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith generate ops.yaml -o generated
      Writes every file that the build script of the spec's crate would.
  opsmith generate ops.yaml -o generated --timings
      Also says how long each stage took and how much memory all took.

If neither the spec, nor the generator, nor a file in the folder changed, nothing is done.

Exit status: 0, 1 if the spec has mistakes, 2 if a file cannot be read or written.")]
pub struct Arguments {
    /// The spec
    #[arg(value_name = "SPEC")]
    spec: PathBuf,
    /// The folder to write to; generated files in it that the spec no longer asks for are removed
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Generate even if nothing changed
    #[arg(long)]
    force: bool,
    /// Say how long each stage took
    #[arg(long)]
    timings: bool,
    #[command(flatten)]
    builds_on: BuildsOn,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let mut timer = Timer { shown: arguments.timings, stages: Vec::new(), last: Instant::now() };
    let config = arguments.builds_on.config(&arguments.spec)?;
    let mut out = io::stdout().lock();
    if !arguments.force && stamp::holds(&arguments.output, &config) {
        timer.stage("compare");
        writeln!(out, "{}: nothing changed", config.spec_name)?;
        timer.show(&mut out)?;
        return Ok(Outcome::Fine);
    }
    timer.stage("compare");
    let checked = pipeline::check(&config)?;
    timer.stage("check");
    for diagnostic in checked.diagnostics.sorted() {
        report::write(&mut out, &checked.sources, diagnostic, Format::Text, Color::Auto.on_stdout())?;
    }
    if checked.diagnostics.has_errors() {
        return Ok(Outcome::Mistakes);
    }
    let earlier = match arguments.force {
        true => Formatted::default(),
        false => output::formatted::read(&arguments.output),
    };
    let files =
        pipeline::generate_after(&checked, &config, &earlier).map_err(|failure| anyhow!("{failure}"))?;
    timer.stage("generate");
    let written = output::write(&arguments.output, &files)
        .with_context(|| format!("cannot write to {}", arguments.output.display()))?;
    output::formatted::write(&arguments.output, &files)?;
    // Without a stamp, warnings are shown again next time.
    match checked.diagnostics.is_empty() {
        true => stamp::write(&arguments.output, &config, &checked.files, &files)?,
        false => stamp::remove(&arguments.output)?,
    }
    timer.stage("write");
    let bytes: usize = files.iter().map(|file| file.text.len()).sum();
    let kilobytes = bytes / 1000;
    writeln!(out, "{}: {} files, {kilobytes} kB, {written} changed", config.spec_name, files.len())?;
    timer.show(&mut out)?;
    Ok(Outcome::Fine)
}

/// The duration of each stage.
struct Timer {
    shown: bool,
    stages: Vec<(&'static str, Duration)>,
    last: Instant,
}

impl Timer {
    fn stage(&mut self, name: &'static str) {
        let now = Instant::now();
        self.stages.push((name, now - self.last));
        self.last = now;
    }

    fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.shown {
            return Ok(());
        }
        for (name, took) in &self.stages {
            writeln!(out, "{name:<10} {:>9.1} ms", took.as_secs_f64() * 1e3)?;
        }
        if let Some(kilobytes) = peak_memory() {
            writeln!(out, "{:<10} {:>9.1} MB", "memory", kilobytes as f64 / 1e3)?;
        }
        let total: Duration = self.stages.iter().map(|(_, took)| *took).sum();
        writeln!(out, "{:<10} {:>9.1} ms", "total", total.as_secs_f64() * 1e3)
    }
}

/// Peak memory of the process so far, in kilobytes, if the system provides it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
