//! `opsmith explain`: all information about one operator, and the code that runs when it is called.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use opsmith_codegen::Config;
use opsmith_codegen::model::Op;
use opsmith_codegen::pipeline::{self, Checked};
use opsmith_runtime::{Backend, DType, Device};
use opsmith_tools::describe::{self, DescribedOperator, InWords};
use serde_json::{Value as Json, json};

use crate::Outcome;
use crate::evaluate::{self, Answer, Given, GivenShape, GivenSize, Unknown};
use crate::operator::find;
use crate::project::BuildsOn;
use crate::report::Color;
use crate::style::Styled;

/// Tells everything about an operator: which code runs, with file and line
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith explain mm --dtype float32
      The forms, the kernel that runs with its file and line, inference, gradients, who calls it.
  opsmith explain mm --shapes 2x3,3x4
      Also the shape and dtype of the result for these operands.
  opsmith explain mm --shapes nxk,kx4
      The same for sizes that are not known: names, -1, or -2 for a tensor of any rank.
  opsmith explain sum.dim_IntList --shapes 2x3x4 --set dim=0,2 --set keepdim=true
      With attributes.
  opsmith explain add
      Every overload of `add`.

A shape is sizes joined by `x`; `scalar` has no dimensions and `none` is an absent operand.
Exit status: 0, or 2 if there is no such operator or the arguments do not fit it.")]
pub struct Arguments {
    /// Full name of the operator, such as `add.Tensor`; the name alone means all its overloads, and names in other
    /// libraries are found as the spec says: `torch.abs`, `aten::abs`, `abs_out`, `np.power`
    #[arg(value_name = "OP")]
    operator: String,
    /// dtype of the operands
    #[arg(long, value_name = "DTYPE")]
    dtype: Option<String>,
    /// Device that the call would run on, `cpu` or `cuda`
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: String,
    /// Shapes of the tensor operands, in order: `2x3,3x4`; a size may be a name (`nx3`) or unknown (`-1x3`), and `-2` is
    /// a tensor of any rank
    #[arg(long, value_name = "SHAPES", value_delimiter = ',', allow_hyphen_values = true)]
    shapes: Vec<String>,
    /// Value of another argument: `alpha=2`
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Print JSON, an array with an object for each overload
    #[arg(long)]
    json: bool,
    /// The spec
    #[arg(long, value_name = "FILE", default_value = "ops.yaml")]
    spec: PathBuf,
    /// When to use colours
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
    #[command(flatten)]
    builds_on: BuildsOn,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let config = arguments.builds_on.config(&arguments.spec)?;
    let mut checked = pipeline::check(&config)?;
    pipeline::find_functions(&mut checked, &config);
    let ops = match find(&checked, &arguments.operator) {
        Ok(ops) => ops,
        Err(message) if checked.diagnostics.has_errors() => {
            bail!("{message}; the spec has mistakes, and an entry with mistakes counts as missing")
        }
        Err(message) => bail!(message),
    };
    let asked = Asked::new(arguments)?;
    let single = ops.len() == 1;
    let mut reports = Vec::new();
    for op in ops {
        match Report::new(&checked, &config, op, &asked) {
            Ok(report) => reports.push(report),
            Err(error) if single => return Err(error),
            // Shapes and attributes that fit one overload need not fit another.
            Err(error) => reports.push(Report::without_answer(&checked, &config, op, &asked, &error)),
        }
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        let all: Vec<Json> = reports.iter().map(Report::json).collect::<Result<_>>()?;
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(Outcome::Fine);
    }
    let style = Styled(arguments.color.on_stdout());
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        report.print(&mut out, style)?;
    }
    if !single {
        writeln!(
            out,
            "\n{} operators are called `{}`; name one in full to see it alone",
            reports.len(),
            arguments.operator
        )?;
    }
    Ok(Outcome::Fine)
}

/// The query on the command line.
struct Asked {
    backend: Backend,
    dtype: Option<DType>,
    shapes: Vec<Option<GivenShape>>,
    set: Vec<(String, String)>,
}

impl Asked {
    fn new(arguments: &Arguments) -> Result<Asked> {
        let dtype = arguments.dtype.as_deref().map(|name| {
            DType::from_name(name).with_context(|| {
                let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
                format!("no dtype is called `{name}`; there are {}", names.join(", "))
            })
        });
        let device = Device::from_name(&arguments.device)
            .with_context(|| format!("no device is called `{}`; there are cpu and cuda", arguments.device))?;
        let set = arguments.set.iter().map(|text| {
            let (name, value) = text.split_once('=').with_context(|| {
                format!("--set {text}: write an argument's name and value, such as alpha=2")
            })?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        });
        Ok(Asked {
            backend: device.backend,
            dtype: dtype.transpose()?,
            shapes: arguments.shapes.iter().map(|text| shape(text)).collect::<Result<_>>()?,
            set: set.collect::<Result<_>>()?,
        })
    }
}

fn shape(text: &str) -> Result<Option<GivenShape>> {
    let size = |size: &str| match size.parse::<i64>() {
        Ok(-1) => Some(GivenSize::Unknown),
        Ok(number) => (number >= 0).then_some(GivenSize::Number(number)),
        Err(_) => {
            let is_name = size.starts_with(|first: char| first.is_ascii_alphabetic())
                && size.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
            is_name.then(|| GivenSize::Name(size.to_owned()))
        }
    };
    Ok(match text.trim() {
        "none" => None,
        "-2" => Some(None),
        "scalar" | "" => Some(Some(Vec::new())),
        text => match text.split('x').map(size).collect::<Option<Vec<GivenSize>>>() {
            Some(sizes) => Some(Some(sizes)),
            None => bail!(
                "`{text}` is no shape; write sizes joined by `x`, such as 2x3, nx3 for a size with a name, -1x3 for an \
                 unknown one, and -2 for any number of dimensions"
            ),
        },
    })
}

/// A number if possible, else a formula.
fn size_json(size: &str) -> Json {
    size.parse::<i64>().map_or_else(|_| json!(size), |number| json!(number))
}

/// Facts about one operator and about the given call.
struct Report {
    operator: DescribedOperator,
    words: InWords,
    /// Inference for the given shapes, if some were given.
    answer: Option<Answer>,
    /// The reason why there is no answer although shapes were given.
    refused: Option<String>,
    /// The dtype that selects the kernel, as far as known.
    compute: Option<DType>,
    backend: Backend,
}

impl Report {
    fn new(checked: &Checked, config: &Config, op: &Op, asked: &Asked) -> Result<Report> {
        let operator = describe::describe(checked, config, op);
        let evaluated = !asked.shapes.is_empty() || !asked.set.is_empty();
        let answer = match &op.infer {
            Some(infer) if evaluated => {
                let dtype = asked.dtype.unwrap_or(DType::F32);
                let given = Given { shapes: asked.shapes.clone(), dtype, set: asked.set.clone() };
                Some(evaluate::answer(op, infer, &given)?)
            }
            _ => None,
        };
        let compute = match &answer {
            Some(answer) => answer.compute.as_ref().ok().copied(),
            None => asked.dtype.map(|dtype| assumed_compute(op, dtype)),
        };
        let words = describe::in_words(op, &checked.model);
        Ok(Report { operator, words, answer, refused: None, compute, backend: asked.backend })
    }

    fn without_answer(
        checked: &Checked,
        config: &Config,
        op: &Op,
        asked: &Asked,
        error: &anyhow::Error,
    ) -> Report {
        Report {
            operator: describe::describe(checked, config, op),
            words: describe::in_words(op, &checked.model),
            answer: None,
            refused: Some(format!("{error:#}")),
            compute: asked.dtype,
            backend: asked.backend,
        }
    }

    fn json(&self) -> Result<Json> {
        let mut value = serde_json::to_value(&self.operator)?;
        value["in_words"] = serde_json::to_value(&self.words)?;
        let (kernel, why) = describe::choose(&self.operator, self.backend, self.compute);
        value["chosen"] = json!({
            "device": self.backend.name(),
            "compute_dtype": self.compute.map(DType::name),
            "kernel": kernel,
            "why": why,
        });
        value["evaluated"] = match &self.answer {
            None => Json::Null,
            Some(answer) => json!({
                "failed_checks": answer.checks.iter().map(|(check, why)| json!({"check": check, "why": reason(why)})).collect::<Vec<_>>(),
                "shapes": answer.shapes.iter().map(|shape| match shape {
                    Ok(Some(sizes)) => json!(sizes.iter().map(|size| size_json(size)).collect::<Vec<_>>()),
                    Ok(None) => json!([-2]),
                    Err(why) => json!({"unknown": reason(why)}),
                }).collect::<Vec<_>>(),
                "only_where": answer.guards,
                "at_most": answer.found.iter().cloned().collect::<BTreeMap<_, _>>(),
                "dtypes": answer.dtypes.iter().map(|dtype| match dtype {
                    Ok(dtype) => json!(dtype.name()),
                    Err(why) => json!({"unknown": reason(why)}),
                }).collect::<Vec<_>>(),
            }),
        };
        Ok(value)
    }

    fn print(&self, out: &mut dyn Write, style: Styled) -> io::Result<()> {
        let op = &self.operator;
        writeln!(out, "{}", style.title(&op.signature))?;
        writeln!(out, "  declared at {}", op.declared)?;
        let summary = op.doc.split("\n\n").next().unwrap_or_default().trim().replace('\n', " ");
        if !summary.is_empty() {
            writeln!(out, "  {summary}")?;
        }
        for (index, line) in op.formula.iter().enumerate() {
            if index == 0 {
                section(out, style, "formula")?;
            }
            writeln!(out, "  {line}")?;
        }
        section(out, style, "which code runs")?;
        self.chosen(out)?;
        section(out, style, "Rust")?;
        for function in &op.functions {
            writeln!(out, "  {}", function.function)?;
        }
        if let Some(method) = op.functions.iter().find_map(|function| function.method.as_ref()) {
            writeln!(out, "  as a method: {method}, and so on")?;
        }
        if !op.operators.is_empty() {
            writeln!(out, "  as an operator: {}", op.operators.join("  "))?;
        }
        let names: Vec<String> = op.names.iter().map(|name| format!("{:?}", name.name)).collect();
        writeln!(out, "  by name: call({}, …)", names.join(" or "))?;
        section(out, style, "inference")?;
        self.inference(out)?;
        section(out, style, "gradients")?;
        self.gradients(out)?;
        if let Some(composition) = &op.decomposes_to {
            section(out, style, "decomposes to")?;
            writeln!(out, "  {}", composition.expression)?;
            if let Some(source) = &composition.source {
                writeln!(out, "  at {source}")?;
            }
        }
        section(out, style, "used by")?;
        if op.used_by.is_empty() {
            writeln!(out, "  no other operator")?;
        }
        for used in &op.used_by {
            writeln!(out, "  {} ({})", used.op, used.place)?;
        }
        Ok(())
    }

    fn gradients(&self, out: &mut dyn Write) -> io::Result<()> {
        let op = &self.operator;
        if op.derivatives.is_empty() {
            let words = match op.gradients_by {
                "composition" => "those of the composition's operators",
                "view" => "that of the view, from its layout",
                _ => "none",
            };
            writeln!(out, "  {words}")?;
        }
        for derivative in &op.derivatives {
            let formula: Vec<&str> = derivative.formula.split_whitespace().collect();
            let derived = if derivative.derived { " (derived from the expression)" } else { "" };
            writeln!(out, "  {}: {}{derived}", derivative.of.join(", "), formula.join(" "))?;
            let saves = match derivative.saves.as_slice() {
                [] => "nothing but sizes and dtypes".to_owned(),
                saves => saves.join(", "),
            };
            writeln!(out, "    saves {saves}")?;
        }
        if let Some(why) = &op.second_order_refused {
            writeln!(out, "  not twice: {why}")?;
        }
        match op.forward_by {
            "" => writeln!(out, "  forward mode: none"),
            "written" => writeln!(out, "  forward mode: {}", op.tangents.join("; ")),
            by => writeln!(out, "  forward mode: {by}"),
        }
    }

    fn chosen(&self, out: &mut dyn Write) -> io::Result<()> {
        let (kernel, why) = describe::choose(&self.operator, self.backend, self.compute);
        match kernel {
            Some(kernel) => {
                let source = kernel.source.as_deref().unwrap_or("a place that was not found");
                writeln!(out, "  {} `{}`", kernel.kind, kernel.text)?;
                writeln!(out, "  at {source}")?;
                writeln!(out, "  because {why}")?;
                if self.compute.is_none() && !kernel.dtypes.is_empty() {
                    writeln!(out, "  for {}", kernel.dtypes.join(", "))?;
                }
                for (words, text) in [("computes", &kernel.documentation), ("declared as", &kernel.signature)]
                {
                    text.iter().try_for_each(|text| writeln!(out, "  {words} {text}"))?;
                }
            }
            None => writeln!(out, "  none: {why}")?,
        }
        Ok(())
    }

    /// The rules of results in words, for an operator that has none in its entry.
    fn results(&self, out: &mut dyn Write) -> io::Result<()> {
        for result in &self.words.results {
            writeln!(out, "  shape {}\n  dtype {}", result.shape, result.dtype)?;
        }
        for error in self.words.errors.iter().filter(|error| !self.is_check(error)) {
            writeln!(out, "  an error {error}")?;
        }
        Ok(())
    }

    fn is_check(&self, error: &str) -> bool {
        self.operator.checks.iter().any(|check| error.strip_prefix("unless ") == Some(&format!("`{check}`")))
    }

    fn inference(&self, out: &mut dyn Write) -> io::Result<()> {
        for check in &self.operator.checks {
            writeln!(out, "  requires {check}")?;
        }
        let Some(inference) = &self.operator.inference else {
            return self.results(out);
        };
        let kinds = [
            ("shape", &inference.shapes),
            ("shape before a run", &inference.run_shapes),
            ("dtype", &inference.dtypes),
        ];
        for (kind, rules) in kinds {
            for rule in rules {
                let meaning = rule.meaning.as_ref().map(|meaning| format!(": {meaning}")).unwrap_or_default();
                writeln!(out, "  {kind} {}{meaning}", rule.rule)?;
                for source in &rule.sources {
                    writeln!(out, "    {source}")?;
                }
            }
        }
        for size in &inference.run_sizes {
            writeln!(out, "  {} is known after a run: at most {}", size.name, size.at_most.rule)?;
        }
        writeln!(out, "  kernel chosen by dtype {}", inference.compute.rule)?;
        if let Some(refused) = &self.refused {
            writeln!(out, "  not evaluated: {refused}")?;
        }
        let Some(answer) = &self.answer else { return Ok(()) };
        for (check, why) in &answer.checks {
            match why {
                Unknown::Error(text) => {
                    writeln!(out, "  => an error: {}", text.lines().next().unwrap_or_default())?
                }
                Unknown::Compiled(_) => writeln!(out, "  => {check} is {}", reason(why))?,
            }
        }
        for (shape, dtype) in answer.shapes.iter().zip(&answer.dtypes) {
            let shape = match shape {
                Ok(Some(sizes)) => format!("({})", sizes.join(", ")),
                Ok(None) => "(-2), of any rank".to_owned(),
                Err(why) => reason(why),
            };
            let dtype = dtype.as_ref().map_or_else(reason, |dtype| dtype.name().to_owned());
            writeln!(out, "  => shape {shape}, dtype {dtype}")?;
        }
        for (name, most) in answer.found.iter().filter(|(_, most)| most != "-1") {
            writeln!(out, "  => {name} is at most {most}")?;
        }
        for guard in &answer.guards {
            writeln!(out, "  => only where {guard}")?;
        }
        Ok(())
    }
}

/// The compute dtype for operands of one dtype, if nothing else is known of the call.
fn assumed_compute(op: &Op, dtype: DType) -> DType {
    let tensors = op.args.iter().filter(|arg| arg.ty.holds_tensors()).count();
    let one = Some(Some(vec![GivenSize::Number(1)]));
    let given = Given { shapes: vec![one; tensors], dtype, set: Vec::new() };
    let computed = op.infer.as_ref().and_then(|infer| evaluate::answer(op, infer, &given).ok()?.compute.ok());
    computed.unwrap_or(dtype)
}

fn reason(why: &Unknown) -> String {
    match why {
        Unknown::Error(text) => text.clone(),
        Unknown::Compiled(what) => {
            format!("computed by {what}, which is compiled code that this command does not contain")
        }
    }
}

fn section(out: &mut dyn Write, style: Styled, title: &str) -> io::Result<()> {
    writeln!(out, "\n{}", style.heading(title))
}
