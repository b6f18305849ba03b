//! The printed results of examples.
//!
//! In: `printed.txt` beside this file, which a test of the Python package records and compares with new results. Out: the lines of a
//! session of Python that follow an example's call.

use std::collections::HashMap;
use std::sync::LazyLock;

use opsmith_runtime::op::OpDef;

/// The library whose operators were recorded.
const LIBRARY: &str = "opsmith";

/// A name at the beginning of a line; below it, indented, the lines of its session.
static RECORDED: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let mut recorded = HashMap::new();
    let mut rest = include_str!("printed.txt");
    while let Some((name, after)) = rest.split_once('\n') {
        let indented = after.split_inclusive('\n').take_while(|line| line.starts_with(' '));
        let (session, later) = after.split_at(indented.map(str::len).sum());
        if !session.is_empty() {
            recorded.insert(name, session);
        }
        rest = later;
    }
    recorded
});

/// The lines after the example of a function, whose call is that of an operator; none if nothing was recorded.
pub fn printed(name: &str, op: &OpDef) -> impl Iterator<Item = &'static str> {
    let session = RECORDED.get(name).filter(|_| op.library.name == LIBRARY);
    session
        .into_iter()
        .flat_map(|session| session.lines())
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
}
