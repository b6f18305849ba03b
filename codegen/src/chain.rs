//! Chains of libraries: which crates' operators a spec may call, and by which paths.
//!
//! In: the libraries of each crate that is depended on. Out: every library once, parents first, each with a path that
//! is valid in the depending crate's code. An indirect dependency is reached through a direct one, by the module
//! `parents` of generated code.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The package whose library has no parents, and the runtime in its crate.
pub const ROOT: &str = "opsmith";

/// The metadata key by which a build script passes its libraries to those of dependent crates.
pub const METADATA: &str = "OPSMITH_LIBRARIES";

/// The module of generated code that reexports the crates of a library's parents.
const PARENTS: &str = "parents";

/// A library as seen from some crate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Library {
    /// Name of its package.
    pub package: String,
    /// Its crate's path, such as `::middle::parents::base`; empty for the crate itself.
    pub path: String,
    /// Its spec.
    pub spec: PathBuf,
    /// The cargo features that are on there, as the variables of its build script name them; all if absent.
    pub features: Option<Vec<String>>,
    /// Folders with headers for its C and C++ kernels.
    pub include: Vec<PathBuf>,
}

impl Library {
    /// Whether it is a direct dependency of the crate.
    pub fn is_direct(&self) -> bool {
        self.path.matches("::").count() == 1
    }
}

/// A crate that another depends on.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// The dependency's name in the depending crate.
    pub name: String,
    /// The libraries as seen from the dependency, its own last.
    pub libraries: Vec<Library>,
}

impl Dependency {
    fn package(&self) -> &str {
        self.libraries.last().map_or("", |own| &own.package)
    }
}

/// Every library of the dependencies, each once: the root first, then direct dependencies, then the rest.
pub fn libraries(mut dependencies: Vec<Dependency>) -> Vec<Library> {
    // The same order in build scripts and commands.
    dependencies.sort_by(|a, b| (a.package() != ROOT, a.package()).cmp(&(b.package() != ROOT, b.package())));
    let seen_from_here = dependencies.iter().flat_map(|dependency| {
        dependency.libraries.iter().map(move |library| {
            let path = match library.path.as_str() {
                "" => format!("::{}", dependency.name),
                path => format!("::{}::{PARENTS}{path}", dependency.name),
            };
            Library { path, ..library.clone() }
        })
    });
    let (direct, further): (Vec<Library>, Vec<Library>) = seen_from_here.partition(Library::is_direct);
    let mut known = HashSet::new();
    let mut all: Vec<Library> =
        direct.into_iter().chain(further).filter(|library| known.insert(identity(&library.spec))).collect();
    // Stable, so that the rest keeps its order.
    all.sort_by_key(|library| library.package != ROOT);
    all
}

/// A canonical path for a file.
fn identity(spec: &Path) -> PathBuf {
    std::fs::canonicalize(spec).unwrap_or_else(|_| spec.to_owned())
}

/// The first word of encoded libraries; a change of the format changes the number.
const FORM: &str = "libraries-2";

/// All features of a library.
const ALL: &str = "*";

/// Features from their text.
pub fn features(text: &str) -> Option<Vec<String>> {
    (text != ALL).then(|| text.split_whitespace().map(str::to_owned).collect())
}

/// Libraries as one line of text: the format and each library, with `;` before each and `,` between its fields
/// (package, path, spec, features with a blank between or `*`, folders of headers). `%` and two digits escape these
/// characters and control characters.
pub fn encode(libraries: &[Library]) -> String {
    let mut line = FORM.to_owned();
    for Library { package, path, spec, features, include } in libraries {
        let features = features.as_ref().map_or(ALL.to_owned(), |features| features.join(" "));
        let fields = [package.into(), path.into(), spec.to_string_lossy(), features.into()];
        let fields = fields.into_iter().chain(include.iter().map(|folder| folder.to_string_lossy()));
        line.push(';');
        line.push_str(&fields.map(|field| escape(&field)).collect::<Vec<_>>().join(","));
    }
    line
}

fn escape(field: &str) -> String {
    let mut text = String::new();
    for letter in field.chars() {
        match letter {
            '%' | ',' | ';' | '\0'..='\x1f' => text.push_str(&format!("%{:02x}", u32::from(letter))),
            _ => text.push(letter),
        }
    }
    text
}

/// Decodes libraries from such a line.
///
/// # Errors
/// If another version of the generator wrote it in another format.
pub fn decode(text: &str) -> Result<Vec<Library>, String> {
    let mut parts = text.split(';');
    if parts.next() != Some(FORM) {
        return Err(format!("it does not start with `{FORM}`"));
    }
    let library = |part: &str| {
        let fields = part.split(',').map(unescape).collect::<Option<Vec<String>>>();
        let mut fields = fields.ok_or_else(|| format!("`{part}` has a malformed escape"))?.into_iter();
        match (fields.next(), fields.next(), fields.next(), fields.next()) {
            (Some(package), Some(path), Some(spec), Some(on)) => {
                let include = fields.map(PathBuf::from).collect();
                Ok(Library { package, path, spec: spec.into(), features: features(&on), include })
            }
            _ => Err(format!("`{part}` has no spec or no features")),
        }
    };
    parts.map(library).collect()
}

fn unescape(field: &str) -> Option<String> {
    let mut pieces = field.split('%');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2)?;
        text.push(char::from(u8::from_str_radix(code, 16).ok()?));
        text.push_str(rest);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(package: &str, path: &str) -> Library {
        let spec = PathBuf::from(format!("/{package}/ops.yaml"));
        Library { package: package.into(), path: path.into(), spec, features: None, include: Vec::new() }
    }

    fn dependency(libraries: &[Library]) -> Dependency {
        let name = libraries.last().unwrap().package.replace('-', "_");
        Dependency { name, libraries: libraries.to_vec() }
    }

    fn paths(libraries: &[Library]) -> Vec<(&str, &str)> {
        libraries.iter().map(|library| (&*library.package, &*library.path)).collect()
    }

    #[test]
    fn a_chain_is_reached_link_by_link() {
        let root = || library("opsmith", "");
        let base = libraries(vec![dependency(&[root()])]);
        let middle = libraries(vec![dependency(&[base[0].clone(), library("base", "")])]);
        assert_eq!(paths(&middle), [("opsmith", "::base::parents::opsmith"), ("base", "::base")]);
        let own = [middle, vec![library("middle", "")]].concat();
        let end = libraries(vec![dependency(&own), dependency(&[root()])]);
        assert_eq!(
            paths(&end),
            [("opsmith", "::opsmith"), ("middle", "::middle"), ("base", "::middle::parents::base")]
        );
        assert_eq!(decode(&encode(&end)), Ok(end));
    }

    #[test]
    fn any_path_survives_the_way_to_another_build_script() {
        let odd = Library {
            package: "a".into(),
            path: String::new(),
            spec: PathBuf::from("/a, b; c%2c/\n\u{e4}.yaml"),
            features: Some(vec!["FFT".into(), "TWO_WORDS".into()]),
            include: vec![PathBuf::from("/with,comma"), PathBuf::from("")],
        };
        let line = encode(&[odd.clone(), library("b", "::b")]);
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(decode(&line), Ok(vec![odd, library("b", "::b")]));
        let none = Library { features: Some(Vec::new()), ..library("b", "::b") };
        assert_eq!(decode(&encode(std::slice::from_ref(&none))), Ok(vec![none]));
        assert_eq!(decode(&encode(&[])), Ok(Vec::new()));
        for broken in
            ["", "[]", "libraries-1", "libraries-2;a,b,c", "libraries-2;a,b,c,%", "libraries-2;a,b,c,%zz"]
        {
            assert!(decode(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_two_parents_share_is_there_once() {
        let side = |name: &str| {
            dependency(&[library("opsmith", "::opsmith"), library("base", "::base"), library(name, "")])
        };
        for dependencies in [vec![side("left"), side("right")], vec![side("right"), side("left")]] {
            let all = libraries(dependencies);
            assert_eq!(
                paths(&all),
                [
                    ("opsmith", "::left::parents::opsmith"),
                    ("left", "::left"),
                    ("right", "::right"),
                    ("base", "::left::parents::base")
                ]
            );
        }
    }
}
