//! Every message of the front end with its hint, one function a mistake.
//!
//! `E00xx` YAML, `E01xx` signatures, `E02xx` entries and keys, `E03xx` expressions, `E04xx` declarations of an entry,
//! `W05xx` probable mistakes, `E06xx` tangents, samples and tolerances. Wording: the headline names the mistake, the
//! label shows the actual or expected text, the help gives the correction.

mod alias;
mod attribute;
mod body;
mod derivative;
mod entry;
mod expression;
mod function;
mod inference;
mod lint;
mod map;
mod naming;
mod operator;
mod result;
mod sample;
mod signature;
mod yaml;

use super::Help;

pub use alias::*;
pub use attribute::*;
pub use body::*;
pub use derivative::*;
pub use entry::*;
pub use expression::*;
pub use function::*;
pub use inference::*;
pub use lint::*;
pub use map::*;
pub use naming::*;
pub use operator::*;
pub use result::*;
pub use sample::*;
pub use signature::*;
pub use yaml::*;

/// The name to write instead of the primary span.
fn did_you_mean(name: &str) -> Help {
    Help { text: format!("did you mean `{name}`?"), replacement: Some(name.to_owned()) }
}

/// Names as code, with commas.
fn ticked<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// The nearest of the known names, or all of them.
fn near_or_all(name: &str, known: &[&str], all: &str) -> Help {
    match super::nearest(name, known.iter().copied()) {
        Some(near) => did_you_mean(near),
        None if known.is_empty() => format!("there are no {all}").into(),
        None => format!("the {all} are {}", ticked(known.iter().copied())).into(),
    }
}

/// `a` or `an`, by the first letter of a type's name.
fn article(noun: &str) -> &'static str {
    match noun.trim_start_matches('(').starts_with(['a', 'e', 'i', 'o', 'O', 'I']) {
        true => "an",
        false => "a",
    }
}
