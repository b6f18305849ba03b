//! Printers of graphs: tables, drawings, pages, reports of memory.
//!
//! In: a graph. Out: text or numbers for users. `model` is the view model that all printers share. Must not change a
//! graph; execution must not depend on this module.

pub(crate) mod dot;
pub(crate) mod html;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod table;
