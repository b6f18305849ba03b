//! `opsmith bridge`: a folder with operators for another framework.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use opsmith_codegen::pipeline;
use opsmith_tools::bridge::{self, Chosen, Framework, LibraryCrate, Settings};
use opsmith_tools::scaffold::{Dependencies, Refusal};

use crate::project::{self, BuildsOn};
use crate::report::{self, Color, Format};
use crate::{Outcome, files, init};

/// Makes a folder with operators of a spec for another framework, to build and ship
#[derive(clap::Args)]
#[command(after_help = "\
The folder has the header of the C interface of kernels, a crate that builds them into a library with it, and the
framework's sources, which call it. Its README.md says how to build and use it. A folder for CANN has definitions
without kernels.

Examples:
  opsmith bridge torch my_ops/ops.yaml -o my_ops_torch
      All operators of the spec that a framework can have, for PyTorch.
  opsmith bridge torch my_ops/ops.yaml softclip mirror -o my_ops_torch
      Two of them.
  opsmith bridge jax --stock gelu layer_norm -o stock_jax
      Operators of opsmith itself.

Exit status: 0, 1 if the spec has mistakes, 2 if an operator cannot be one of the framework's, or the folder is in use.")]
pub struct Arguments {
    /// The framework
    #[arg(value_enum)]
    framework: FrameworkName,
    /// The spec, in a crate; then names of operators, with or without overload. With --stock names alone
    #[arg(value_name = "SPEC [OP]", required_unless_present = "stock")]
    names: Vec<String>,
    /// Folder to make; it may exist if it is empty
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Operators of opsmith itself
    #[arg(long)]
    stock: bool,
    /// Namespace of the operators in the framework, if not the crate's name
    #[arg(long)]
    namespace: Option<String>,
    /// Checkout of opsmith to depend on; by default the one that this command was built from, if it is
    /// still there, else the released version
    #[arg(long, value_name = "DIR")]
    opsmith: Option<PathBuf>,
    #[command(flatten)]
    builds_on: BuildsOn,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum FrameworkName {
    Torch,
    Jax,
    Mindspore,
    TvmFfi,
    Onnxruntime,
    Cann,
}

impl From<FrameworkName> for Framework {
    fn from(name: FrameworkName) -> Framework {
        match name {
            FrameworkName::Torch => Framework::Torch,
            FrameworkName::Jax => Framework::Jax,
            FrameworkName::Mindspore => Framework::MindSpore,
            FrameworkName::TvmFfi => Framework::TvmFfi,
            FrameworkName::Onnxruntime => Framework::Onnxruntime,
            FrameworkName::Cann => Framework::Cann,
        }
    }
}

/// The spec of a call, its operators' names, and the crate that has them.
struct Source<'a> {
    spec: PathBuf,
    names: &'a [String],
    library: LibraryCrate,
}

impl Source<'_> {
    fn of<'a>(arguments: &'a Arguments, dependencies: &Dependencies) -> Result<Source<'a>> {
        if arguments.stock {
            let Dependencies::Path(checkout) = dependencies else {
                bail!("the spec of opsmith's own operators is in its checkout; name it with --opsmith");
            };
            let dependency = dependencies.of("opsmith", "generated");
            let library = LibraryCrate { package: "opsmith".to_owned(), dependency };
            let spec = Path::new(checkout).join("ops.yaml");
            return Ok(Source { spec, names: &arguments.names, library });
        }
        let Some((spec, names)) = arguments.names.split_first() else {
            bail!("no spec is named");
        };
        let spec = PathBuf::from(spec);
        if !spec.exists() {
            bail!("cannot read {}; for operators of opsmith itself, give --stock", spec.display());
        }
        let Some((package, folder)) = project::crate_of(&spec)? else {
            bail!(
                "{} is in no crate, which the library of kernels would be built from; `opsmith init DIR` makes one",
                spec.display()
            );
        };
        let path = folder.display().to_string().replace('\\', "/");
        let dependency = format!("{{ path = {path:?} }}");
        Ok(Source { spec, names, library: LibraryCrate { package, dependency } })
    }
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let folder = std::path::absolute(&arguments.output)?;
    let in_use = folder.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if in_use || folder.is_file() {
        bail!("{} is there already and not empty; nothing was written", arguments.output.display());
    }
    let dependencies = init::dependencies(arguments.opsmith.as_deref())?;
    let Source { spec, names, library } = Source::of(arguments, &dependencies)?;
    let config = arguments.builds_on.config(&spec)?;
    let checked = pipeline::check(&config)?;
    if report::refuse_mistakes(&checked, Format::Text, Color::Auto.on_stderr())? {
        return Ok(Outcome::Mistakes);
    }
    let chosen = Chosen::of(&checked.model, names, arguments.framework.into()).map_err(anyhow::Error::msg)?;
    let namespace = arguments.namespace.clone().unwrap_or_else(|| library.package.replace('-', "_"));
    let settings = Settings {
        framework: arguments.framework.into(),
        namespace: &namespace,
        spec: &spec.file_name().unwrap_or(spec.as_os_str()).to_string_lossy(),
        library: &library,
        dependencies: &dependencies,
        inside_workspace: init::is_inside_workspace(&folder),
    };
    let made = bridge::folder(&folder, &checked.model, &chosen, &settings);
    let changes = made.map_err(|refusal| match refusal {
        Refusal::Because(text) => anyhow::anyhow!(text),
        Refusal::Mistakes(..) => anyhow::anyhow!("a template has mistakes, which is a defect"),
    })?;
    files::apply(&changes).context("the folder is not complete")?;
    let shown = arguments.output.display();
    println!("made {shown} with {} operators in the namespace `{namespace}`", chosen.operators.len());
    for change in &changes {
        println!("  {}", change.path.strip_prefix(&folder).unwrap_or(&change.path).display());
    }
    for left_out in &chosen.left_out {
        println!("left out: {}, because {}", left_out.name, left_out.reason);
    }
    println!("next: see {}", arguments.output.join("README.md").display());
    Ok(Outcome::Fine)
}
