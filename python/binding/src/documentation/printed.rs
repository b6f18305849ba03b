//! The printed results of examples, and the package that examples import.
//!
//! In: `printed.txt` beside this file, which a test of the Python package records and compares with new results, and the text of the
//! same form that another package records of its operators. Out: the lines of a session of Python that follow an example's call.

use std::collections::HashMap;
use std::sync::OnceLock;

use opsmith_runtime::op::OpDef;

/// The library whose results are in `printed.txt`.
const STOCK: &str = "opsmith";

/// The package that is filled.
struct Package {
    name: String,
    /// The sessions of functions, by library.
    sessions: [(&'static str, HashMap<&'static str, &'static str>); 2],
}

static PACKAGE: OnceLock<Package> = OnceLock::new();

/// Remembers the package of a library, and the results that it recorded. The first stays.
pub fn learn_package(library: &'static str, package: &str, printed: &'static str) {
    let stock = (STOCK, sessions(include_str!("printed.txt")));
    let own = (library, if library == STOCK { HashMap::new() } else { sessions(printed) });
    PACKAGE.get_or_init(|| Package { name: package.to_owned(), sessions: [stock, own] });
}

/// The name by which users import the package.
pub fn package() -> &'static str {
    PACKAGE.get().map_or(STOCK, |package| &package.name)
}

/// A name at the beginning of a line; below it, indented, the lines of its session.
fn sessions(text: &'static str) -> HashMap<&'static str, &'static str> {
    let mut recorded = HashMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('\n') {
        let indented = after.split_inclusive('\n').take_while(|line| line.starts_with(' '));
        let (session, later) = after.split_at(indented.map(str::len).sum());
        if !session.is_empty() {
            recorded.insert(name.trim_end(), session);
        }
        rest = later;
    }
    recorded
}

/// The lines after the example of a function, whose call is that of an operator; none if nothing was recorded.
pub fn printed(name: &str, op: &OpDef) -> impl Iterator<Item = &'static str> {
    let libraries = PACKAGE.get().map_or(&[][..], |package| &package.sessions);
    let session = libraries.iter().filter(|(library, _)| *library == op.library.name);
    session
        .filter_map(|(_, sessions)| sessions.get(name))
        .flat_map(|session| session.lines())
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
}
