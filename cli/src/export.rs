//! `opsmith export` and `opsmith schema`: specs and their language for other programs.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use opsmith_codegen::pipeline;
use opsmith_tools::{export, json_schema};

use crate::Outcome;
use crate::project::BuildsOn;
use crate::report::{self, Color, Format};

/// Writes the whole checked spec as JSON
#[derive(clap::Args)]
#[command(after_help = "\
Every operator with its arguments, forms, kernels, rules of inference and gradient formulas, expressions
as trees. `docs/export.md` says what each field means; `format` is its version. Equal specs give equal
bytes.

Examples:
  opsmith export > ops.json
  opsmith export my_ops/ops.yaml --compact | jq '.operators[].name'

Exit status: 0, 1 if the spec has mistakes, 2 if it cannot be read.")]
pub struct ExportArguments {
    /// The spec
    #[arg(value_name = "FILE", default_value = "ops.yaml")]
    spec: PathBuf,
    /// On one line
    #[arg(long)]
    compact: bool,
    /// JSON, which is the only format
    #[arg(long, hide = true)]
    json: bool,
    #[command(flatten)]
    builds_on: BuildsOn,
}

pub fn run_export(arguments: &ExportArguments) -> Result<Outcome> {
    let config = arguments.builds_on.config(&arguments.spec)?;
    let checked = pipeline::check(&config)?;
    if report::refuse_mistakes(&checked, Format::Text, Color::Auto.on_stderr())? {
        return Ok(Outcome::Mistakes);
    }
    let value = export::export(&checked.model);
    let text = if arguments.compact {
        serde_json::to_string(&value)?
    } else {
        serde_json::to_string_pretty(&value)?
    };
    writeln!(io::stdout().lock(), "{text}")?;
    Ok(Outcome::Fine)
}

/// Writes a JSON Schema of spec files, for completion and hover in editors
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith schema > opsmith.schema.json
      Then, as the first line of a spec, for editors with yaml-language-server:
      # yaml-language-server: $schema=opsmith.schema.json")]
pub struct SchemaArguments {
    /// File to write, if not the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run_schema(arguments: &SchemaArguments) -> Result<Outcome> {
    let text = format!("{}\n", serde_json::to_string_pretty(&json_schema::json_schema())?);
    match &arguments.output {
        None => io::stdout().lock().write_all(text.as_bytes())?,
        Some(file) => {
            if let Err(error) = std::fs::write(file, text) {
                bail!("cannot write {}: {error}", file.display());
            }
        }
    }
    Ok(Outcome::Fine)
}
