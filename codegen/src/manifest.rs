//! Facts of a crate's manifest that build scripts and commands need.
//!
//! In: the text of a `Cargo.toml`. Out: renamed dependencies; the modules of kernels for backends. The text is read by lines, since a
//! reader of TOML would be compiled by the build script of each user.

use opsmith_core::Backend;

use crate::config::RustPath;

/// The table of modules with kernels for backends other than the host.
const KERNELS: &str = "package.metadata.opsmith.kernels";

/// The modules of kernels for backends other than the host: a line `CUDA = "crate::cuda_kernels"` each in the table
/// `[package.metadata.opsmith.kernels]`.
///
/// # Errors
/// If a line names no backend, or no path of a module; and if the table is written inline.
pub fn backends(manifest: &str) -> Result<Vec<(Backend, RustPath)>, String> {
    let mut found = Vec::new();
    let mut table = "";
    for line in manifest.lines().map(|line| line.trim()) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.split(']').next().unwrap_or_default().trim();
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim().trim_matches('"'), value.trim());
        if table == "package.metadata.opsmith" && (key == "kernels" || key.starts_with("kernels.")) {
            return Err(format!("Cargo.toml: write `kernels` as a table of its own, `[{KERNELS}]`"));
        }
        if table != KERNELS || line.starts_with('#') {
            continue;
        }
        let backend = Backend::from_key(key).ok_or_else(|| {
            let known: Vec<&str> = Backend::ALL.iter().map(|backend| backend.key()).collect();
            format!("Cargo.toml: [{KERNELS}] {key} is no backend; there are {}", known.join(", "))
        })?;
        let text = value.strip_prefix('"').and_then(|text| text.split('"').next()).unwrap_or_default();
        let module = RustPath::parse(text)
            .map_err(|_| format!("Cargo.toml: [{KERNELS}] {key} = {value} is not the path of a module"))?;
        found.push((backend, module));
    }
    Ok(found)
}

/// The renamed dependencies of a manifest: `(name, package)`. Those inherited from a workspace are not found.
pub fn renamed(manifest: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut table: Option<String> = None;
    let mut in_dependencies = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            in_dependencies = header == "dependencies" || header.ends_with(".dependencies");
            table = header
                .strip_prefix("dependencies.")
                .or_else(|| header.split_once(".dependencies.").map(|(_, name)| name))
                .map(|name| name.trim_matches('"').to_owned());
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim().trim_matches('"'), value.trim());
        if let Some(name) = &table {
            if key == "package" {
                found.push((name.clone(), value.trim_matches('"').to_owned()));
            }
        } else if in_dependencies && let Some(package) = inline_package(value) {
            found.push((key.to_owned(), package.to_owned()));
        }
    }
    found
}

/// The features that a manifest declares in the table `[features]`.
pub fn features(manifest: &str) -> Vec<String> {
    let mut is_there = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) =
            line.strip_prefix('[').filter(|header| header.contains(']') && !header.contains('"'))
        {
            is_there = header.split(']').next().map(str::trim) == Some("features");
            continue;
        }
        if is_there
            && !line.starts_with('#')
            && let Some((key, _)) = line.split_once('=')
        {
            found.push(key.trim().trim_matches('"').to_owned());
        }
    }
    found
}

/// The package of `{ path = "…", package = "…" }`.
fn inline_package(value: &str) -> Option<&str> {
    let fields = value.strip_prefix('{')?.trim_end_matches('}');
    fields.split(',').find_map(|field| {
        let (key, value) = field.split_once('=')?;
        (key.trim() == "package").then(|| value.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_manifest_gives() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\none = { path = \"..\", package = \"first-ops\" }\n\
                        two = \"1\"\n[dependencies.three]\npackage = \"third-ops\"\n[build-dependencies]\nb = { package = \"c\" }\n\
                        [target.'cfg(unix)'.dependencies]\nfour = { package = \"fourth\" }\n";
        let expected = [("one", "first-ops"), ("three", "third-ops"), ("four", "fourth")];
        assert_eq!(renamed(manifest), expected.map(|(name, package)| (name.into(), package.into())));
    }

    #[test]
    fn features_that_a_manifest_declares() {
        let manifest = "[package]\nname = \"a\"\n[features]\n# off = []\ndefault = [\n  \"fft\",\n]\nfft = []\n\"two-words\" = [\"fft\"]\n\
                        [dependencies]\nb = \"1\"\n";
        assert_eq!(features(manifest), ["default", "fft", "two-words"]);
    }

    #[test]
    fn modules_of_kernels_for_backends() {
        let manifest = "[package]\nname = \"a\"\n[package.metadata.opsmith]\nspec = \"ops.yaml\"\n\
                        [package.metadata.opsmith.kernels] # of devices\n# CUDA = \"crate::old\"\nCUDA = \"crate::device_kernels\" # in Rust\n\
                        [dependencies]\nCPU = \"1\"\n";
        let found: Vec<(Backend, String)> = backends(manifest)
            .unwrap()
            .into_iter()
            .map(|(backend, path)| (backend, path.to_string()))
            .collect();
        assert_eq!(found, [(Backend::Cuda, "crate::device_kernels".to_owned())]);
        for (table, message) in [
            (
                "[package.metadata.opsmith.kernels]\nNPU = \"crate::npu\"",
                "NPU is no backend; there are CPU, CUDA",
            ),
            (
                "[package.metadata.opsmith.kernels]\nCUDA = \"a b\"",
                "CUDA = \"a b\" is not the path of a module",
            ),
            ("[package.metadata.opsmith.kernels]\nCUDA = 1", "CUDA = 1 is not the path of a module"),
            (
                "[package.metadata.opsmith]\nkernels = { CUDA = \"crate::a\" }",
                "write `kernels` as a table of its own",
            ),
        ] {
            let error = backends(table).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
