//! Compilers of kernels: nvcc, and NVRTC where it alone is found.
//!
//! In: a text and an architecture. Out: an image with its resources, or the compiler's messages. Must not know archives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use opsmith_cuda::images::{CompiledImage, ImageTarget, KernelResources, options_for};
use opsmith_cuda::{Compiled, Nvrtc};

use super::texts::Text;

/// The compiler to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Choice {
    /// The program of the CUDA toolkit
    Nvcc,
    /// The library that programs use at run time
    Nvrtc,
}

/// A compiler that was found.
pub enum Compiler {
    Nvcc { program: PathBuf, title: String, folder: Folder },
    Nvrtc(&'static Nvrtc),
}

/// A folder for the files of nvcc, removed at the end.
pub struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

impl Compiler {
    /// The compiler of the choice, or nvcc if it is found, else NVRTC.
    ///
    /// # Errors
    /// If there is none, or nvcc does not run.
    pub fn find(choice: Option<Choice>, nvcc: Option<&Path>) -> Result<Compiler> {
        if let Some(program) = nvcc {
            return Compiler::nvcc(program);
        }
        let found = match choice {
            Some(Choice::Nvrtc) => return Ok(Compiler::Nvrtc(Nvrtc::find()?)),
            _ => opsmith_aot::nvcc(),
        };
        match (found, choice) {
            (Ok(program), _) => Compiler::nvcc(&program),
            (Err(error), Some(_)) => Err(error.into()),
            (Err(error), None) => {
                let other = Nvrtc::find().map_err(|other| anyhow::anyhow!("{error}\n{other}"))?;
                Ok(Compiler::Nvrtc(other))
            }
        }
    }

    fn nvcc(program: &Path) -> Result<Compiler> {
        let run = Command::new(program).arg("--version").output();
        let run = run.with_context(|| format!("cannot run {}", program.display()))?;
        let text = String::from_utf8_lossy(&run.stdout).into_owned();
        let version = text.split_whitespace().rev().find_map(|word| {
            word.strip_prefix('V').filter(|number| number.starts_with(|first: char| first.is_ascii_digit()))
        });
        let Some(version) = version.filter(|_| run.status.success()) else {
            bail!("{} --version names no version: it is no nvcc", program.display());
        };
        let folder = Folder(std::env::temp_dir().join(format!("opsmith-cuda-{}", std::process::id())));
        fs::create_dir_all(&folder.0).with_context(|| format!("cannot make {}", folder.0.display()))?;
        Ok(Compiler::Nvcc { program: program.to_owned(), title: format!("nvcc {version}"), folder })
    }

    /// Its name and version.
    pub fn title(&self) -> String {
        match self {
            Compiler::Nvcc { title, .. } => title.clone(),
            Compiler::Nvrtc(nvrtc) => format!("NVRTC {}.{}", nvrtc.version.0, nvrtc.version.1),
        }
    }

    /// Refuses architectures that the compiler does not know, before each kernel fails because of them.
    ///
    /// # Errors
    /// If there is one; the message lists those that it knows.
    pub fn check(&self, targets: &[ImageTarget]) -> Result<()> {
        let known: Vec<ImageTarget> = match self {
            Compiler::Nvcc { program, .. } => listed_by_nvcc(program),
            Compiler::Nvrtc(nvrtc) => {
                let all = nvrtc.architectures.iter();
                all.flat_map(|&own| [ImageTarget::Cubin(own), ImageTarget::Ptx(own)]).collect()
            }
        };
        let unknown = targets.iter().find(|target| !known.is_empty() && !known.contains(&target.of_all()));
        let Some(unknown) = unknown else { return Ok(()) };
        let alike = known.iter().filter(|target| target.is_cubin() == unknown.is_cubin());
        let names: Vec<String> = alike.map(ImageTarget::to_string).collect();
        bail!("{} does not know {unknown}: it knows {}", self.title(), names.join(", "))
    }

    /// Compiles a text for an architecture.
    ///
    /// # Errors
    /// The compiler's messages.
    pub fn compile(&self, text: &Text, target: ImageTarget) -> Result<CompiledImage, String> {
        let mut options = options_for(target);
        let mut compiled = match self {
            Compiler::Nvrtc(nvrtc) => {
                if target.is_cubin() {
                    options.push("--ptxas-options=-v".to_owned());
                }
                nvrtc.compile(&text.name, &text.text, target, &options).map_err(|error| error.to_string())?
            }
            Compiler::Nvcc { program, folder, .. } => by_nvcc(program, &folder.0, text, target, &options)?,
        };
        // PTX of NVRTC ends with a zero.
        while !target.is_cubin() && compiled.image.ends_with(&[0]) {
            compiled.image.pop();
        }
        if !contains(&compiled.image, b"opsmith_kernel") {
            return Err("it defines no kernel `opsmith_kernel`".to_owned());
        }
        Ok(CompiledImage {
            key: text.key.clone(),
            name: text.name.clone(),
            line: text.line.clone(),
            target,
            compiler: self.title(),
            resources: KernelResources::in_log(&compiled.log).filter(|_| target.is_cubin()),
            image: compiled.image,
        })
    }
}

/// The architectures that nvcc lists; none if it cannot.
fn listed_by_nvcc(program: &Path) -> Vec<ImageTarget> {
    let list = |option: &str| {
        let run = Command::new(program).arg(option).output();
        run.map(|run| String::from_utf8_lossy(&run.stdout).into_owned()).unwrap_or_default()
    };
    let lists = list("--list-gpu-code") + &list("--list-gpu-arch");
    lists.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn by_nvcc(
    program: &Path,
    folder: &Path,
    text: &Text,
    target: ImageTarget,
    options: &[String],
) -> Result<Compiled, String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (source, output) = (folder.join(format!("{number}.cu")), folder.join(format!("{number}.image")));
    // Messages name the source, as those of NVRTC do.
    let whole = format!("#line 1 \"{}\"\n{}", text.name, text.text);
    fs::write(&source, whole).map_err(|error| format!("cannot write {}: {error}", source.display()))?;
    let kind = if target.is_cubin() { "-cubin" } else { "-ptx" };
    let run = Command::new(program)
        .args(options)
        .args(["-Xptxas", "-v", kind, "-o"])
        .args([&output, &source])
        .output()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    let log = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    if !run.status.success() {
        return Err(if log.trim().is_empty() {
            format!("{}: {}", program.display(), run.status)
        } else {
            log
        });
    }
    let image = fs::read(&output).map_err(|error| format!("cannot read {}: {error}", output.display()))?;
    for file in [&source, &output] {
        _ = fs::remove_file(file);
    }
    Ok(Compiled { image, log })
}
