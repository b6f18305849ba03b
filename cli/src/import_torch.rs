//! `opsmith import-torch`: PyTorch's two files as one spec.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use opsmith_tools::import::{self, ImportReport, Input};
use serde_json::json;

use crate::Outcome;
use crate::report::{self, Color, Format};

/// Turns PyTorch's native_functions.yaml and derivatives.yaml into one spec
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith import-torch native_functions.yaml derivatives.yaml -o torch.yaml
      Writes the spec and shows, feature by feature, what became of the two files.
  opsmith import-torch native_functions.yaml derivatives.yaml --list -o torch.yaml
      Also shows each formula that is C++ still, with the reason.
  opsmith import-torch native_functions.yaml derivatives.yaml --json
      The same as JSON.

Nothing is dropped. Kernels are named under `supplied`, what no key says is kept under `origin`, and a
formula that was not translated is kept as `opaque(\"…\")`. A translated formula is one in which the
checker resolved every name and type. Functions of C++ that formulas call are listed under `declarations`
with the types that their calls have.

Exit status: 0, or 1 if an input has mistakes, 2 if a file cannot be read or written.")]
pub struct Arguments {
    /// PyTorch's native_functions.yaml
    #[arg(value_name = "NATIVE")]
    native: PathBuf,
    /// PyTorch's derivatives.yaml
    #[arg(value_name = "DERIVATIVES")]
    derivatives: PathBuf,
    /// Where to write the spec; without it, only the report is printed
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also list each formula that is C++ still
    #[arg(long)]
    list: bool,
    /// Print the report as JSON, the list included
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (native, derivatives) = (read(&arguments.native)?, read(&arguments.derivatives)?);
    let (native_name, derivatives_name) =
        (arguments.native.display().to_string(), arguments.derivatives.display().to_string());
    let mut out = io::stdout().lock();
    let imported = match import::import(
        Input { name: &native_name, text: &native },
        Input { name: &derivatives_name, text: &derivatives },
    ) {
        Ok(imported) => imported,
        Err(refused) => {
            for diagnostic in refused.diagnostics.sorted() {
                let color = Color::Auto.on_stdout();
                report::write(&mut out, &refused.sources, diagnostic, Format::Text, color)?;
            }
            return Ok(Outcome::Mistakes);
        }
    };
    if let Some(path) = &arguments.output {
        std::fs::write(path, &imported.spec).with_context(|| format!("cannot write {}", path.display()))?;
    }
    match arguments.json {
        true => writeln!(out, "{:#}", as_json(&imported.report))?,
        false => table(&mut out, &imported.report, arguments.list)?,
    }
    Ok(Outcome::Fine)
}

fn table(out: &mut dyn Write, report: &ImportReport, list: bool) -> io::Result<()> {
    let mut file = "";
    for row in &report.rows {
        if row.file != file {
            file = row.file;
            writeln!(out, "{file:<34} {:>7} {:>11} {:>7}", "count", "translated", "kept")?;
        }
        let name = format!("  {}", row.feature);
        writeln!(out, "{name:<34} {:>7} {:>11} {:>7}", row.count, row.translated, row.kept)?;
    }
    writeln!(
        out,
        "{} entries became {}; translated formulas call {} functions of C++, which the importing project supplies",
        report.natives, report.entries, report.declarations
    )?;
    if list {
        writeln!(out, "\nformulas that are C++ still:")?;
        for opaque in &report.opaque {
            writeln!(out, "{}\n  {}: {}\n    {}", opaque.func, opaque.key, opaque.text, opaque.reason)?;
        }
    } else if !report.opaque.is_empty() {
        writeln!(out, "{} formulas are C++ still; --list shows them with the reasons", report.opaque.len())?;
    }
    Ok(())
}

fn as_json(report: &ImportReport) -> serde_json::Value {
    let rows = report.rows.iter().map(|row| {
        json!({
            "file": row.file,
            "feature": row.feature,
            "count": row.count,
            "translated": row.translated,
            "kept": row.kept,
        })
    });
    let opaque = report.opaque.iter().map(|formula| {
        json!({
            "func": formula.func,
            "key": formula.key,
            "forward": formula.forward,
            "formula": formula.text,
            "reason": formula.reason,
        })
    });
    json!({
        "natives": report.natives,
        "entries": report.entries,
        "declarations": report.declarations,
        "features": rows.collect::<Vec<_>>(),
        "opaque": opaque.collect::<Vec<_>>(),
    })
}
