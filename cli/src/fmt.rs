//! `opsmith fmt`: specs in their canonical form.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use opsmith_tools::fmt::{self, NotFormatted};

use crate::report::{self, Color, Format};
use crate::{Outcome, files};

/// Puts specs into their canonical form
#[derive(clap::Args)]
#[command(after_help = "\
Keys stand in the order of the documentation, entries are set apart by blank lines, quotes stand where
they are needed, and lines have at most 110 columns. Comments stay with what they are about.

Examples:
  opsmith fmt ops.yaml
      Rewrites the file and those that it includes, each at once, unless it has that form already.
  opsmith fmt --check ops.yaml more.yaml
      Changes nothing; says which files would change.
  opsmith fmt - < ops.yaml
      Reads the standard input and writes to the standard output.

A file with mistakes in its syntax or its keys is left alone, and the mistakes are shown.
Exit status: 0 if all is well, 1 if a file has mistakes or, with --check, would change, 2 if a file cannot
be read or written.")]
pub struct Arguments {
    /// Specs to format; `-` for the standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing and fail if something would change
    #[arg(long)]
    check: bool,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let mut out = io::stdout().lock();
    let mut outcome = Outcome::Fine;
    let mut files: Vec<PathBuf> = arguments.files.iter().rev().cloned().collect();
    let mut known = HashSet::new();
    while let Some(file) = &files.pop() {
        if !known.insert(std::fs::canonicalize(file).unwrap_or_else(|_| file.clone())) {
            continue;
        }
        let from_input = file.as_os_str() == "-";
        let name = if from_input { "standard input".to_owned() } else { file.display().to_string() };
        let mut bytes = Vec::new();
        let read = match from_input {
            true => io::stdin().read_to_end(&mut bytes).map(|_| ()),
            false => std::fs::read(file).map(|read| bytes = read),
        };
        read.with_context(|| format!("cannot read {name}"))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if !from_input {
            let folder = file.parent().unwrap_or(Path::new(""));
            files.extend(fmt::includes(&text).iter().rev().map(|included| folder.join(included)));
        }
        match fmt::format_bytes(&name, bytes) {
            Ok(formatted) if from_input && !arguments.check => out.write_all(formatted.as_bytes())?,
            Ok(formatted) if formatted == text => {}
            Ok(formatted) if arguments.check => {
                let line = first_difference(&text, &formatted);
                writeln!(out, "{name}:{line}: not in the canonical form; `opsmith fmt {name}` rewrites it")?;
                outcome = Outcome::Mistakes;
            }
            Ok(formatted) => {
                files::replace(file, &formatted).with_context(|| format!("cannot write {name}"))?
            }
            Err(NotFormatted::Mistakes(sources, diagnostics)) => {
                for diagnostic in diagnostics.sorted() {
                    report::write(&mut out, &sources, diagnostic, Format::Text, arguments.color.on_stdout())?;
                }
                writeln!(out, "{name}: left alone, because it has mistakes")?;
                outcome = Outcome::Mistakes;
            }
            Err(NotFormatted::Defect(text)) => {
                bail!("{name} is left alone; the formatter has a defect, please report it: {text}")
            }
        }
    }
    Ok(outcome)
}

/// The first line that differs, from 1.
fn first_difference(before: &str, after: &str) -> usize {
    let same = before.lines().zip(after.lines()).take_while(|(before, after)| before == after).count();
    same + 1
}
