//! `opsmith diff`: the changes between two specs.

mod text;

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use opsmith_codegen::diagnostics::summary;
use opsmith_codegen::pipeline::{self, Checked};
use opsmith_tools::diff::{self, Class, RULES, Report, Version};
use serde_json::json;

use crate::Outcome;
use crate::project::BuildsOn;
use crate::report::{self, Color, Format as Short};
use crate::style::Styled;

/// Shows the changes between two specs, and the version that follows
#[derive(clap::Args)]
#[command(after_help = "\
Each change is breaking (calls stop compiling, fail, or mean something else), additive (there is more to
call) or internal (callers see nothing), by the rule that is named; `--rules` lists the rules.

Examples:
  opsmith diff old.yaml ops.yaml
  opsmith diff --git v0.1.0
      The spec as it was at a revision, and as it is.
  opsmith diff v0.1.0:ops.yaml v0.2.0:ops.yaml
      Two revisions.
  opsmith diff --git origin/main --allow additive --format markdown
      In CI: fails on breaking changes, with text for a comment.

A file at a revision is read with the includes of today.
Exit status: 0 if no change is worse than --allow, 1 if one is, 2 if a spec cannot be read or has
mistakes.")]
pub struct Arguments {
    /// The old and the new spec: files, or REVISION:FILE; with --git, the one file
    #[arg(value_name = "SPEC", num_args = 0..=2)]
    specs: Vec<String>,
    /// Compare the file with itself at this revision
    #[arg(long, value_name = "REVISION")]
    git: Option<String>,
    /// How changes are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The worst change that is no failure
    #[arg(long, value_enum, default_value_t = Allowed::Additive)]
    allow: Allowed,
    /// The version that the old spec was released as, for the verdict; by default that of the new spec's
    /// crate
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// List the rules and stop
    #[arg(long)]
    rules: bool,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(flatten)]
    builds_on: BuildsOn,
}

/// How changes are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// For people at a terminal
    Text,
    /// One object
    Json,
    /// For comments and release notes
    Markdown,
}

/// The worst change that is no failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Allowed {
    /// No change at all
    Nothing,
    /// Changes that callers do not see
    Internal,
    /// Also new things to call
    Additive,
    /// Everything
    Breaking,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let mut out = io::stdout().lock();
    if arguments.rules {
        for rule in RULES {
            writeln!(out, "{:9} {:27} {}", text::word(rule.class), rule.name, rule.reason)?;
        }
        return Ok(Outcome::Fine);
    }
    let (old, new) = match (&arguments.git, arguments.specs.as_slice()) {
        (None, [old, new]) => (old.clone(), new.clone()),
        (Some(revision), []) => (format!("{revision}:ops.yaml"), "ops.yaml".to_owned()),
        (Some(revision), [file]) => (format!("{revision}:{file}"), file.clone()),
        _ => bail!("name two specs, or one with --git REVISION; `opsmith diff --help` has examples"),
    };
    let before = read(&old, &arguments.builds_on)?;
    let after = read(&new, &arguments.builds_on)?;
    let report = diff::diff(&before.model, &after.model);
    let version = version(arguments, &new)?;
    match arguments.format {
        Format::Text => text::terminal(&mut out, &report, version, Styled(arguments.color.on_stdout()))?,
        Format::Markdown => text::markdown(&mut out, &report, version)?,
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&object(&report, version))?)?,
    }
    let allowed = match arguments.allow {
        Allowed::Nothing => None,
        Allowed::Internal => Some(Class::Internal),
        Allowed::Additive => Some(Class::Additive),
        Allowed::Breaking => Some(Class::Breaking),
    };
    Ok(if report.worst() > allowed { Outcome::Mistakes } else { Outcome::Fine })
}

fn object(report: &Report, version: Option<Version>) -> serde_json::Value {
    json!({
        "changes": report.changes,
        "worst": report.worst(),
        "version": version.map(|version| version.to_string()),
        "next_version": version.map(|version| diff::next(version, report.worst()).to_string()),
    })
}

/// Reads a file, or a file at a revision.
pub fn read(spec: &str, builds_on: &BuildsOn) -> Result<Checked> {
    // A file of that name takes precedence: its name may contain a colon.
    let at_revision = spec.split_once(':').filter(|_| !Path::new(spec).is_file());
    let checked = match at_revision {
        None => pipeline::check(&builds_on.config(Path::new(spec))?)?,
        Some((revision, file)) => {
            let mut config = builds_on.config(Path::new(file))?;
            config.spec_name = spec.to_owned();
            show(revision, Path::new(file))?;
            let open = |path: &Path| show(revision, path).map_err(|_| io::ErrorKind::NotFound.into());
            pipeline::check_from(&config, &open)?
        }
    };
    if report::refuse_mistakes(&checked, Short::Short, false)? {
        bail!("{spec} has {}; only specs without mistakes can be compared", summary(&checked.diagnostics));
    }
    Ok(checked)
}

/// The bytes of a file at a revision.
fn show(revision: &str, file: &Path) -> Result<Vec<u8>> {
    // A folder of the revision may not exist any more.
    let folder = file.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new(""));
    let name = file.strip_prefix(folder).unwrap_or(file).display();
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["show", "--end-of-options", &format!("{revision}:./{name}")])
        .output()
        .context("cannot run git")?;
    if !output.status.success() {
        bail!("git has no {revision}:{}: {}", file.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// The version that was given, or that of the crate or workspace around a file.
fn version(arguments: &Arguments, new: &str) -> Result<Option<Version>> {
    if let Some(text) = &arguments.version {
        let version =
            Version::parse(text).with_context(|| format!("`{text}` is no version such as 1.2.3"))?;
        return Ok(Some(version));
    }
    let file = match new.split_once(':') {
        Some((_, file)) if !Path::new(new).is_file() => file,
        _ => new,
    };
    let file = std::path::absolute(file)?;
    let manifests = file.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    let found = manifests.filter_map(|manifest| std::fs::read_to_string(manifest).ok()).find_map(|text| {
        text.lines().find_map(|line| {
            let value = line.strip_prefix("version")?.trim_start().strip_prefix('=')?;
            Version::parse(value.trim().trim_matches('"'))
        })
    });
    Ok(found)
}
