//! Overload resolution of calls by name.
//!
//! In: the overloads of a name, and boxed arguments. Out: the one that takes them with the fewest conversions, or an
//! error that lists the overloads, each with the reason for its rejection.

use super::{Bound, Keyword, bind, is_out_name};
use crate::arg::Value;
use crate::error::{Error, Result};
use crate::library::{self, Candidates, Library, Named};
use crate::op::{ArgKind, OpDef};

/// The overload and the form for a call.
///
/// # Errors
/// If there is no such operator, or if no overload takes the arguments. A single overload is returned unchecked: its
/// own error is more specific.
pub(super) fn choose(
    library: &'static Library,
    name: &str,
    args: &[Value],
    kwargs: &[(&str, Value)],
) -> Result<Named> {
    fitting(library.candidates(name)?, name, args, kwargs, |op| (0, library.position(op)))
}

/// As [`choose`], among the operators of every linked library.
///
/// # Errors
/// As [`choose`].
pub(crate) fn choose_linked(name: &str, args: &[Value], kwargs: &[(&str, Value)]) -> Result<Named> {
    let mut found = Candidates::new();
    let mut missing: Option<(usize, Error)> = None;
    for library in library::linked() {
        match library.candidates(name) {
            Ok(candidates) => {
                for candidate in candidates {
                    let known =
                        found.iter().any(|(op, form)| std::ptr::eq(*op, candidate.0) && *form == candidate.1);
                    if !known {
                        found.push(candidate);
                    }
                }
            }
            // The error of the library with the most operators lists the nearest names.
            Err(error) => {
                let known = library.all_ops().len();
                if missing.as_ref().is_none_or(|(most, _)| known > *most) {
                    missing = Some((known, error));
                }
            }
        }
    }
    match missing {
        Some((_, error)) if found.is_empty() => return Err(error),
        _ => {}
    }
    // Ordered by library name, since the link order may differ between builds.
    fitting(found, name, args, kwargs, |op| (op.library.name, op.library.position(op)))
}

/// The candidate that takes a call with the fewest conversions.
fn fitting<P: Ord>(
    mut candidates: Candidates,
    name: &str,
    args: &[Value],
    kwargs: &[(&str, Value)],
    position: impl Fn(&'static OpDef) -> P,
) -> Result<Named> {
    if let [only] = candidates.as_slice() {
        return Ok(*only);
    }
    // Of equal candidates, the one of exactly this name wins, else the first declared.
    candidates.sort_by_key(|(op, _)| (op.name != name, position(op)));
    let mut best: Option<(u32, Named)> = None;
    let mut refused = Vec::new();
    for candidate in candidates {
        match cost(candidate.0, args, kwargs) {
            // No other can fit better, and the conversions of others may read elements.
            Ok(0) => return Ok(candidate),
            Ok(cost) if best.is_none_or(|(least, _)| cost < least) => best = Some((cost, candidate)),
            Ok(_) => {}
            Err(error) => refused.push((candidate.0.schema.text, error)),
        }
    }
    best.map(|(_, chosen)| chosen).ok_or_else(|| none_fits(name, args, kwargs, &refused))
}

/// The conversions that a call needs, weighted.
fn cost(op: &'static OpDef, args: &[Value], kwargs: &[(&str, Value)]) -> Result<u32> {
    let (outs, kwargs): (Vec<Keyword<'_>>, Vec<Keyword<'_>>) =
        kwargs.iter().partition(|(key, _)| is_out_name(op, key));
    if !outs.is_empty() && op.forms.out.is_none() {
        return Err(Error::argument("it has no out form"));
    }
    let bound = bind(op, args, &kwargs)?;
    Ok(bound.iter().zip(op.schema.args).map(|(bound, def)| weight(bound, def.ty.kind)).sum())
}

/// The weight of one argument's conversion. A tensor for a number or the reverse weighs more than several
/// conversions between numbers.
fn weight(bound: &Bound<'_>, kind: ArgKind) -> u32 {
    match (bound, kind) {
        (Bound::Given(_) | Bound::Default(_), _) => 0,
        (Bound::Converted(Value::Scalar(_)), ArgKind::Scalar) => 0,
        (Bound::FromTensor(_), _) | (Bound::Converted(_), ArgKind::Tensor) => 16,
        (Bound::Converted(_), _) => 1,
    }
}

fn none_fits(
    name: &str,
    args: &[Value],
    kwargs: &[(&str, Value)],
    refused: &[(&'static str, Error)],
) -> Error {
    let positional = args.iter().map(|value| value.as_arg().kind().to_string());
    let named = kwargs.iter().map(|(key, value)| format!("{key}: {}", value.as_arg().kind()));
    let given: Vec<String> = positional.chain(named).collect();
    let message = format!("no overload of `{name}` takes ({})", given.join(", "));
    let error = refused.iter().fold(Error::argument(message), |error, (signature, reason)| {
        error.with_note(format!("{signature}: {}", reason.message()))
    });
    error.with_help("give the arguments of one of these overloads, or name it in full")
}
