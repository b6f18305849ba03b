//! The entry point of build scripts: generates, compiles the C and C++ kernels, and reports dependencies to cargo.

use std::path::{Path, PathBuf};

use crate::chain::{self, Dependency, Library};
use crate::config::{Config, Tables};
use crate::diagnostics::{Severity, catalogue, render, summary};
use crate::emit;
use crate::manifest;
use crate::model::{Function, KernelSource, Model};
use crate::output;
use crate::pipeline::{self, Checked, Failure};

/// Generates the library of a crate that depends on `opsmith`, from the spec at `path`.
///
/// Kernels in Rust are in `crate::kernels`, those for other backends in the modules that the manifest's table
/// `[package.metadata.opsmith.kernels]` names. This one call is the whole body of a build script's `main`:
///
/// ```no_run
/// opsmith_codegen::build("ops.yaml");
/// ```
///
/// Mistakes in the spec are printed with their locations, and the build fails.
pub fn build(path: impl AsRef<Path>) {
    let path = path.as_ref();
    let mut config = Config::new(path);
    let name = std::env::var("CARGO_PKG_NAME").unwrap_or_else(|_| config.library.clone());
    config.library.clone_from(&name);
    config.features = Some(features());
    let manifest = std::fs::read_to_string("Cargo.toml").unwrap_or_default();
    config.backends.extend(manifest::backends(&manifest).unwrap_or_else(|message| fail(&message)));
    let mut libraries = chain::libraries(dependencies(&manifest).unwrap_or_else(|message| fail(&message)));
    if !libraries.iter().any(|library| library.package == chain::ROOT) {
        fail(
            "the crate does not depend on `opsmith`: add it to [dependencies], not only to [build-dependencies]",
        );
    }
    config.build_on(&libraries).unwrap_or_else(|message| fail(&message));
    build_with(&config);
    // For the build scripts of crates that build on this one; cargo passes it to direct dependents if the manifest has
    // `links`.
    let spec = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    libraries.push(Library {
        package: name,
        path: String::new(),
        spec,
        features: config.features,
        include: Vec::new(),
    });
    println!("cargo::metadata={}={}", chain::METADATA, chain::encode(&libraries));
    warn_of_half_a_parent(&manifest);
}

/// The features of the crate that are on, as their variables have them, sorted.
fn features() -> Vec<String> {
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut on: Vec<String> =
        variables.filter_map(|name| name.strip_prefix("CARGO_FEATURE_").map(str::to_owned)).collect();
    on.sort();
    on
}

/// The library crates that this one depends on, from the metadata of their build scripts.
fn dependencies(manifest: &str) -> Result<Vec<Dependency>, String> {
    let renamed = manifest::renamed(manifest);
    let name = |package: &str| {
        let given = renamed.iter().find(|(_, known)| known == package).map(|(name, _)| name.as_str());
        given.unwrap_or(package).replace('-', "_")
    };
    let mut found = Vec::new();
    // The stock library reports the location of its spec and headers.
    println!("cargo::rerun-if-env-changed=DEP_OPSMITH_SPEC");
    if let (Ok(spec), Ok(include)) = (std::env::var("DEP_OPSMITH_SPEC"), std::env::var("DEP_OPSMITH_INCLUDE"))
    {
        let (package, path) = (chain::ROOT.to_owned(), String::new());
        println!("cargo::rerun-if-env-changed=DEP_OPSMITH_FEATURES");
        let features = std::env::var("DEP_OPSMITH_FEATURES").ok().and_then(|text| chain::features(&text));
        let library = Library { package, path, spec: spec.into(), features, include: vec![include.into()] };
        found.push(Dependency { name: name(chain::ROOT), libraries: vec![library] });
    }
    for (key, value) in std::env::vars_os() {
        let Some(key) = key.to_str().filter(|key| key.starts_with("DEP_") && key.ends_with(chain::METADATA))
        else {
            continue;
        };
        println!("cargo::rerun-if-env-changed={key}");
        let libraries = chain::decode(&value.to_string_lossy()).map_err(|error| {
            format!(
                "{key} is not as this version of opsmith-codegen writes it ({error}): use one version of it"
            )
        })?;
        let package = libraries.last().map(|own| own.package.clone()).unwrap_or_default();
        found.push(Dependency { name: name(&package), libraries });
    }
    Ok(found)
}

/// Build scripts find a parent by `links`, commands by `package.metadata.opsmith`: with only one of the two they would
/// disagree.
fn warn_of_half_a_parent(manifest: &str) {
    let has = |text: &str| manifest.lines().any(|line| line.trim() == text);
    let links = std::env::var_os("CARGO_MANIFEST_LINKS").is_some();
    let metadata = has("[package.metadata.opsmith]");
    let (there, missing) = match (links, metadata) {
        (true, false) => ("`links`", "a table [package.metadata.opsmith] with `spec = \"ops.yaml\"`"),
        (false, true) => ("[package.metadata.opsmith]", "`links = \"…\"` under [package]"),
        _ => return,
    };
    println!("cargo::warning=Cargo.toml has {there}, and crates that build on this one need {missing} too");
}

/// Generates the stock library, or kernel tables of it, in the build script of a crate with `ops.yaml` in its folder.
pub fn build_stock(tables: Tables) -> Config {
    let variable = |name: &str| {
        let missing =
            || fail(&format!("{name} is not set: call this from a build script of the stock library"));
        PathBuf::from(std::env::var_os(name).unwrap_or_else(missing))
    };
    // A link to the workspace's; in a package, a file.
    let spec = variable("CARGO_MANIFEST_DIR").join("ops.yaml");
    let mut config = Config::stock(spec.canonicalize().unwrap_or(spec));
    let include = variable("DEP_OPSMITH_KERNELS_INCLUDE");
    config.kernel_crate = include.parent().map(Path::to_owned);
    config.include.push(include);
    config.tables = tables;
    config.features = Some(features());
    build_with(&config);
    config
}

/// Generates a library as configured.
pub fn build_with(config: &Config) {
    let package = config.package.clone().or_else(|| std::env::var("CARGO_PKG_NAME").ok());
    let config = &Config { package, ..config.clone() };
    let mut checked = pipeline::check(config).unwrap_or_else(|failure| fail(&failure.to_string()));
    pipeline::check_kernel_files(&mut checked, config);
    for file in &checked.files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    for path in pipeline::find_kernels(&mut checked, config) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    report(&checked, config);
    check_features(&checked, config);
    check_families(&checked, config);
    let out = std::env::var_os("OUT_DIR")
        .unwrap_or_else(|| fail("OUT_DIR is not set: call this from a build script"));
    let folder = PathBuf::from(out).join(emit::FOLDER);
    let earlier = output::formatted::read(&folder);
    let files = pipeline::generate_after(&checked, config, &earlier)
        .unwrap_or_else(|failure| fail(&failure.to_string()));
    let written = output::write(&folder, &files).and_then(|_| output::formatted::write(&folder, &files));
    if let Err(error) = written {
        fail(&Failure::Io(folder.clone(), error).to_string());
    }
    // Their symbols are in the tables.
    if !matches!(config.tables, Tables::Of(_)) {
        compile_foreign(&checked.model, config, &folder);
    }
}

/// Rejects a feature of the spec that the manifest has not: it would never be on, and its files be left out without a word.
fn check_features(checked: &Checked, config: &Config) {
    if config.features.is_none() || checked.features.is_empty() {
        return;
    }
    let manifest = std::fs::read_to_string("Cargo.toml").unwrap_or_default();
    let declared = manifest::features(&manifest);
    let is_own = |file: &str| match &config.tables {
        Tables::Families(files) => files.iter().any(|known| known == file),
        _ => true,
    };
    let mut missing =
        checked.features.iter().filter(|(feature, file)| is_own(file) && !declared.contains(feature));
    if let Some((feature, _)) = missing.next() {
        fail(&format!(
            "{}: `features` has `{feature}`, which is no feature of the crate: declare it in [features] of Cargo.toml",
            config.spec_name
        ));
    }
}

/// A file without entries is misspelt, and tables that no crate has would be missed where they are named alone. The spec itself may
/// have includes alone, until it has an entry.
fn check_families(checked: &Checked, config: &Config) {
    let Tables::Families(files) = &config.tables else { return };
    let Model { ops, functions, .. } = &checked.model;
    let has = |file: &str| {
        if !checked.files.iter().any(|read| read.ends_with(file)) {
            // A feature has it that is off.
            return true;
        }
        let declares = |function: &Function| checked.sources.file(function.entry.source).path() == file;
        ops.iter().any(|op| op.file() == file) || functions.iter().any(declares)
    };
    if let Some(file) = files.iter().find(|file| **file != config.spec_name && !has(file)) {
        fail(&format!(
            "`{file}`, whose tables the crate has, has no entry: name files as in `ops/views.yaml`"
        ));
    }
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
        let (spec, errors) = (&config.spec_name, summary(&checked.diagnostics));
        fail(&format!("{spec}: {errors}; nothing was generated{}", left_out(checked)));
    }
}

/// The files whose operators are unknown because no feature of them is on, if an operator is unknown.
fn left_out(checked: &Checked) -> String {
    let is_unknown = checked.diagnostics.errors().any(|error| error.code == catalogue::UNKNOWN_OPERATOR);
    if !is_unknown || checked.left_out.is_empty() {
        return String::new();
    }
    let files = checked.left_out.iter().map(|(file, features)| format!("{file} ({})", features.join(", ")));
    format!(
        "\n  operators of these files are left out, since none of their cargo features is on: {}",
        files.collect::<Vec<_>>().join(", ")
    )
}

/// Compiles the files of kernels, each once, against the generated header.
fn compile_foreign(model: &Model, config: &Config, folder: &Path) {
    let base = config.spec.parent().unwrap_or(Path::new(""));
    let mut files: Vec<PathBuf> = Vec::new();
    for op in model.ops.iter().filter(|op| !op.is_external()) {
        for kernel in op.body.kernels.iter().filter(|kernel| op.body.refers_to(kernel)) {
            if let KernelSource::Foreign { file, .. } = &kernel.source {
                let path = base.join(file);
                if !files.contains(&path) {
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
    // Cargo shows all output of a failing build script, so link directives for cargo are printed only after the files
    // have compiled.
    let objects = build.cargo_metadata(false).try_compile_intermediates();
    let Ok(objects) = objects else { fail(&refused_kernels(model, folder)) };
    let mut library = base_build();
    objects.iter().for_each(|object| _ = library.object(object));
    library.compile(&format!("{}_kernels", config.library.replace('-', "_")));
}

/// The advice after an error of the C++ compiler: the declarations that kernels must match.
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
