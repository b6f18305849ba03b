//! Which crate a spec belongs to, and which libraries' operators its formulas may call.
//!
//! In: the path of a spec. Out: what the crate's build script would tell the generator. Crates that
//! generate a library say where its spec is with `package.metadata.opsmith.spec`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use opsmith_codegen::{Config, Parent};
use serde_json::Value;

/// How a spec's parents are found.
#[derive(clap::Args)]
pub struct BuildsOn {
    /// Spec whose operators the formulas may call too; without it, those of the crates that the spec's
    /// own crate depends on
    #[arg(long, value_name = "SPEC")]
    builds_on: Vec<PathBuf>,
    /// Formulas may call no operators but the spec's own
    #[arg(long, conflicts_with = "builds_on")]
    stand_alone: bool,
}

impl BuildsOn {
    /// The configuration for a spec. Messages call it as the user did.
    pub fn config(&self, spec: &Path) -> Result<Config> {
        let manifest = if self.stand_alone { None } else { manifest_of(spec)? };
        // A spec that belongs to no crate is generated like the stock library's.
        let mut config = if manifest.is_some() { Config::new(spec) } else { Config::stock(spec) };
        config.spec_name = spec.display().to_string();
        if let Some(name) = manifest.as_deref().and_then(package_name) {
            config.library = name;
        }
        if !self.builds_on.is_empty() {
            config.parents = self.builds_on.iter().map(|spec| Parent::new(spec, "opsmith")).collect();
        } else if let Some(manifest) = &manifest {
            let packages = Packages::read(manifest)?;
            config.parents = packages.parents_of(manifest);
        }
        Ok(config)
    }
}

/// The manifest of the package that a file lies in; `None` if it lies in none.
fn manifest_of(file: &Path) -> Result<Option<PathBuf>> {
    let file = std::path::absolute(file)?;
    for folder in file.ancestors().skip(1) {
        let manifest = folder.join("Cargo.toml");
        if manifest.is_file() {
            let text = std::fs::read_to_string(&manifest)
                .with_context(|| format!("cannot read {}", manifest.display()))?;
            let is_package = text.lines().any(|line| line.trim() == "[package]");
            return Ok(is_package.then_some(manifest));
        }
    }
    Ok(None)
}

/// The name that a manifest gives its package.
fn package_name(manifest: &Path) -> Option<String> {
    let text = std::fs::read_to_string(manifest).ok()?;
    let (_, package) = text.split_once("[package]")?;
    package.lines().map(str::trim).take_while(|line| !line.starts_with('[')).find_map(|line| {
        let value = line.strip_prefix("name")?.trim_start().strip_prefix('=')?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    })
}

/// What cargo knows of a package and its dependencies.
struct Packages(Value);

impl Packages {
    fn read(manifest: &Path) -> Result<Packages> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version=1", "--manifest-path"])
            .arg(manifest)
            .output()
            .context("cannot run cargo, which knows the crates that a spec builds on")?;
        if !output.status.success() {
            bail!(
                "cargo cannot read {}:\n{}\nname the specs that this one builds on with --builds-on",
                manifest.display(),
                String::from_utf8_lossy(&output.stderr).trim_end()
            );
        }
        Ok(Packages(serde_json::from_slice(&output.stdout).context("cargo metadata wrote no JSON")?))
    }

    fn all(&self) -> impl Iterator<Item = &Value> {
        self.0["packages"].as_array().into_iter().flatten()
    }

    fn at(&self, manifest: &Path) -> Option<&Value> {
        self.all()
            .find(|package| package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == manifest))
    }

    /// The dependencies that are generated from a spec.
    fn parents_of(&self, manifest: &Path) -> Vec<Parent> {
        let Some(package) = self.at(manifest) else { return Vec::new() };
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        let mut parents = Vec::new();
        for name in normal.filter_map(|dependency| dependency["name"].as_str()) {
            let known = self.all().find(|package| package["name"] == name);
            let spec = known.and_then(|package| package["metadata"]["opsmith"]["spec"].as_str());
            let folder = known
                .and_then(|package| package["manifest_path"].as_str())
                .and_then(|manifest| Path::new(manifest).parent());
            if let (Some(spec), Some(folder)) = (spec, folder) {
                parents.push(Parent::new(joined(folder, spec), name));
            }
        }
        parents
    }
}

/// `folder/../ops.yaml` without the detour.
fn joined(folder: &Path, relative: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for part in Path::new(relative).components() {
        match part {
            std::path::Component::ParentDir => _ = path.pop(),
            part => path.push(part),
        }
    }
    path
}
