//! Times operators and prints one JSON line per case, with the names and fields of the programs for other libraries, so
//! that `compare.py` can join them.
//!
//! The protocol is theirs too: wait until the machine is idle, warm up, choose a number of calls that takes about 4 ms,
//! repeat that at least 20 times, print the median.

mod groups;
mod harness;
mod machine;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use opsmith::Device;

use harness::Harness;

/// Times operators and prints one JSON line a case.
#[derive(Parser)]
struct Arguments {
    /// Only cases whose name contains this, such as `ovh.` or `ew.add.1e6`
    #[arg(long, default_value = "")]
    only: String,
    /// Run each case once and time nothing: whether all cases still work
    #[arg(long)]
    once: bool,
    /// Numbers of threads, each timed in a process of its own
    #[arg(long, value_delimiter = ',', default_value = "1")]
    threads: Vec<usize>,
    /// A label for the run, printed with each case
    #[arg(long, default_value = "r1")]
    run: String,
    /// Program that measures the machine's own limits, called with `--quick`; its JSON output goes
    /// with each case
    #[arg(long, value_name = "PROGRAM")]
    limits: Option<PathBuf>,
    /// Times operators on a device in place of all other cases: `cuda`, `cuda:1`
    #[arg(long, value_parser = device)]
    device: Option<Device>,
    /// Longest wait for a quiet machine before a case, in seconds
    #[arg(long, env = "GATE_S", default_value_t = 60.0)]
    gate: f64,
}

fn device(name: &str) -> Result<Device, String> {
    match Device::from_name(name) {
        Some(device) if device != Device::CPU => Ok(device),
        _ => Err("not a device such as `cuda` or `cuda:1`".to_owned()),
    }
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    ensure!(arguments.threads.iter().all(|&count| count > 0), "a number of threads is at least 1");
    match arguments.threads.as_slice() {
        [threads] => {
            opsmith::runtime::parallel::set_num_threads(*threads)?;
            let mut harness = Harness::new(*threads, &arguments);
            harness.print_info();
            match arguments.device {
                None => groups::run(&mut harness)?,
                Some(device) => groups::device::run(&mut harness, device)?,
            }
        }
        // State that a process sets up for one number of threads must not influence another's.
        several => {
            for threads in several {
                let status = Command::new(std::env::current_exe()?)
                    .args(["--threads", &threads.to_string(), "--only", &arguments.only])
                    .args(["--run", &arguments.run, "--gate", &arguments.gate.to_string()])
                    .args(arguments.once.then_some("--once"))
                    .args(
                        arguments
                            .device
                            .iter()
                            .flat_map(|device| ["--device".to_owned(), device.to_string()]),
                    )
                    .args(arguments.limits.iter().flat_map(|path| ["--limits".as_ref(), path.as_os_str()]))
                    .status()
                    .context("cannot run the program again")?;
                ensure!(status.success(), "timing with {threads} threads failed");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
