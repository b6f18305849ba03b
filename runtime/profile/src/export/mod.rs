//! Files for other programs and for people, made from a profile.

mod chrome;
mod flame;
mod html;
mod memory;
mod text;

pub use memory::{Owner, Timeline};
