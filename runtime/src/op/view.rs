//! Views: operators whose outputs show the memory of their first argument.
//!
//! In: arguments. Out: layouts over that memory.

use smallvec::{SmallVec, smallvec};

use crate::arg::Arg;
use crate::error::Result;
use crate::layout::Layout;

/// Computes the layouts of a view operator's outputs.
#[derive(Clone, Copy)]
pub enum ViewFn {
    /// The layout of the only output, which needs no list.
    One(fn(&[Arg<'_>]) -> Result<Layout>),
    /// The layout of each tensor of a list.
    List(fn(&[Arg<'_>]) -> Result<SmallVec<[Layout; 1]>>),
}

impl ViewFn {
    /// The layouts of all outputs.
    ///
    /// # Errors
    /// If the arguments do not fit together.
    pub fn layouts(self, args: &[Arg<'_>]) -> Result<SmallVec<[Layout; 1]>> {
        match self {
            ViewFn::One(layout) => Ok(smallvec![layout(args)?]),
            ViewFn::List(layouts) => layouts(args),
        }
    }
}
