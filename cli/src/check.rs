//! `opsmith check`: every mistake of a spec.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use opsmith_codegen::diagnostics::summary;
use opsmith_codegen::pipeline::{self, Checked};
use opsmith_tools::rust_code;

use crate::Outcome;
use crate::project::BuildsOn;
use crate::report::{self, Color, Format};

/// Checks specs and shows every mistake
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith check ops.yaml
      Shows each mistake with its place, what is wrong and what to write instead.
  opsmith check --format short ops.yaml more.yaml
      One line a mistake, for editors and grep.
  opsmith check --format json ops.yaml
      One object a line: severity, code, message, help, notes; file, line, column, end_line, end_column
      (from 1, in characters), utf16_column, utf16_end_column (from 1, as editors count), byte_start, byte_end (from 0) and label; `related` holds further places.
  opsmith check --format github ops.yaml
      In a workflow: the mistakes appear beside the changed lines.

Exit status: 0 without mistakes, 1 with some, 2 if a file cannot be read.")]
pub struct Arguments {
    /// Specs to check
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Exit with 1 also if there are warnings
    #[arg(long)]
    deny_warnings: bool,
    /// How mistakes are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(flatten)]
    builds_on: BuildsOn,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let mut out = io::stdout().lock();
    let color = arguments.color.on_stdout();
    let mut outcome = Outcome::Fine;
    for file in &arguments.files {
        let config = arguments.builds_on.config(file)?;
        let mut checked = pipeline::check(&config)?;
        pipeline::check_kernel_files(&mut checked, &config);
        rust_code::check(&mut checked, &config);
        for diagnostic in checked.diagnostics.sorted() {
            report::write(&mut out, &checked.sources, diagnostic, arguments.format, color)?;
        }
        if matches!(arguments.format, Format::Text | Format::Short) {
            writeln!(out, "{}: {}", config.spec_name, verdict(&checked))?;
        }
        let denied = arguments.deny_warnings && checked.diagnostics.warning_count() > 0;
        if checked.diagnostics.has_errors() || denied {
            outcome = Outcome::Mistakes;
        }
    }
    Ok(outcome)
}

/// `159 operators, no mistakes`, or the numbers of mistakes.
fn verdict(checked: &Checked) -> String {
    if !checked.diagnostics.is_empty() {
        return summary(&checked.diagnostics);
    }
    match checked.model.ops.iter().filter(|op| !op.is_external()).count() {
        1 => "1 operator, no mistakes".to_owned(),
        count => format!("{count} operators, no mistakes"),
    }
}
