//! `opsmith coverage`: support of operators by backend, dtype, gradients, forms and tests.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use opsmith_codegen::model::Op;
use opsmith_codegen::pipeline;
use opsmith_runtime::DType;
use opsmith_tools::coverage::{self, Coverage, CoverageRow, Share, Totals};
use opsmith_tools::results::Results;

use crate::Outcome;
use crate::project::BuildsOn;
use crate::report::Color;
use crate::style::Styled;

/// Shows the support of each operator: dtypes, gradients, forms, tests
#[derive(clap::Args)]
#[command(after_help = "\
A row for each operator and backend. Under a dtype: `.` nothing, `f` it computes, `b` it also has a
gradient, `2` a gradient that can be differentiated again. Then: forward mode, in-place form, out form, and
tests: `s` it has samples, with which the checks made for every operator call it; `n` the text of a test
names it; `.` neither. With `--results`, the checks that passed there in a test run, of those that ran.

Examples:
  opsmith coverage
      The table and the totals of the stock library.
  opsmith coverage --only pool
      Rows of operators with `pool` in their name; the totals are of all.
  opsmith coverage --totals
      Only the totals.
  OPSMITH_RESULTS=$PWD/results cargo test && opsmith coverage --results results
      With the outcomes of a test run on each backend.
  opsmith coverage --json
      Everything for other programs.")]
pub struct Arguments {
    /// The spec
    #[arg(value_name = "FILE", default_value = "ops.yaml")]
    spec: PathBuf,
    /// Only rows of operators with this in their name
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// No rows
    #[arg(long, conflicts_with = "only")]
    totals: bool,
    /// Outcomes of a test run: the file or folder that `OPSMITH_RESULTS` named
    #[arg(long, value_name = "PATH")]
    results: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(flatten)]
    builds_on: BuildsOn,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let config = arguments.builds_on.config(&arguments.spec)?;
    let checked = pipeline::check(&config)?;
    let tests = Tests::beside(&arguments.spec);
    let mut coverage = coverage::coverage(&checked.model, &|op| tests.name(op));
    if let Some(path) = &arguments.results {
        let results = Results::read(path)?;
        let is_of_spec = results.is_of(&checked.model);
        is_of_spec.then_some(()).with_context(|| {
            format!("{} has results of another spec; run the tests again", path.display())
        })?;
        coverage.add_runs(&results.of(&checked.model));
    }
    if let Some(only) = &arguments.only {
        coverage.rows.retain(|row| row.op.contains(only.as_str()));
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&coverage)?)?;
    } else {
        print(&mut out, &coverage, !arguments.totals, Styled(arguments.color.on_stdout()))?;
    }
    if checked.diagnostics.has_errors() {
        eprintln!(
            "note: the spec has mistakes, and entries with mistakes are missing; `opsmith check` shows them"
        );
        return Ok(Outcome::Mistakes);
    }
    Ok(Outcome::Fine)
}

/// The texts of the tests beside a spec.
struct Tests(Vec<String>);

impl Tests {
    fn beside(spec: &Path) -> Tests {
        let folder = spec.parent().unwrap_or(Path::new("")).join("tests");
        let mut texts = Vec::new();
        let mut open = vec![folder];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    // An unreadable file names no operator.
                    texts.extend(std::fs::read_to_string(path));
                }
            }
        }
        Tests(texts)
    }

    /// Whether a test calls an operator, as a function, a method or by its full name.
    fn name(&self, op: &Op) -> bool {
        let base = op.rust_name.trim_end_matches('_');
        let calls: Vec<String> = ["", "_", "_out", "_with", "_with_", "_with_out"]
            .iter()
            .map(|form| format!("{base}{form}("))
            .collect();
        let quoted = format!("\"{}\"", op.name);
        self.0.iter().any(|text| {
            text.contains(&quoted)
                || calls.iter().any(|call| {
                    text.match_indices(call.as_str())
                        .any(|(place, _)| !text[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
                })
        })
    }
}

fn print(out: &mut dyn Write, coverage: &Coverage, rows: bool, style: Styled) -> io::Result<()> {
    if rows {
        let width = coverage.rows.iter().map(|row| row.op.len()).max().unwrap_or(0).max("operator".len());
        let dtypes: Vec<String> = DType::ALL.iter().map(|dtype| short(*dtype)).collect();
        let runs = if coverage.totals.iter().any(|totals| totals.runs.is_some()) { " runs" } else { "" };
        let dtypes = dtypes.join(" ");
        let head = format!("{:width$} {:4} {dtypes} forward in-place out test{runs}", "operator", "on");
        writeln!(out, "{}", style.heading(&head))?;
        // A backend without support of an operator would fill the table with dots.
        for row in coverage.rows.iter().filter(|row| row.backend == "CPU" || !row.forward.is_empty()) {
            writeln!(out, "{}", line(row, width))?;
        }
        writeln!(out)?;
    }
    for totals in &coverage.totals {
        writeln!(out, "{}", style.heading(&format!("totals for {}", totals.backend)))?;
        for (name, share) in shares(totals) {
            writeln!(out, "  {name:34} {:>6.1} %  {} of {}", share.per_cent(), share.have, share.of)?;
        }
        if let Some(share) = totals.runs {
            let name = "all checks of a test run passed";
            writeln!(out, "  {name:34} {:>6.1} %  {} of {}", share.per_cent(), share.have, share.of)?;
        }
    }
    Ok(())
}

fn line(row: &CoverageRow, width: usize) -> String {
    let cells: Vec<String> = DType::ALL
        .iter()
        .map(|dtype| {
            let mark = match (row.forward.contains(&dtype.name()), row.backward.contains(&dtype.name())) {
                (false, _) => ".",
                (true, false) => "f",
                (true, true) if row.second_order => "2",
                (true, true) => "b",
            };
            format!("{mark:^width$}", width = short(*dtype).len())
        })
        .collect();
    let yes = |flag: bool| if flag { "yes" } else { "." };
    let tests = match (row.sampled, row.named) {
        (true, true) => "sn",
        (true, false) => "s",
        (false, true) => "n",
        (false, false) => ".",
    };
    let tests = match row.runs {
        None => tests.to_owned(),
        Some(Share { of: 0, .. }) => format!("{tests:4} ."),
        Some(Share { have, of }) => format!("{tests:4} {have}/{of}"),
    };
    let forward = match (row.forward_mode, row.differentiable) {
        ("", true) => "no",
        ("", false) => ".",
        _ => "yes",
    };
    format!(
        "{:width$} {:4} {} {forward:7} {:8} {:3} {tests}",
        row.op,
        row.backend,
        cells.join(" "),
        yes(row.inplace),
        yes(row.out)
    )
}

/// `f32` for `float32`.
fn short(dtype: DType) -> String {
    let name = dtype.name();
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let kind = match &name[..name.len() - digits.len()] {
        "bool" => return "bool".to_owned(),
        "bfloat" => "bf",
        "uint" => "u",
        kind => &kind[..1],
    };
    format!("{kind}{digits}")
}

fn shares(totals: &Totals) -> [(&'static str, Share); 10] {
    [
        ("computes", totals.forward),
        ("computes, by dtype", totals.forward_dtypes),
        ("gradient, where there can be one", totals.backward),
        ("second order, the same", totals.second_order),
        ("forward mode, the same", totals.forward_mode),
        ("in-place form", totals.inplace),
        ("out form", totals.out),
        ("samples, which checks call it with", totals.sampled),
        ("named by a test", totals.named),
        ("samples or named by a test", totals.tested),
    ]
}
