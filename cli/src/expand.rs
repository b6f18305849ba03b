//! `opsmith expand`: the code that one operator generates.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use opsmith_codegen::Config;
use opsmith_codegen::diagnostics::{Diagnostic, Severity, nearest};
use opsmith_codegen::emit::{EMITTERS, HEADER};
use opsmith_codegen::model::Op;
use opsmith_codegen::pipeline::{self, Checked};

use crate::Outcome;
use crate::project::BuildsOn;
use crate::report::{self, Color, Format};

/// Shows the code that one operator generates, and which emitter wrote each part
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith expand add.Tensor
      Everything that is generated from the entry `add.Tensor` of ./ops.yaml.
  opsmith expand add.Tensor --emitter kernel_tables
      Only the kernels.
  opsmith expand laplacian --spec examples/custom_op/ops.yaml
      An operator of another spec.

The rest of the spec may have mistakes; the operator itself may not.")]
pub struct Arguments {
    /// Full name of the operator, such as `add.Tensor`; the name alone if it has one overload
    #[arg(value_name = "OP")]
    operator: String,
    /// The spec
    #[arg(long, value_name = "FILE", default_value = "ops.yaml")]
    spec: PathBuf,
    /// Only the code of this emitter
    #[arg(long, value_parser = PossibleValuesParser::new(emitter_names()))]
    emitter: Option<String>,
    #[command(flatten)]
    builds_on: BuildsOn,
}

fn emitter_names() -> impl Iterator<Item = &'static str> {
    let by_operator = EMITTERS.iter().filter(|emitter| emitter.by_operator);
    by_operator.map(|emitter| emitter.module).chain([HEADER.trim_end_matches(".h")])
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let config = arguments.builds_on.config(&arguments.spec)?;
    let checked = pipeline::check(&config)?;
    let mut out = io::stdout().lock();
    let op = match find(&checked, &config, &arguments.operator) {
        Found::One(op) => op,
        Found::None(message) => {
            // The entry may be missing because it has mistakes.
            let outcome = show_errors(&mut out, &checked, |_| true)?;
            if matches!(outcome, Outcome::Mistakes) {
                eprintln!("note: {message}; an entry with mistakes counts as missing");
                return Ok(outcome);
            }
            bail!(message);
        }
    };
    let range = op.entry.range();
    let own = |error: &&Diagnostic| {
        let span = error.primary.span;
        span.source == op.entry.source && range.contains(&(span.start as usize))
    };
    if matches!(show_errors(&mut out, &checked, own)?, Outcome::Mistakes) {
        return Ok(Outcome::Mistakes);
    }
    writeln!(out, "// {}\n// declared at {}", op.signature, op.location)?;
    for part in pipeline::expand(&checked, &config, &op.name)? {
        if arguments.emitter.as_ref().is_none_or(|wanted| wanted == part.name) {
            writeln!(
                out,
                "\n// ---- {} ---- written by {}\n\n{}",
                part.name,
                part.source,
                part.text.trim_end()
            )?;
        }
    }
    if checked.diagnostics.has_errors() {
        eprintln!("note: other entries have mistakes; `opsmith check {}` shows them", config.spec_name);
    }
    Ok(Outcome::Fine)
}

/// Prints the errors that `select` chooses.
fn show_errors(
    out: &mut dyn Write,
    checked: &Checked,
    select: impl Fn(&&Diagnostic) -> bool,
) -> Result<Outcome> {
    let mut outcome = Outcome::Fine;
    let errors = checked.diagnostics.sorted().filter(|diagnostic| diagnostic.severity == Severity::Error);
    for error in errors.filter(select) {
        report::write(out, &checked.sources, error, Format::Text, Color::Auto.on_stdout())?;
        outcome = Outcome::Mistakes;
    }
    Ok(outcome)
}

enum Found<'a> {
    One(&'a Op),
    None(String),
}

/// The operator of that full name, or the only one of that name.
fn find<'a>(checked: &'a Checked, config: &Config, name: &str) -> Found<'a> {
    let ops = &checked.model.ops;
    let same_base: Vec<&Op> = ops.iter().filter(|op| op.base == name && !op.is_external()).collect();
    let exact = ops.iter().find(|op| op.name == name);
    match (exact, same_base.as_slice()) {
        (Some(Op { parent: Some(parent), span, .. }), _) => {
            let file = checked.sources.file(span.source).path();
            // The file is one of those that the library's spec includes.
            let spec = config.parents[*parent].spec.display();
            Found::None(format!("`{name}` is declared in {file}; show it with --spec {spec}"))
        }
        (Some(op), _) => Found::One(op),
        (None, [op]) => Found::One(op),
        (None, []) => {
            let names = || ops.iter().filter(|op| !op.is_external()).map(|op| op.name.as_str());
            let near = nearest(name, names()).map(|near| format!("; did you mean `{near}`?"));
            Found::None(format!("there is no operator `{name}`{}", near.unwrap_or_default()))
        }
        (None, several) => {
            let names: Vec<String> = several.iter().map(|op| format!("`{}`", op.name)).collect();
            Found::None(format!("`{name}` has {} overloads: {}", several.len(), names.join(", ")))
        }
    }
}
