//! Compilers of kernels: which one, with which flags, and its messages.
//!
//! In: a source file and flags of the user. Out: a shared object and a list of the files that were read,
//! or an error with the compiler's own messages. Must not know the cache.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use opsmith_runtime::error::{Error, Result};

/// The language of a source file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// `.cc`, `.cpp`, `.cxx`
    Cpp,
    /// `.cu`
    Cuda,
}

impl Language {
    /// The language of a source file; `None` for anything else, which is taken for a library.
    pub fn of(path: &Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "cc" | "cpp" | "cxx" => Some(Language::Cpp),
            "cu" => Some(Language::Cuda),
            _ => None,
        }
    }
}

/// A compiler that was found.
#[derive(Clone, Debug)]
pub(super) struct Compiler {
    language: Language,
    program: PathBuf,
    /// The file behind all links, its size and when it was changed.
    identity: String,
}

/// The program `nvcc`: that of `OPSMITH_NVCC`, `NVCC`, the path, `CUDA_HOME`, `CUDA_PATH`, or `/usr/local/cuda`.
///
/// # Errors
/// If there is none; the help names the package to install.
pub fn nvcc() -> Result<PathBuf> {
    Compiler::find(Language::Cuda).map(|compiler| compiler.program)
}

/// Environment variables that change the output of a compiler.
const INFLUENCES: [&str; 8] = [
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
];

impl Compiler {
    /// The compiler of a language: `OPSMITH_CXX`, `CXX`, or `c++`, `g++`, `clang++` of the path; for CUDA
    /// `OPSMITH_NVCC`, `NVCC`, `nvcc` of the path, or that of `CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`.
    ///
    /// # Errors
    /// If there is none; the help names the package to install.
    pub fn find(language: Language) -> Result<Compiler> {
        let (variables, names): (&[&str], &[&str]) = match language {
            Language::Cpp => (&["OPSMITH_CXX", "CXX"], &["c++", "g++", "clang++"]),
            Language::Cuda => (&["OPSMITH_NVCC", "NVCC"], &["nvcc"]),
        };
        for variable in variables {
            let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) else { continue };
            return in_path(&value.to_string_lossy())
                .and_then(|program| Compiler::at(language, program))
                .ok_or_else(|| {
                    Error::not_found(format!("{variable} names `{}`, which is no program", value.display()))
                        .with_help(format!("correct {variable}, or unset it"))
                });
        }
        let cuda = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
        let toolkits = cuda.chain([PathBuf::from("/usr/local/cuda")]).map(|folder| folder.join("bin/nvcc"));
        let found = names
            .iter()
            .find_map(|name| in_path(name))
            .or_else(|| toolkits.filter(|_| language == Language::Cuda).find(|program| program.is_file()));
        found.and_then(|program| Compiler::at(language, program)).ok_or_else(|| match language {
            Language::Cpp => Error::not_found("there is no C++ compiler: none of c++, g++, clang++ is in PATH")
                .with_help("install one (Debian: apt-get install g++), or name it in OPSMITH_CXX"),
            Language::Cuda => Error::not_found("there is no CUDA compiler: nvcc is neither in PATH nor in CUDA_HOME")
                .with_help(
                    "install the CUDA toolkit (Debian: apt-get install nvidia-cuda-toolkit; Python: pip install nvidia-cuda-nvcc), \
                     or name nvcc in OPSMITH_NVCC",
                ),
        })
    }

    fn at(language: Language, program: PathBuf) -> Option<Compiler> {
        let real = fs::canonicalize(&program).ok()?;
        let facts = fs::metadata(&real).ok()?;
        let identity =
            format!("{} {} {}.{}", real.display(), facts.size(), facts.mtime(), facts.mtime_nsec());
        Some(Compiler { language, program, identity })
    }

    /// Everything besides sources and flags that decides the output.
    pub fn identity(&self, flags: &[String]) -> String {
        let mut text = format!("{} {} {}", self.identity, env::consts::ARCH, env::consts::OS);
        for variable in INFLUENCES {
            if let Some(value) = env::var_os(variable) {
                text.push_str(&format!(" {variable}={}", value.display()));
            }
        }
        if flags.iter().any(|flag| flag.contains("native")) {
            text.push_str(&processor());
        }
        text
    }

    /// The flags of every call: the interface's documented ones, and optimisation.
    pub fn default_flags(&self) -> Vec<String> {
        let flags: &[&str] = match self.language {
            Language::Cpp => &["-std=c++17", "--shared", "-fPIC", "-D_GLIBCXX_USE_CXX11_ABI=0", "-O3"],
            Language::Cuda => &[
                "-std=c++17",
                "--shared",
                "-Xcompiler",
                "-fPIC",
                "-O3",
                "-gencode",
                "arch=compute_80,code=sm_80",
                // For devices of later generations, whose driver compiles it when it is loaded.
                "-gencode",
                "arch=compute_80,code=compute_80",
                "--use_fast_math",
                "--expt-relaxed-constexpr",
                "--expt-extended-lambda",
                "-D_GLIBCXX_USE_CXX11_ABI=0",
            ],
        };
        let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let gnu = !self.identity.contains("clang");
        if self.language == Language::Cpp && gnu {
            // Libraries with unique symbols are never unloaded.
            flags.push("-fno-gnu-unique".to_owned());
        }
        if self.language == Language::Cuda {
            flags.extend(self.library_folder().map(|folder| format!("-L{}", folder.display())));
        }
        flags
    }

    /// Where the libraries of a CUDA toolkit are, if its compiler does not look there: Python's packages
    /// have them in `lib`, and `nvcc` looks into `lib64`.
    fn library_folder(&self) -> Option<PathBuf> {
        let program = fs::canonicalize(&self.program).ok()?;
        let toolkit = program.parent()?.parent()?;
        let folder = toolkit.join("lib");
        let is_there = folder.join("libcudart_static.a").is_file() && !toolkit.join("lib64").is_dir();
        is_there.then_some(folder)
    }

    /// Compiles `source` to `output`, and writes which files were read to `dependencies`.
    ///
    /// # Errors
    /// If the compiler cannot be run, or refuses the source: then its messages are the error's.
    pub fn compile(
        &self,
        source: &Path,
        flags: &[String],
        before: &Path,
        output: &Path,
        dependencies: &Path,
    ) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.arg("-include").arg(before).arg("-MD").arg("-MF").arg(dependencies);
        // The rule's name, which else is the output's path with whatever characters it has.
        command.arg("-MT").arg("out");
        // The source stands before the flags: linkers leave out libraries that nothing before them wants.
        command.arg("-o").arg(output).arg(source).args(flags);
        let run = command.output().map_err(|error| {
            Error::io(format!("the compiler `{}` cannot be run: {error}", self.program.display()))
        })?;
        if run.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&run.stderr);
        let said = if said.trim().is_empty() { String::from_utf8_lossy(&run.stdout) } else { said };
        Err(Error::kernel(format!("{} does not compile:\n{}", source.display(), said.trim_end()))
            .with_note(format!("compiled with: {} {}", self.program.display(), flags.join(" "))))
    }
}

/// A program by its path, or by its name in the folders of `PATH`.
fn in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The features that `-march=native` selects here.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let wanted = ["model name", "flags", "Features"];
    text.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| wanted.iter().any(|name| line.starts_with(name)))
        .collect()
}
