//! `opsmith docs`: a documentation site from a spec.

mod folder;
mod serve;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use opsmith_codegen::Config;
use opsmith_codegen::pipeline::{self, Checked};
use opsmith_tools::diff;
use opsmith_tools::results::Results;
use opsmith_tools::site::guide::Guide;
use opsmith_tools::site::names::Names;
use opsmith_tools::site::{self, Release, SiteInput, SourceUrl};

use crate::Outcome;
use crate::project::{self, BuildsOn};
use crate::report::{self, Color, Format};

/// Generates a documentation site: a page for each operator, the guide, coverage, changes
#[derive(clap::Args)]
#[command(after_help = "\
The library need not build. Pages are files: they work without a server and without a network. The guide is README.md
and the files of docs beside the spec, or the documents that docs/guide/index.md links to; names in other libraries are
those of names.csv or ops/names.csv beside the spec. A folder that has other files is refused, never emptied.

Examples:
  opsmith docs --open
      Into target/opsmith/docs, and shows it.
  opsmith docs my_ops/ops.yaml -o site --results target/opsmith/results
      With executed examples, outcomes of checks and timings of a test run.
  opsmith docs --previous v0.1.0:ops.yaml --previous v0.2.0:ops.yaml
      With the changes since two revisions, oldest first.
  opsmith docs --source-url 'https://github.com/me/ops/blob/main/{path}#L{line}'
      With links to the source of kernels.
  opsmith docs --serve 8080
      Generates it and serves it to this machine until it is interrupted.

Exit status: 0, 1 if the spec has mistakes, 2 if something cannot be read or written.")]
pub struct Arguments {
    /// The spec
    #[arg(value_name = "SPEC", default_value = "ops.yaml")]
    spec: PathBuf,
    /// Folder of the site
    #[arg(short, long, value_name = "DIR", default_value = "target/opsmith/docs")]
    output: PathBuf,
    /// Show the site in a browser
    #[arg(long)]
    open: bool,
    /// Serve the site at this port of this machine alone, until interrupted; 0 is any free port
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "8000")]
    serve: Option<u16>,
    /// Results that a test run wrote, a file or a folder
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// An earlier version of the spec, a file or REVISION:FILE, for the page of changes; oldest first
    #[arg(long, value_name = "SPEC")]
    previous: Vec<String>,
    /// Title of the site, if not the name of the crate
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Address of source code, with {path} and {line}
    #[arg(long, value_name = "TEMPLATE")]
    source_url: Option<String>,
    #[command(flatten)]
    builds_on: BuildsOn,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let start = Instant::now();
    let config = arguments.builds_on.config(&arguments.spec)?;
    let mut checked = pipeline::check(&config)?;
    pipeline::find_functions(&mut checked, &config);
    if report::refuse_mistakes(&checked, Format::Text, Color::Auto.on_stderr())? {
        return Ok(Outcome::Mistakes);
    }
    let results = arguments.results.as_ref().map(|path| Results::read(path)).transpose()?;
    // Of several libraries or versions, those of this one; the page says so if there are only others.
    let results =
        results.map(|found| if found.is_of(&checked.model) { found.of(&checked.model) } else { found });
    let input = input(arguments, &checked, &config, results.as_ref())?;
    let files = site::site(&input).map_err(anyhow::Error::msg)?;
    folder::write(&arguments.output, &files)?;
    let index = arguments.output.join("index.html");
    let mut out = io::stdout().lock();
    writeln!(out, "{} files in {}: {}", files.len(), seconds(start), index.display())?;
    let server = arguments.serve.map(|port| serve::Server::bind(port, &arguments.output)).transpose()?;
    if arguments.open {
        let target = match &server {
            Some(server) => server.address(),
            None => std::path::absolute(&index)?.display().to_string(),
        };
        open(&target)?;
    }
    if let Some(server) = server {
        writeln!(out, "serving {} to this machine; interrupt it to end", server.address())?;
        out.flush()?;
        drop(out);
        server.run();
    }
    Ok(Outcome::Fine)
}

fn seconds(start: Instant) -> String {
    format!("{:.2} s", start.elapsed().as_secs_f64())
}

fn input<'a>(
    arguments: &Arguments,
    checked: &'a Checked,
    config: &'a Config,
    results: Option<&'a Results>,
) -> Result<SiteInput<'a>> {
    let folder = arguments.spec.parent().unwrap_or(Path::new(""));
    let package = project::package_of(&arguments.spec)?;
    let title = arguments.title.clone().or(package.name).unwrap_or_else(|| config.library.clone());
    let source_url = arguments.source_url.as_deref().map(SourceUrl::parse).transpose();
    Ok(SiteInput {
        checked,
        config,
        title,
        version: package.version.unwrap_or_default(),
        guide: Guide::read(folder).map_err(anyhow::Error::msg)?,
        names: Names::beside(folder).map_err(anyhow::Error::msg)?,
        results,
        releases: releases(arguments, checked)?,
        source_url: source_url.map_err(anyhow::Error::msg).context("--source-url")?,
    })
}

/// The changes from each earlier spec to the next, and from the last to the spec itself.
fn releases(arguments: &Arguments, checked: &Checked) -> Result<Vec<Release>> {
    let mut earlier: Vec<(&str, Checked)> = Vec::new();
    for spec in &arguments.previous {
        let read = crate::diff::read(spec, &arguments.builds_on).context("--previous")?;
        earlier.push((spec, read));
    }
    let now = arguments.spec.display().to_string();
    let models = earlier.iter().map(|(name, checked)| (*name, &checked.model));
    let models: Vec<_> = models.chain([(now.as_str(), &checked.model)]).collect();
    let pairs = models.windows(2).filter_map(|pair| match pair {
        [(from, old), (to, new)] => {
            Some(Release { from: (*from).to_owned(), to: (*to).to_owned(), report: diff::diff(old, new) })
        }
        _ => None,
    });
    Ok(pairs.collect())
}

/// Shows a file or an address with the program of the system for it.
fn open(target: &str) -> Result<()> {
    let programs: &[&[&str]] = if cfg!(target_os = "macos") {
        &[&["open"]]
    } else if cfg!(windows) {
        &[&["cmd", "/C", "start", ""]]
    } else {
        &[&["xdg-open"], &["gio", "open"]]
    };
    for program in programs {
        let mut command = Command::new(program[0]);
        command
            .args(&program[1..])
            .arg(target)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match command.status() {
            Ok(status) if status.success() => return Ok(()),
            _ => {}
        }
    }
    bail!("no program here opens a browser; open {target} yourself")
}
