//! A new crate with operators of its own.

use std::path::Path;

use minijinja::context;

use opsmith_codegen::analysis::naming;

use super::{FileChange, Refusal, is_package_name, render};

/// The source of the dependencies `opsmith`, `opsmith-codegen` and `opsmith-testing`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dependencies {
    /// From the registry, of this version.
    Version(String),
    /// From a checkout, at this path.
    Path(String),
}

impl Dependencies {
    /// A dependency as a manifest has it: a package, which a checkout has in that folder.
    pub fn of(&self, package: &str, folder: &str) -> String {
        match self {
            Dependencies::Version(version) => format!("\"{version}\""),
            Dependencies::Path(root) => {
                let path = Path::new(root).join(folder).display().to_string().replace('\\', "/");
                format!("{{ path = {path:?}, package = {package:?} }}")
            }
        }
    }
}

/// The files of a spec and its kernels, which a crate and a package of Python have alike.
pub(super) const SOURCES: [(&str, &str); 5] = [
    ("build.rs", include_str!("templates/crate/build.rs.j2")),
    ("ops.yaml", include_str!("templates/crate/ops.yaml.j2")),
    ("src/kernels/mod.rs", include_str!("templates/crate/kernels.rs.j2")),
    ("src/kernels/neighbours.rs", include_str!("templates/crate/neighbours.rs.j2")),
    ("kernels/mirror.cc", include_str!("templates/crate/mirror.cc.j2")),
];

/// The files of the crate; `false` is for a folder outside any workspace.
///
/// # Errors
/// If the name is not valid for a package.
pub fn krate(
    folder: &Path,
    name: &str,
    dependencies: &Dependencies,
    inside_workspace: bool,
) -> Result<Vec<FileChange>, Refusal> {
    if !is_package_name(name) {
        return Err(Refusal::Because(format!(
            "`{name}` cannot be the name of a crate; choose one with --name, such as my_ops"
        )));
    }
    let library = name.replace('-', "_");
    let context = context! {
        name,
        library => library.as_str(),
        methods => naming::methods(name),
        // C functions have no namespace, so the library's name is a prefix.
        symbol => library.to_lowercase(),
        opsmith => dependencies.of("opsmith", "generated"),
        codegen => dependencies.of("opsmith-codegen", "codegen"),
        testing => dependencies.of("opsmith-testing", "tests/testing"),
        inside_workspace,
    };
    let files: [(&str, &str); 6] = [
        ("Cargo.toml", include_str!("templates/crate/Cargo.toml.j2")),
        (".gitignore", include_str!("templates/crate/gitignore.j2")),
        ("src/lib.rs", include_str!("templates/crate/lib.rs.j2")),
        ("tests/ops.rs", include_str!("templates/crate/tests.rs.j2")),
        ("tests/checks.rs", include_str!("templates/crate/checks.rs.j2")),
        ("tests/allocations.rs", include_str!("templates/crate/allocations.rs.j2")),
    ];
    let render_file = |(path, template): &(&str, &str)| {
        let text = render(template, context.clone())?;
        Ok(FileChange { path: folder.join(path), text, exists: false })
    };
    files.iter().chain(&SOURCES).map(render_file).collect()
}
