//! The generator on PyTorch's operators: import, check, generation, and ten times as many.
//!
//! The `opsmith` command is timed as users run it, process start included. It must be beside this program: `cargo build
//! --release --bin opsmith`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::harness::{CALL, Harness};

/// The factor between the numbers of operators in the larger and the smaller spec.
const TIMES: usize = 10;

pub fn run(harness: &mut Harness) -> Result<()> {
    // Minutes of work, which the command's own tests do too.
    if !harness.wants("gen") || harness.is_once() {
        return Ok(());
    }
    let program = std::env::current_exe()?.with_file_name(format!("opsmith{}", std::env::consts::EXE_SUFFIX));
    if !program.is_file() {
        eprintln!(
            "gen: there is no {}; build it with `cargo build --release --bin opsmith`",
            program.display()
        );
        return Ok(());
    }
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codegen/tests/data/pytorch");
    let folder = std::env::temp_dir().join(format!("opsmith-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = cases(harness, &Generator { program, data, folder: folder.clone() });
    fs::remove_dir_all(&folder)?;
    result
}

struct Generator {
    program: PathBuf,
    /// PyTorch's files.
    data: PathBuf,
    /// The folder for output.
    folder: PathBuf,
}

fn cases(harness: &mut Harness, generator: &Generator) -> Result<()> {
    let natives = fs::read_to_string(generator.data.join("native_functions.yaml"))?;
    let derivatives = fs::read_to_string(generator.data.join("derivatives.yaml"))?;
    let copies = |text: &str| (0..TIMES).map(|copy| renamed(text, copy)).collect::<String>();
    for (suffix, natives, derivatives) in
        [("", natives.clone(), derivatives.clone()), (".x10", copies(&natives), copies(&derivatives))]
    {
        let path = |name: &str| generator.folder.join(format!("{name}{suffix}")).display().to_string();
        let (native, derivative) = (path("native.yaml"), path("derivatives.yaml"));
        fs::write(&native, natives)?;
        fs::write(&derivative, derivatives)?;
        let (spec, out) = (path("spec.yaml"), path("out"));
        let import = ["import-torch", &native, &derivative, "-o", &spec];
        let check = ["check", "--stand-alone", &spec];
        let clean = ["generate", "--stand-alone", "--force", "--timings", &spec, "-o", &out];
        let unchanged = ["generate", "--stand-alone", &spec, "-o", &out];
        generator.run(&import)?;
        generator.run(&clean)?;
        harness.case(&format!("gen.import{suffix}"), CALL, || generator.run(&import));
        harness.case(&format!("gen.check{suffix}"), CALL, || generator.run(&check));
        harness.case(&format!("gen.clean{suffix}"), CALL, || generator.run(&clean));
        generator.run(&clean)?;
        harness.case(&format!("gen.unchanged{suffix}"), CALL, || generator.run(&unchanged));
        let shown = String::from_utf8(generator.run(&clean)?.stdout)?;
        let memory = shown.lines().find_map(|line| line.strip_prefix("memory")?.trim().strip_suffix(" MB"));
        let megabytes: Option<f64> = memory.and_then(|number| number.parse().ok());
        println!("{}", json!({"lib": "opsmith", "case": format!("gen.memory{suffix}"), "mb": megabytes}));
    }
    Ok(())
}

impl Generator {
    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let output = Command::new(&self.program).args(arguments).output().context("cannot run opsmith")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        Ok(output)
    }
}

/// The entries under unique names; formulas call the first copy's.
fn renamed(text: &str, copy: usize) -> String {
    if copy == 0 {
        return text.to_owned();
    }
    let mut renamed = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive('\n') {
        let key = ["- func: ", "- name: ", "  autogen: "].into_iter().find(|key| line.starts_with(key));
        match key {
            Some(key) => {
                let rest = line[key.len()..].trim_start();
                let names: Vec<String> = match key.contains("autogen") {
                    true => rest.split(", ").map(|name| own_name(name, copy)).collect(),
                    false => vec![own_name(rest, copy)],
                };
                renamed.push_str(key);
                renamed.push_str(&names.join(", "));
            }
            None => renamed.push_str(line),
        }
    }
    renamed
}

/// A name that only one copy has. `__and__` stays a special method of Python, but is no longer an operator.
fn own_name(name: &str, copy: usize) -> String {
    match name.strip_prefix("__") {
        Some(rest) => format!("__c{copy}{rest}"),
        None => format!("c{copy}_{name}"),
    }
}
