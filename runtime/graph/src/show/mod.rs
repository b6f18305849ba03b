//! Printers of graphs: tables, drawings, pages, reports of memory.
//!
//! In: a graph. Out: text or numbers for people. `model` is the view model that all printers share; nothing here
//! changes a graph, and nothing that runs a graph needs it.

pub(crate) mod dot;
pub(crate) mod html;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod table;
