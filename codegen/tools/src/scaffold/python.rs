//! A new package of Python with operators of its own.

use std::path::Path;

use minijinja::context;

use super::krate::{self, Dependencies};
use super::{FileChange, Refusal, is_package_name, render};

/// The stock package's stub of all that is no operator, its stub of operators, the program that writes the latter, the one that records
/// the results of examples, and the tensors of examples.
const STUB: &str = include_str!("templates/python/stock/_opsmith.pyi");
const OPERATORS: &str = include_str!("templates/python/stock/_operators.pyi");
const STUBS: &str = include_str!("templates/python/stock/stubs.py");
const EXAMPLES: &str = include_str!("templates/python/stock/examples.py");
const TESTING: &str = include_str!("templates/python/stock/testing.py");

/// The files of a package that are templates; `LIBRARY` in a name is the package.
const TEMPLATES: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("templates/python/Cargo.toml.j2")),
    ("pyproject.toml", include_str!("templates/python/pyproject.toml.j2")),
    (".gitignore", include_str!("templates/python/gitignore.j2")),
    ("src/printed.txt", include_str!("templates/python/printed.txt")),
    ("src/lib.rs", include_str!("templates/python/lib.rs.j2")),
    ("python/LIBRARY/__init__.py", include_str!("templates/python/init.py.j2")),
    ("python/LIBRARY/py.typed", ""),
    ("tests/test_ops.py", include_str!("templates/python/test_ops.py.j2")),
];

/// The declarations of the template's operators: name, parameters behind the first, and whether it is an in-place form.
const OWN: [(&str, &str); 4] = [
    ("bell_curve", "*, out: Tensor | Sequence[Tensor] | None = ..."),
    ("bell_curve_", ""),
    ("mirror", "*, out: Tensor | Sequence[Tensor] | None = ..."),
    ("neighbour_sum", "*, out: Tensor | Sequence[Tensor] | None = ..."),
];

/// The files of the package: a crate that maturin builds, the Python files with stubs, and tests.
///
/// # Errors
/// If the name is not valid for a package, or the dependencies are not those of a checkout.
pub fn python(
    folder: &Path,
    name: &str,
    dependencies: &Dependencies,
    inside_workspace: bool,
) -> Result<Vec<FileChange>, Refusal> {
    if !is_package_name(name) || name.starts_with('_') {
        return Err(Refusal::Because(format!(
            "`{name}` cannot be the name of a package of Python; choose one with --name, such as my_ops"
        )));
    }
    if matches!(dependencies, Dependencies::Version(_)) {
        return Err(Refusal::Because(
            "a package of Python builds with a checkout of opsmith; name it with --opsmith".to_owned(),
        ));
    }
    let library = name.replace('-', "_");
    let binding = dependencies
        .of("opsmith-python-binding", "python/binding")
        .replace(" }", ", features = [\"abi3\"] }");
    let context = context! {
        name,
        library => library.as_str(),
        symbol => library.to_lowercase(),
        opsmith => dependencies.of("opsmith", "generated"),
        codegen => dependencies.of("opsmith-codegen", "codegen"),
        binding,
        inside_workspace,
    };
    let path = |file: &str| folder.join(file.replace("LIBRARY", &library));
    let shared = krate::SOURCES.iter().chain(&TEMPLATES).map(|(file, template)| {
        let text = render(template, context.clone())?;
        Ok(FileChange { path: path(file), text: text.trim_start_matches('\n').to_owned(), exists: false })
    });
    let mut changes = shared.collect::<Result<Vec<_>, Refusal>>()?;
    let module = format!("_{library}");
    let renamed = |text: &str| {
        let text = text.replace("opsmith.stubs", &format!("{library}.stubs"));
        text.replace("opsmith.examples", &format!("{library}.examples")).replace("_opsmith", &module)
    };
    changes.extend(
        [
            (format!("python/LIBRARY/{module}.pyi"), renamed(STUB)),
            ("python/LIBRARY/_operators.pyi".to_owned(), with_own(&renamed(OPERATORS))),
            ("python/LIBRARY/stubs.py".to_owned(), renamed(STUBS)),
            ("python/LIBRARY/examples.py".to_owned(), renamed(EXAMPLES)),
            ("python/LIBRARY/testing.py".to_owned(), renamed(TESTING)),
        ]
        .map(|(file, text)| FileChange { path: path(&file), text, exists: false }),
    );
    Ok(changes)
}

/// The stub with the template's operators, each in its place in the order of names, among functions and among methods.
fn with_own(stub: &str) -> String {
    let mut lines: Vec<String> = stub.lines().map(str::to_owned).collect();
    for (name, rest) in OWN {
        let listed = |first: &str| match rest {
            "" => first.to_owned(),
            rest => format!("{first}, {rest}"),
        };
        let function = format!("def {name}({}) -> Tensor: ...", listed("input: TensorLike"));
        let method = format!("    def {name}({}) -> Tensor: ...", listed("self"));
        for (indent, line) in [("", function), ("    ", method)] {
            let place = place_of(&lines, indent, name);
            lines.insert(place, line);
        }
    }
    lines.join("\n") + "\n"
}

/// The line before which the declaration of a name stands.
fn place_of(lines: &[String], indent: &str, name: &str) -> usize {
    let declared = |line: &String| -> Option<String> {
        let rest = line.strip_prefix(indent)?.strip_prefix("def ")?;
        rest.split('(').next().map(str::to_owned)
    };
    let later = lines.iter().position(|line| declared(line).is_some_and(|known| *known > *name));
    let mut place = later.unwrap_or(lines.len());
    while place > 0 && lines[place - 1].trim() == "@overload" {
        place -= 1;
    }
    place
}
