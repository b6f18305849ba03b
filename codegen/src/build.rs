//! What a build script calls: generate, compile the C and C++ kernels, tell cargo what was read.

use std::path::{Path, PathBuf};

use crate::config::{Config, Parent};
use crate::diagnostics::{Severity, render, summary};
use crate::emit;
use crate::model::{KernelSource, Model};
use crate::output;
use crate::pipeline::{self, Checked, Failure};

/// Generates the library of a crate that depends on `opsmith`, from the spec at `path`.
///
/// This one call is the whole body of a build script's `main`:
///
/// ```no_run
/// opsmith_codegen::build("ops.yaml");
/// ```
///
/// Mistakes in the spec are printed with their places, and the build fails.
pub fn build(path: impl AsRef<Path>) {
    let mut config = Config::new(path);
    if let Ok(name) = std::env::var("CARGO_PKG_NAME") {
        config.library = name;
    }
    // The stock library tells where its spec and headers are; cargo hands that on to direct dependents.
    println!("cargo::rerun-if-env-changed=DEP_OPSMITH_SPEC");
    match (std::env::var("DEP_OPSMITH_SPEC"), std::env::var("DEP_OPSMITH_INCLUDE")) {
        (Ok(spec), Ok(include)) => {
            config.parents.push(Parent::new(spec, "opsmith"));
            config.include.push(PathBuf::from(include));
        }
        _ => fail(
            "the crate does not depend on `opsmith`: add it to [dependencies], not only to [build-dependencies]",
        ),
    }
    build_with(&config);
}

/// Generates a library as configured.
pub fn build_with(config: &Config) {
    let mut checked = pipeline::check(config).unwrap_or_else(|failure| fail(&failure.to_string()));
    pipeline::check_kernel_files(&mut checked, config);
    for file in &checked.files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    report(&checked, config);
    let files = pipeline::generate(&checked, config).unwrap_or_else(|failure| fail(&failure.to_string()));
    let out = std::env::var_os("OUT_DIR")
        .unwrap_or_else(|| fail("OUT_DIR is not set: call this from a build script"));
    let folder = PathBuf::from(out).join(output::FOLDER);
    if let Err(error) = output::write(&folder, &files) {
        fail(&Failure::Io(folder.clone(), error).to_string());
    }
    compile_foreign(&checked.model, config, &folder);
}

fn fail(message: &str) -> ! {
    println!("cargo::error={}", message.replace('\n', " "));
    eprintln!("{message}");
    std::process::exit(1)
}

/// Prints diagnostics; ends the build if there are errors.
fn report(checked: &Checked, config: &Config) {
    for diagnostic in checked.diagnostics.sorted() {
        let text = render(&checked.sources, diagnostic, false);
        if diagnostic.severity == Severity::Warning {
            for line in text.lines() {
                println!("cargo::warning={line}");
            }
        }
        eprintln!("{text}\n");
    }
    if checked.diagnostics.has_errors() {
        fail(&format!("{}: {}; nothing was generated", config.spec_name, summary(&checked.diagnostics)));
    }
}

/// Compiles the files that kernels are in, each once, against the generated header.
fn compile_foreign(model: &Model, config: &Config, folder: &Path) {
    let base = config.spec.parent().unwrap_or(Path::new(""));
    let mut files: Vec<PathBuf> = Vec::new();
    for op in model.ops.iter().filter(|op| !op.external) {
        for kernel in op.body.kernels.iter().filter(|kernel| op.body.refers_to(kernel)) {
            if let KernelSource::Foreign { file, .. } | KernelSource::Aot { file, .. } = &kernel.source {
                let path = base.join(file);
                let compiled_here = matches!(kernel.source, KernelSource::Foreign { .. });
                if compiled_here && !files.contains(&path) {
                    files.push(path);
                }
            }
        }
    }
    if files.is_empty() {
        return;
    }
    let base_build = || {
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").opt_level(3).warnings(true).extra_warnings(true);
        build
    };
    let mut build = base_build();
    build.flag("-Werror=missing-declarations").flag("-include").flag(folder.join(emit::HEADER));
    build.include(folder);
    for include in &config.include {
        build.include(include);
        println!("cargo::rerun-if-changed={}", include.display());
    }
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        build.file(file);
    }
    // Cargo shows everything that a failing build script printed, so what it wants to know of a library
    // is printed only after the files have compiled.
    let objects = build.cargo_metadata(false).try_compile_intermediates();
    let Ok(objects) = objects else { fail(&refused_kernels(model, folder)) };
    let mut library = base_build();
    objects.iter().for_each(|object| _ = library.object(object));
    library.compile(&format!("{}_kernels", config.library.replace('-', "_")));
}

/// What to say after the C++ compiler has said what is wrong: how the kernels must look.
fn refused_kernels(model: &Model, folder: &Path) -> String {
    let header = folder.join(emit::HEADER);
    let declarations: String = emit::c_declarations(model)
        .map(|(op, declaration)| format!("\n  {}: {declaration}", op.location))
        .collect();
    format!(
        "a kernel in C++ does not compile; the generated header {} declares:{declarations}",
        header.display()
    )
}
