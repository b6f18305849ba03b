//! Files for other programs and for people, made from a profile.

mod chrome;
mod flame;
mod html;
mod memory;
mod parts;
mod perfetto;
mod protobuf;
mod roofline;
mod text;

pub use memory::{Owner, Timeline};
pub(crate) use text::escaped;
