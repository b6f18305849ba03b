//! Parts of a graph besides nodes: shape constants, and variants.
//!
//! In: results of tracing. Out: data, and an error for a shape constant that changed.

use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::Symbol;
use opsmith_runtime::storage::Storage;

use super::{Graph, Site};

/// A list of fallible items whose number is known: a node lives as long as its graph, so that its list has no room to
/// spare, as one that is collected has.
///
/// # Errors
/// The first one of the items.
pub(crate) fn exactly<T, E>(number: usize, items: impl Iterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let mut list = Vec::with_capacity(number);
    for item in items {
        list.push(item?);
    }
    Ok(list)
}

/// A shape constant: its elements determined a shape when a function was traced.
#[derive(Clone)]
pub(crate) struct ShapeConstant {
    pub storage: Storage,
    pub version: u64,
    pub op: &'static str,
    pub argument: &'static str,
    pub site: Site,
}

impl std::fmt::Debug for ShapeConstant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` of `{}` at {}", self.argument, self.op, self.site)
    }
}

impl ShapeConstant {
    /// Checks that the constant has not changed since the trace.
    ///
    /// # Errors
    /// If it has.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.storage.version() == self.version { Ok(()) } else { Err(self.changed()) }
    }

    #[cold]
    fn changed(&self) -> Error {
        Error::graph(format!(
            "the elements of `{}` decided the shape of the result when the function was traced, and have changed since",
            self.argument
        ))
        .with_help("trace the function again")
        .with_note(format!("called at {}", self.site))
        .in_op(self.op, Vec::new())
    }
}

/// The graph for one value of a symbol.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub symbol: Symbol,
    pub value: i64,
    pub graph: Graph,
}
