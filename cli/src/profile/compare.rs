//! `opsmith profile compare`: one operator over several sizes, in several builds or on several devices.
//!
//! In: crates that have the operator, sizes, attributes. Out: a table, and a picture of the curves. Each crate runs a program that
//! is put into its `examples` for as long as it runs, so that it is built as the crate's own programs are.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use opsmith_aot::AttrValue;
use opsmith_core::DType;
use opsmith_profile::{Comparison, Curve, Timing, timings};

/// Times one operator over several sizes, in several builds or on several devices, and draws the curves
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  opsmith profile compare mm --shapes 64x64,64x64 --shapes 512x512,512x512 \\
      --in before/generated --in generated -o mm.svg
      Two builds of the stock library: the folders of their crates.
  opsmith profile compare softmax.int --shapes 100x1000 --attr dim=1 --in . --device cpu --device cuda:0
      Two devices, from a crate that depends on the library.")]
pub struct Compare {
    /// The operator's full name, such as `add.Tensor`
    #[arg(value_name = "OPERATOR")]
    operator: String,
    /// The sizes of a call's tensors, such as `64x32,32x8`; once for each call
    #[arg(long, value_name = "SIZES", required = true)]
    shapes: Vec<String>,
    /// The tensors' dtype
    #[arg(long, value_name = "DTYPE", default_value = "float32")]
    dtype: String,
    /// Another argument: a truth value, number, list in brackets, dtype or text
    #[arg(long, value_name = "NAME=VALUE")]
    attr: Vec<String>,
    /// The folder of a crate that has the operator or depends on one that has; once for each build
    #[arg(long = "in", value_name = "FOLDER", default_value = ".")]
    folders: Vec<PathBuf>,
    /// A device, `cpu` or `cuda:0`; once for each
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Vec<String>,
    /// The profile of cargo that the programs are built with
    #[arg(long, value_name = "NAME", default_value = "release")]
    cargo_profile: String,
    /// The picture to write (SVG)
    #[arg(short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The first part of the example's name while it runs; the number of the process follows.
const NAME: &str = "opsmith_compare_";

/// The name of this process's example.
fn example_name() -> String {
    format!("{NAME}{}", std::process::id())
}

pub fn run(compare: &Compare) -> Result<()> {
    let mut comparison = comparison(compare)?;
    let mut curves = Vec::new();
    let mut builds: Vec<Build> = Vec::new();
    for folder in &compare.folders {
        let build = Build::read(folder, &builds)?;
        comparison.library.clone_from(&build.library);
        let times =
            times(folder, &comparison.program(), &compare.cargo_profile, build.own_target.as_deref())?;
        builds.push(build);
        for device in &compare.device {
            let name = match (compare.folders.len(), compare.device.len()) {
                (1, _) => device.clone(),
                (_, 1) => folder.display().to_string(),
                _ => format!("{} on {device}", folder.display()),
            };
            let timings: Vec<Timing> =
                times.iter().filter(|timing| timing.device == *device).cloned().collect();
            if timings.is_empty() {
                bail!("{}: the program printed no times for the device `{device}`", folder.display());
            }
            curves.push(Curve { name, timings });
        }
    }
    super::print(&comparison.table(&curves))?;
    match &compare.output {
        Some(output) => super::write(output, &comparison.picture(&curves)),
        None => Ok(()),
    }
}

fn comparison(compare: &Compare) -> Result<Comparison> {
    let dtype = DType::from_name(&compare.dtype).with_context(|| {
        let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        format!("`{}` is no dtype\n  help: write one of {}", compare.dtype, names.join(", "))
    })?;
    Ok(Comparison {
        operator: compare.operator.clone(),
        library: String::new(),
        shapes: compare.shapes.iter().map(|text| shapes(text)).collect::<Result<_>>()?,
        dtype: dtype.ident().to_owned(),
        attributes: compare.attr.iter().map(|text| attribute(text)).collect::<Result<_>>()?,
        devices: compare.device.iter().map(|text| device(text)).collect::<Result<_>>()?,
    })
}

/// `64x32,32x8`; `1` for one number, nothing between commas for a tensor without dimensions.
fn shapes(text: &str) -> Result<Vec<Vec<i64>>> {
    let size = |size: &str| size.trim().parse::<u32>().map(i64::from);
    let sizes = |sizes: &str| match sizes.trim() {
        "" => Ok(Vec::new()),
        sizes => sizes.split('x').map(size).collect(),
    };
    let shapes: Result<Vec<Vec<i64>>, _> = text.split(',').map(sizes).collect();
    shapes.map_err(|_| {
        anyhow::anyhow!("`{text}` gives no sizes\n  help: write them as in `--shapes 64x32,32x8`")
    })
}

/// An attribute as an expression of the type `Value`; its text is read as that of `aot run`, and the name of a dtype is one.
fn attribute(text: &str) -> Result<(String, String)> {
    let (name, value) = crate::aot::pair("--attr", text)?;
    let value = match AttrValue::parse(value.trim()) {
        AttrValue::Bool(value) => format!("Value::Bool({value})"),
        AttrValue::Int(value) => format!("Value::Int({value})"),
        AttrValue::Float(value) => format!("Value::Float({value:?})"),
        AttrValue::Str(text) => match DType::from_name(&text) {
            Some(dtype) => format!("Value::DType(DType::{})", dtype.ident()),
            None => format!("Value::Str({text:?}.to_owned())"),
        },
        AttrValue::Ints(values) => format!("Value::Ints(vec!{values:?})"),
        AttrValue::Floats(values) => format!("Value::Floats(vec!{values:?})"),
        AttrValue::IntLists(_) | AttrValue::FloatLists(_) => bail!(
            "--attr {text}: lists of lists are not compared\n  help: write a program for this call, as `opsmith profile repro` does"
        ),
    };
    Ok((name.trim().to_owned(), value))
}

fn device(text: &str) -> Result<String> {
    let (name, index) = text.split_once(':').unwrap_or((text, "0"));
    match (name, index.parse::<u32>()) {
        ("cpu", Ok(0)) => Ok("Device::CPU".to_owned()),
        ("cuda", Ok(index)) => Ok(format!("Device::cuda({index})")),
        _ => bail!("`{text}` is no device\n  help: write `cpu` or `cuda:0`"),
    }
}

/// A crate, and the folders by which cargo tells builds apart.
struct Build {
    /// Its library, as Rust names it.
    library: String,
    /// The workspace's folder, and the names and versions of its crates.
    workspace: String,
    members: BTreeSet<String>,
    /// Cargo's folder for compiled files, and another one in place of it.
    target: PathBuf,
    own_target: Option<PathBuf>,
}

impl Build {
    /// The crate in a folder, to be built after others.
    fn read(folder: &Path, others: &[Build]) -> Result<Build> {
        let manifest = folder.join("Cargo.toml");
        let facts = facts(folder, &manifest)?;
        let library = library(folder, &manifest, &facts)?;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let packages = facts["packages"].as_array().into_iter().flatten();
        let members =
            packages.map(|one| format!("{} {}", text(&one["name"]), text(&one["version"]))).collect();
        let (workspace, target) = (text(&facts["workspace_root"]), text(&facts["target_directory"]).into());
        let mut build = Build { library, workspace, members, target, own_target: None };
        if others.iter().any(|other| build.is_taken_for(other)) {
            build.own_target = Some(build.target.join(format!("opsmith-compare-{}", others.len())));
        }
        Ok(build)
    }

    /// Whether cargo takes crates of one for those of the other: it knows crates of a workspace by their place in it, so two copies of one
    /// that share a folder of compiled crates, as `CARGO_TARGET_DIR` says, would both run the first build.
    fn is_taken_for(&self, other: &Build) -> bool {
        self.target == other.target
            && self.workspace != other.workspace
            && !self.members.is_disjoint(&other.members)
    }
}

/// The facts of cargo about the workspace of a crate.
fn facts(folder: &Path, manifest: &Path) -> Result<serde_json::Value> {
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).context("cargo's metadata")
}

/// The library of a crate, as Rust names it.
fn library(folder: &Path, manifest: &Path, facts: &serde_json::Value) -> Result<String> {
    let own = manifest.canonicalize().with_context(|| format!("cannot read {}", manifest.display()))?;
    let packages = facts["packages"].as_array().into_iter().flatten();
    let package = packages.into_iter().find(|package| {
        package["manifest_path"].as_str().and_then(|path| Path::new(path).canonicalize().ok()).as_ref()
            == Some(&own)
    });
    let targets = package.and_then(|package| package["targets"].as_array()).into_iter().flatten();
    let library = targets.into_iter().find(|target| {
        target["kind"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|kind| kind.as_str().is_some_and(|kind| kind.ends_with("lib")))
    });
    match library.and_then(|target| target["name"].as_str()) {
        Some(name) => Ok(name.replace('-', "_")),
        None => bail!(
            "{}: there is no library in this crate\n  help: name the folder of the crate that has the operator: --in generated",
            folder.display()
        ),
    }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A file that is there while the value lives, and the folder if it was not there before.
struct Example {
    file: PathBuf,
    folder: Option<PathBuf>,
}

impl Example {
    fn write(crate_folder: &Path, program: &str) -> Result<Example> {
        let folder = crate_folder.join("examples");
        let is_new = match std::fs::create_dir(&folder) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error).with_context(|| format!("cannot make {}", folder.display())),
        };
        remove_stale(&folder);
        let file = folder.join(format!("{}.rs", example_name()));
        let example = Example { file, folder: is_new.then_some(folder) };
        let shown = example.file.display().to_string();
        let created = std::fs::File::create_new(&example.file);
        match created.and_then(|mut file| std::io::Write::write_all(&mut file, program.as_bytes())) {
            Ok(()) => Ok(example),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // It is the user's.
                std::mem::forget(example);
                bail!("{shown} is there already\n  help: remove the file")
            }
            Err(error) => Err(error).with_context(|| format!("cannot write {shown}")),
        }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Removes the examples of comparisons that were interrupted: those of processes that are gone, where the system tells.
fn remove_stale(folder: &Path) {
    let processes = Path::new("/proc");
    if !processes.join(std::process::id().to_string()).exists() {
        return;
    }
    for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)?.strip_suffix(".rs"));
        if process.is_some_and(|number| number.parse::<u32>().is_ok() && !processes.join(number).exists()) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

fn times(folder: &Path, program: &str, cargo_profile: &str, target: Option<&Path>) -> Result<Vec<Timing>> {
    let example = Example::write(folder, program)?;
    eprintln!("{}: building and timing", folder.display());
    let mut run = cargo();
    run.args(["run", "--quiet", "--profile", cargo_profile, "--example", &example_name(), "--manifest-path"])
        .arg(folder.join("Cargo.toml"));
    if let Some(target) = target {
        run.arg("--target-dir").arg(target);
    }
    let output = run.stderr(std::process::Stdio::inherit()).output().context("cannot run cargo")?;
    drop(example);
    if !output.status.success() {
        bail!("{}: the program did not end well; its messages are above", folder.display());
    }
    timings(&String::from_utf8_lossy(&output.stdout)).map_err(super::text_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_workspace_are_built_apart() {
        let build = |workspace: &str, member: &str, target: &str| Build {
            library: "shop".to_owned(),
            workspace: workspace.to_owned(),
            members: BTreeSet::from([member.to_owned()]),
            target: target.into(),
            own_target: None,
        };
        let first = build("/before", "shop 0.1.0", "/target");
        assert!(build("/after", "shop 0.1.0", "/target").is_taken_for(&first));
        assert!(!build("/after", "shop 0.1.0", "/after/target").is_taken_for(&first));
        assert!(!build("/after", "shop 0.2.0", "/target").is_taken_for(&first));
        assert!(!build("/before", "shop 0.1.0", "/target").is_taken_for(&first));
    }

    #[test]
    fn examples_of_processes_that_are_gone_are_removed() {
        let folder = std::env::temp_dir().join(format!("opsmith-stale-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // No process has that number: those of Linux end before.
        let gone = folder.join(format!("{NAME}4294967294.rs"));
        let others = [format!("{}.rs", example_name()), format!("{NAME}mine.rs"), "work.rs".to_owned()];
        let others = others.map(|name| folder.join(name));
        others.iter().chain([&gone]).for_each(|file| std::fs::write(file, "").unwrap());
        remove_stale(&folder);
        assert_eq!(gone.exists(), !Path::new("/proc/self").exists());
        assert!(others.iter().all(|file| file.exists()));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn sizes_attributes_and_devices_are_read() {
        assert_eq!(shapes("64x32,32x8").unwrap(), [[64, 32], [32, 8]]);
        assert_eq!(shapes("5,").unwrap(), [vec![5], vec![]]);
        assert!(shapes("5xx").is_err() && shapes("-1").is_err());
        let value = |text: &str| attribute(text).unwrap().1;
        assert_eq!(value("dim=1"), "Value::Int(1)");
        assert_eq!(value("p=0.5"), "Value::Float(0.5)");
        assert_eq!(value("dim=[0, -1]"), "Value::Ints(vec![0, -1])");
        assert_eq!(value("mode=tanh"), "Value::Str(\"tanh\".to_owned())");
        assert_eq!(value("dtype=float64"), "Value::DType(DType::F64)");
        assert_eq!(value("keepdim=true"), "Value::Bool(true)");
        assert!(attribute("dim").is_err() && attribute("pairs=[[1, 2], [3]]").is_err());
        assert_eq!(device("cuda:1").unwrap(), "Device::cuda(1)");
        assert!(device("tpu").is_err() && device("cpu:1").is_err());
    }
}
