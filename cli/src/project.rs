//! The crate of a spec, and the libraries whose operators its formulas may call.
//!
//! In: the path of a spec. Out: the configuration that the crate's build script would pass to the generator. Crates
//! that generate a library declare the location of its spec in `package.metadata.opsmith.spec`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use opsmith_codegen::chain::{self, Dependency, Library};
use opsmith_codegen::{Config, Parent, manifest};
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
    /// The configuration for a spec. Messages use the user's spelling of its path.
    pub fn config(&self, spec: &Path) -> Result<Config> {
        std::iter::once(spec)
            .chain(self.builds_on.iter().map(PathBuf::as_path))
            .try_for_each(refuse_folder)?;
        let file = if self.stand_alone { None } else { manifest_of(spec)? };
        // A spec outside any crate is generated like the stock library's.
        let mut config = if file.is_some() { Config::new(spec) } else { Config::stock(spec) };
        config.spec_name = spec.display().to_string();
        if let Some(name) = file.as_deref().and_then(package_name) {
            config.library = name;
        }
        if !self.builds_on.is_empty() {
            for spec in &self.builds_on {
                // A spec outside any crate is treated as the stock library's.
                let package = manifest_of(spec)?.as_deref().and_then(package_name);
                config.parents.push(Parent::new(spec, package.as_deref().unwrap_or(chain::ROOT)));
            }
        } else if let Some(file) = &file {
            let packages = Packages::read(file)?;
            if let Some(package) = packages.at(file) {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                config.backends.extend(manifest::backends(&text).map_err(anyhow::Error::msg)?);
                let dependencies = packages.dependencies_of(package, &mut Vec::new());
                config.build_on(&chain::libraries(dependencies)).map_err(anyhow::Error::msg)?;
            }
        }
        Ok(config)
    }
}

/// Refuses a folder in the place of a spec, and names the spec in it.
fn refuse_folder(spec: &Path) -> Result<()> {
    if !spec.is_dir() {
        return Ok(());
    }
    let entries = std::fs::read_dir(spec).with_context(|| format!("cannot read {}", spec.display()))?;
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|file| is_spec(file)).collect();
    // The usual name first.
    found.sort_by_key(|file| (!file.ends_with("ops.yaml"), file.clone()));
    let cure = match found.first() {
        Some(file) => format!("name the spec in it: {}", file.display()),
        None => "name a spec, a file that starts with `edition: 1`; this folder has none".to_owned(),
    };
    bail!("{} is a folder; {cure}", spec.display())
}

/// Whether a file says its edition, as each file of a spec does.
fn is_spec(file: &Path) -> bool {
    let is_yaml = file.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let says_edition = |text: String| text.lines().any(|line| line.starts_with("edition:"));
    is_yaml && std::fs::read_to_string(file).is_ok_and(says_edition)
}

/// The manifest of the package that contains a file; `None` if there is none.
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

/// The name and version of a package.
#[derive(Default)]
pub struct Package {
    /// Its name.
    pub name: Option<String>,
    /// Its version; `None` if a workspace has it.
    pub version: Option<String>,
}

/// The package that contains a spec; without name and version if there is none.
pub fn package_of(spec: &Path) -> Result<Package> {
    let Some(manifest) = manifest_of(spec)? else { return Ok(Package::default()) };
    Ok(Package { name: package_name(&manifest), version: value_in_package(&manifest, "version") })
}

/// The package of the crate that contains a spec, and its folder; `None` if the spec is in no crate.
pub fn crate_of(spec: &Path) -> Result<Option<(String, PathBuf)>> {
    let Some(manifest) = manifest_of(spec)? else { return Ok(None) };
    let folder = manifest.parent().unwrap_or(Path::new(".")).to_owned();
    Ok(package_name(&manifest).map(|name| (name, folder)))
}

/// The package's name in a manifest.
fn package_name(manifest: &Path) -> Option<String> {
    value_in_package(manifest, "name")
}

/// The text of a key in the table of a package.
fn value_in_package(manifest: &Path, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(manifest).ok()?;
    let (_, package) = text.split_once("[package]")?;
    package.lines().map(str::trim).take_while(|line| !line.starts_with('[')).find_map(|line| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix('=')?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    })
}

/// Cargo's metadata of a package and its dependencies.
struct Packages(Value);

impl Packages {
    fn read(manifest: &Path) -> Result<Packages> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // Packages for other platforms would be downloaded to be listed, but no build here needs them.
        let output = Command::new(cargo)
            .args(["metadata", "--format-version=1", "--filter-platform", "host-tuple", "--manifest-path"])
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

    /// The dependencies with a generated library, each with the libraries it depends on, as their build scripts report
    /// them to cargo. `open` are the packages on the path; cargo allows no cycles.
    fn dependencies_of(&self, package: &Value, open: &mut Vec<String>) -> Vec<Dependency> {
        let Some(id) = package["id"].as_str().filter(|id| !open.iter().any(|known| known == id)) else {
            return Vec::new();
        };
        open.push(id.to_owned());
        let nodes = self.0["resolve"]["nodes"].as_array().into_iter().flatten();
        let node = nodes.into_iter().find(|node| node["id"] == package["id"]);
        let listed = node.and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let mut found = Vec::new();
        for listed in listed {
            let kinds = listed["dep_kinds"].as_array();
            if !kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null())) {
                continue;
            }
            let Some(dependency) = self.all().find(|package| package["id"] == listed["pkg"]) else {
                continue;
            };
            let Some(own) = library_of(dependency) else { continue };
            let behind = self.dependencies_of(dependency, open);
            let mut libraries = chain::libraries(behind);
            libraries.push(own);
            let name = listed["name"].as_str().unwrap_or_default().to_owned();
            found.push(Dependency { name, libraries });
        }
        open.pop();
        found
    }
}

/// The library of a package: build scripts pass it on by `links`, and its manifest has the location of the spec.
fn library_of(package: &Value) -> Option<Library> {
    let spec = package["metadata"]["opsmith"]["spec"].as_str()?;
    let name = package["name"].as_str()?;
    if package["links"].is_null() {
        eprintln!(
            "note: the package `{name}` has a spec and no `links` in its manifest, so that no crate can build on it"
        );
        return None;
    }
    let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
    let spec = joined(folder, spec);
    Some(Library { package: name.to_owned(), path: String::new(), spec, features: None, include: Vec::new() })
}

/// `folder/../ops.yaml`, normalised.
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
