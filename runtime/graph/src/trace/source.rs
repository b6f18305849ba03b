//! Source locations outside this program: the sites of calls that a reader of programs makes for their authors.
//!
//! In: a location as text, and the calls made for it. Out: the site of the nodes that they record.

use std::cell::RefCell;
use std::rc::Rc;

use crate::ir::Site;

thread_local! {
    static SOURCE: RefCell<Option<Rc<str>>> = const { RefCell::new(None) };
}

/// Runs a function whose traced calls have a location outside this program as their site, such as the line of another
/// language that an imported program was written in. Errors, tables and drawings of the graph show it.
///
/// ```
/// use opsmith_graph::{Graph, InputSpec, at_source};
/// use opsmith_runtime::DType;
/// // A reader of programs would call operators inside.
/// let graph = Graph::trace(
///     |x| at_source("model.py:12", || Ok(x[0].clone())),
///     [InputSpec::new(DType::F32, ["n".into()])],
/// )?;
/// # assert_eq!(graph.nodes().len(), 0);
/// # Ok::<(), opsmith_runtime::Error>(())
/// ```
pub fn at_source<R>(location: &str, function: impl FnOnce() -> R) -> R {
    struct Restore(Option<Rc<str>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            SOURCE.set(self.0.take());
        }
    }
    let _restore = Restore(SOURCE.replace(Some(location.into())));
    function()
}

/// The site of calls that this thread makes, if they have a location outside this program.
pub(crate) fn current() -> Option<Site> {
    SOURCE.with_borrow(|source| source.as_deref().map(|location| Site::Elsewhere(location.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_location_is_the_site() {
        assert_eq!(current(), None);
        at_source("a.py:1", || {
            at_source("a.py:2", || assert_eq!(current(), Some(Site::Elsewhere("a.py:2".to_owned()))));
            assert_eq!(current(), Some(Site::Elsewhere("a.py:1".to_owned())));
        });
        assert_eq!(current(), None);
    }
}
