//! Runs a folder of recorded calls: a line per overload, `NAME passed/total`, with the first failure below it, and last
//! `N passed, M failed`.
//!
//! ```text
//! parity DIR [--only SUBSTR] [--declared] [--all-failures] [--device cuda:0]
//! ```
//!
//! With `--device`, tensors are moved there first, and results are read back. Overloads that the library does not declare count as failed; `--declared` leaves them out and says
//! how many they were. The exit code is 1 if a case failed, 2 if the folder cannot be read.

use std::path::PathBuf;
use std::process::ExitCode;

use opsmith::Device;
use opsmith_tests::parity::{Selection, overloads, run_overload};

const USAGE: &str = "usage: parity DIR [--only SUBSTR] [--declared] [--all-failures] [--device cuda:0]";

struct Options {
    folder: PathBuf,
    selection: Selection,
    all_failures: bool,
}

fn main() -> ExitCode {
    let outcome = options(std::env::args().skip(1)).and_then(|options| run(&options));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let (mut folder, mut selection, mut all_failures) = (None, Selection::default(), false);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => {
                selection.only = Some(args.next().ok_or_else(|| format!("`--only` needs a text\n{USAGE}"))?);
            }
            "--declared" => selection.declared = true,
            "--all-failures" => all_failures = true,
            "--device" => {
                let name = args.next().unwrap_or_default();
                let device =
                    Device::from_name(&name).ok_or_else(|| format!("`{name}` is no device\n{USAGE}"))?;
                selection.device = Some(device);
            }
            option if option.starts_with('-') => return Err(format!("unknown option `{option}`\n{USAGE}")),
            path if folder.is_none() => folder = Some(PathBuf::from(path)),
            extra => return Err(format!("one folder only, not `{extra}` as well\n{USAGE}")),
        }
    }
    let folder = folder.ok_or_else(|| USAGE.to_owned())?;
    Ok(Options { folder, selection, all_failures })
}

/// Whether every case passed.
fn run(options: &Options) -> Result<bool, String> {
    // A panic is reported as the failure of its case.
    std::panic::set_hook(Box::new(|_| {}));
    let (names, left_out) = overloads(&options.folder, &options.selection)?;
    let (mut passed, mut failed) = (0, 0);
    for name in &names {
        let report = run_overload(&options.folder, name, options.selection.device.unwrap_or(Device::CPU))?;
        println!("{report}");
        if options.all_failures {
            for failure in report.failures.iter().skip(1) {
                println!("    {}", failure.replace('\n', "\n    "));
            }
        }
        passed += report.passed();
        failed += report.failures.len();
    }
    if left_out > 0 {
        println!("{left_out} overloads are not declared and were left out");
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}
