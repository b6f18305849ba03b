//! `opsmith init`: a new crate, or package of Python, with operators of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use opsmith_tools::scaffold::{self, Dependencies, Refusal};

use crate::{Outcome, files};

/// Makes a crate with operators of its own, which builds and tests at once
#[derive(clap::Args)]
#[command(after_help = "\
The crate has an operator that is an expression, one with a kernel in Rust and one with a kernel in C++,
with gradients and tests.

Examples:
  opsmith init my_ops
      In the new folder my_ops; then `cd my_ops && cargo test`.
  opsmith init crates/ops --name company-ops
      With another name than the folder's.
  opsmith init my_ops --opsmith ../opsmith
      With the opsmith of a checkout.
  opsmith init --python my_ops
      A package of Python: `cd my_ops && pip install . && pytest`.

Exit status: 0, or 2 if the folder is in use or cannot be written.")]
pub struct Arguments {
    /// Folder to make; it may exist if it is empty
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Name of the crate, if not the folder's
    #[arg(long)]
    name: Option<String>,
    /// Make a package of Python, which maturin builds: a module with these operators, and its stubs
    #[arg(long)]
    python: bool,
    /// Checkout of opsmith to depend on; by default the one that this command was built from, if it is
    /// still there, else the released version
    #[arg(long, value_name = "DIR")]
    opsmith: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let folder = std::path::absolute(&arguments.folder)?;
    let in_use = folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if in_use || folder.is_file() {
        bail!("{} is there already and not empty; nothing was written", arguments.folder.display());
    }
    let of_folder = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = arguments.name.clone().unwrap_or(of_folder);
    let dependencies = dependencies(arguments.opsmith.as_deref())?;
    let inside = is_inside_workspace(&folder);
    let make = if arguments.python { scaffold::python } else { scaffold::krate };
    let changes = make(&folder, &name, &dependencies, inside).map_err(|refusal| match refusal {
        Refusal::Because(text) => anyhow::anyhow!(text),
        Refusal::Mistakes(..) => anyhow::anyhow!("the template has mistakes, which is a defect"),
    })?;
    files::apply(&changes).context("the crate is not complete")?;
    let shown = arguments.folder.display();
    let made = if arguments.python { "package of Python" } else { "crate" };
    println!("made the {made} `{name}` in {shown}");
    for change in &changes {
        println!("  {}", change.path.strip_prefix(&folder).unwrap_or(&change.path).display());
    }
    let next = if arguments.python { "pip install '.[test]' && pytest" } else { "cargo test" };
    println!("next: cd {shown} && {next}");
    println!(
        "then: opsmith new 'my_op(Tensor self) -> Tensor' --spec {}",
        arguments.folder.join("ops.yaml").display()
    );
    Ok(Outcome::Fine)
}

/// The source of opsmith's crates: a checkout that the user names, the one that this command was built from, or the registry.
pub fn dependencies(checkout: Option<&Path>) -> Result<Dependencies> {
    Ok(match checkout {
        Some(checkout) => {
            let checkout = std::path::absolute(checkout)?;
            if !is_checkout(&checkout) {
                bail!("{} is no checkout of opsmith: it has no generated/Cargo.toml", checkout.display());
            }
            Dependencies::Path(checkout.display().to_string())
        }
        None => match own_checkout() {
            Some(checkout) => Dependencies::Path(checkout.display().to_string()),
            None => Dependencies::Version(env!("CARGO_PKG_VERSION").to_owned()),
        },
    })
}

/// Whether a folder is below one with a workspace of cargo.
pub fn is_inside_workspace(folder: &Path) -> bool {
    folder.ancestors().skip(1).any(is_workspace)
}

/// The checkout that this command was built from.
fn own_checkout() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    is_checkout(root).then(|| root.to_owned())
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("generated/Cargo.toml").is_file() && folder.join("codegen/Cargo.toml").is_file()
}

fn is_workspace(folder: &Path) -> bool {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
}
