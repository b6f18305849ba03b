//! `opsmith profile`: tables, trees, pictures, differences and reproducers from profiles.
//!
//! In: files that `Profile::save` wrote. Out: text or files. The work is done by `opsmith_profile`.

mod compare;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use opsmith_profile::{Diff as Difference, Event, Group, Limits, Profile, SortBy};

use crate::Outcome;

/// Most calls that a message lists.
const MOST_NAMED: usize = 8;

/// Shows the calls of a recorded program: which operator is slow, where, and whether a change helped
#[derive(clap::Args)]
#[command(after_help = "\
A program records with the feature `profile` of `opsmith`:

  let (result, profile) = opsmith::profile::profile(|| work())?;
  profile.save(\"work.profile.json\")?;

Examples:
  opsmith profile show work.profile.json --group shapes --limit 20
  opsmith profile diff before.profile.json after.profile.json
  opsmith profile repro work.profile.json addmm -o examples/addmm.rs")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Show(Show),
    Top(Top),
    Tree(Tree),
    /// Writes a flame graph (SVG): width is time, the outermost calls are on top
    #[command(after_help = "\
Examples:
  opsmith profile flame work.profile.json -o flame.svg")]
    Flame(Output),
    /// Writes a trace for Perfetto and chrome://tracing
    #[command(after_help = "\
Examples:
  opsmith profile trace work.profile.json -o trace.json
      JSON, which other programs read as well.
  opsmith profile trace work.profile.json -o trace.pftrace
      Perfetto's binary format, a tenth of the size, for millions of events.")]
    Trace(Output),
    /// Writes memory over time: charts (SVG), or each change with its call (CSV)
    #[command(after_help = "\
Examples:
  opsmith profile memory work.profile.json -o memory.svg
  opsmith profile memory work.profile.json -o memory.csv")]
    Memory(Output),
    Limits(LimitsOfMachine),
    Report(Report),
    Diff(Diff),
    Repro(Repro),
    Compare(compare::Compare),
}

/// Prints a table: time, memory, calls, GB/s and GFLOP/s of each operator
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith profile show work.profile.json --limit 20
  opsmith profile show work.profile.json --group shapes --sort memory
      A row for each combination of operands, those that keep most memory first.
  opsmith profile show work.profile.json --group kernel
      A row for each kernel, with the file and line of its function.
  opsmith profile show work.profile.json --limits
      Also the share of each row's time that this machine needs at least.")]
struct Show {
    /// The profile
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// The common property of the calls of a row
    #[arg(long, value_enum, default_value_t = By::Operator)]
    group: By,
    /// The order of rows
    #[arg(long, value_enum, default_value_t = Order::SelfTime)]
    sort: Order,
    /// Most rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Measure how fast this machine copies and computes, and print each row's share of that
    #[arg(long)]
    limits: bool,
    /// Print CSV, in nanoseconds and bytes; with `--limits` the least time of the kernels
    #[arg(long, conflicts_with = "limit")]
    csv: bool,
}

/// Prints the slowest single calls, with their operands and places
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith profile top work.profile.json -n 5")]
struct Top {
    /// The profile
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// How many
    #[arg(short, default_value_t = 10, value_name = "N")]
    number: usize,
}

/// Prints the call tree: compositions, operators, kernels
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith profile tree work.profile.json --depth 3 --least 2")]
struct Tree {
    /// The profile
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// Deepest level
    #[arg(long, default_value_t = 8, value_name = "N")]
    depth: usize,
    /// Leave out branches with less of the time
    #[arg(long, default_value_t = 0.5, value_name = "PERCENT", allow_negative_numbers = true, value_parser = share)]
    least: f64,
}

/// Prints the limits of this machine, of which tables give shares: as kept, or measured now
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith profile limits
  opsmith profile limits --again
      Measures once more and keeps the larger rates: programs that ran meanwhile made the machine look slower.")]
struct LimitsOfMachine {
    /// Measure again, and keep the larger of each rate
    #[arg(long)]
    again: bool,
}

#[derive(clap::Args)]
struct Output {
    /// The profile
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// The file to write
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
}

/// Writes a report (HTML): table, roofline, flame graph, timeline, memory, call tree
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith profile report work.profile.json -o report.html --limits")]
struct Report {
    /// The profile
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// The file to write
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// Measure how fast this machine copies and computes: each row's share of that, and the roofline
    #[arg(long)]
    limits: bool,
}

/// Compares two profiles by operator: ratio of the times of a call, and whether it may be chance
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith profile diff before.profile.json after.profile.json
      `*` marks differences of more than three standard errors.")]
struct Diff {
    /// The profile before
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The profile after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// A row for each combination of operands
    #[arg(long)]
    shapes: bool,
    /// Most rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// Writes a Rust program that repeats the slowest call of an operator, with operands like the recorded ones
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith profile repro work.profile.json addmm -o examples/addmm.rs
  cargo run --release --example addmm
  opsmith profile repro work.profile.json mm --operands '[64, 32]' --site src/model.rs:12
      The slowest of the calls with such an operand at this line.")]
struct Repro {
    /// The profile
    #[arg(value_name = "FILE")]
    profile: PathBuf,
    /// The operator, with or without its overload
    #[arg(value_name = "OPERATOR")]
    operator: String,
    /// Among calls whose operands, as `show --group shapes` prints them, contain this
    #[arg(long, value_name = "TEXT")]
    operands: Option<String>,
    /// Among calls whose site contains this
    #[arg(long, value_name = "TEXT")]
    site: Option<String>,
    /// The file to write, such as examples/slow.rs; without, the program is printed
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Operator,
    Shapes,
    Kernel,
    Site,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    #[value(name = "self")]
    SelfTime,
    Total,
    Average,
    Calls,
    Memory,
    Device,
    Name,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.command {
        Command::Show(show) => print(&table(show)?)?,
        Command::Top(top) => print(&load(&top.profile)?.slowest_table(top.number))?,
        Command::Tree(tree) => {
            let profile = load(&tree.profile)?;
            print(&profile.tree().text(tree.depth, tree.least / 100.0))?;
        }
        Command::Flame(flame) => {
            let picture = load(&flame.profile)?.flame_graph();
            write(&flame.output, &picture)?;
        }
        Command::Trace(trace) => {
            check_ending(&trace.output, &["json", "pftrace", "perfetto-trace"])?;
            load(&trace.profile)?.save_trace(&trace.output).map_err(text_of)?;
            written(&trace.output);
        }
        Command::Memory(memory) => {
            check_ending(&memory.output, &["svg", "csv"])?;
            load(&memory.profile)?.save_memory(&memory.output).map_err(text_of)?;
            written(&memory.output);
        }
        Command::Limits(limits) => print(&limits_text(limits.again))?,
        Command::Report(report) => {
            let profile = with_limits(load(&report.profile)?, report.limits);
            profile.save_report(&report.output).map_err(text_of)?;
            written(&report.output);
        }
        Command::Diff(diff) => {
            let mut difference = Difference::of(&load(&diff.before)?, &load(&diff.after)?, diff.shapes);
            difference.rows.truncate(diff.limit.unwrap_or(usize::MAX));
            print(&difference.table())?;
        }
        Command::Compare(compare) => compare::run(compare)?,
        Command::Repro(repro) => {
            let program = program(repro)?;
            match &repro.output {
                Some(output) => write(output, &program)?,
                None => print(&program)?,
            }
        }
    }
    Ok(Outcome::Fine)
}

fn load(path: &Path) -> Result<Profile> {
    Profile::load(path).map_err(text_of)
}

/// The whole text of an error: its sources repeat its message.
fn text_of(error: opsmith_profile::ProfileError) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

fn print(text: &str) -> Result<()> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    written(path);
    Ok(())
}

fn written(path: &Path) {
    eprintln!("wrote {}", path.display());
}

/// A share in percent.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=100.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 100".to_owned())
}

/// Whether a file's name ends as one of the formats that the command writes.
fn check_ending(path: &Path, endings: &[&str]) -> Result<()> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if endings.contains(&ending) {
        return Ok(());
    }
    let known: Vec<String> = endings.iter().map(|ending| format!("`.{ending}`")).collect();
    bail!(
        "{}: the ending gives the format, and `.{ending}` is none\n  help: it may be {}",
        path.display(),
        known.join(", ")
    )
}

fn limits_text(again: bool) -> String {
    let limits = if again { Limits::measure_again() } else { Limits::of_this_machine() };
    let arithmetic = match limits.gflop_s {
        0.0 => "not measured, as this program is not optimised".to_owned(),
        rate => format!("{rate:.0} GFLOP/s of float32"),
    };
    let threads = limits.threads;
    format!(
        "copies      {:.1} GB/s, read and written\narithmetic  {arithmetic}\nthreads     {threads}\n",
        limits.copy_gb_s
    )
}

fn with_limits(profile: Profile, wanted: bool) -> Profile {
    if !wanted {
        return profile;
    }
    // Those that the program measured itself are those of the machine that it ran on, and of its devices.
    let measured = profile.limits.clone();
    let limits = match measured {
        Some(limits) if limits.gflop_s > 0.0 => limits,
        measured => {
            eprintln!("note: the profile has no limits; shares are of those of this machine");
            let devices = measured.map(|limits| limits.devices).unwrap_or_default();
            Limits { devices, ..Limits::of_this_machine() }
        }
    };
    if limits.gflop_s == 0.0 {
        eprintln!(
            "note: shares are those of copies alone: a build without optimisation cannot measure arithmetic\n  \
             help: once `cargo run --release --bin opsmith -- profile show FILE --limits`, and the figure is kept"
        );
    }
    profile.with_limits(limits)
}

fn table(show: &Show) -> Result<String> {
    let group = match show.group {
        By::Operator => Group::Operator,
        By::Shapes => Group::Shapes,
        By::Kernel => Group::Kernel,
        By::Site => Group::Site,
    };
    let order = match show.sort {
        Order::SelfTime => SortBy::SelfTime,
        Order::Total => SortBy::TotalTime,
        Order::Average => SortBy::AverageTime,
        Order::Calls => SortBy::Calls,
        Order::Memory => SortBy::SelfMemory,
        Order::Device => SortBy::SelfDeviceTime,
        Order::Name => SortBy::Name,
    };
    let profile = with_limits(load(&show.profile)?, show.limits);
    let averages = profile.key_averages(group).sort_by(order);
    if show.csv {
        return Ok(averages.csv());
    }
    let limit = show.limit.unwrap_or(usize::MAX);
    Ok(averages.row_limit(limit).table())
}

fn program(repro: &Repro) -> Result<String> {
    let profile = load(&repro.profile)?;
    let operands =
        |event: &Event| profile.operands_of(event).map(|operands| operands.text()).unwrap_or_default();
    let site = |event: &Event| profile.site_of(event).unwrap_or_default();
    let is_chosen = |event: &&Event| {
        repro.operands.as_ref().is_none_or(|wanted| operands(event).contains(wanted))
            && repro.site.as_ref().is_none_or(|wanted| site(event).contains(wanted))
    };
    let calls = || profile.calls_of(&repro.operator);
    if let Some(call) = profile.slowest_where(&repro.operator, |event| is_chosen(&event)) {
        return profile.repro(call).map_err(text_of);
    }
    let others: BTreeSet<String> =
        calls().map(|event| format!("{} at {}", operands(event), site(event))).collect();
    if others.is_empty() {
        let mut names: Vec<&str> = profile.operators.iter().map(|operator| operator.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        bail!("no call of `{}` is in the profile\n  help: its operators are {names}", repro.operator);
    }
    let others: Vec<String> = others.into_iter().take(MOST_NAMED).collect();
    bail!("no call of `{}` is like that\n  help: there are {}", repro.operator, others.join("; "))
}
