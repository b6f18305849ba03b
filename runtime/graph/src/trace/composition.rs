//! Symbolic inference of compositions.
//!
//! In: a composition, and arguments with symbolic or unknown sizes. Out: the shapes and dtypes of its results. A
//! composition is code that reads sizes, so it runs on meta tensors, at several points if sizes are symbols
//! (`infer_at_samples`), and for several ranks if a rank is unknown. Its calls are recorded and dropped.

use opsmith_runtime::autograd;
use opsmith_runtime::device::Device;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::infer::symbolic::{
    ArgumentMeta, Condition, Context, Guard, Meta, OutputsMeta, Shape, Size, Strides,
};
use opsmith_runtime::internals::{Outcome, Owned, concrete, infer_at_samples, operands, with_numbers};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::tensor::Tensor;
use smallvec::SmallVec;

use super::recorder;

/// Sample ranks for an unknown one; operators treat all higher ranks like one of these.
const RANKS: std::ops::Range<usize> = 0..6;

/// Infers a composition, for which [`opsmith_runtime::infer::symbolic::infer()`] has no rules.
///
/// # Errors
/// Errors of the composition at every size and rank, and of [`opsmith_runtime::infer::symbolic::infer()`]; also if this
/// thread traces a function.
pub fn infer_composition(
    op: &'static OpDef,
    args: &[ArgumentMeta<'_>],
    context: &mut Context,
) -> Result<OutputsMeta> {
    let mut unknown_rank = false;
    args.iter().for_each(|arg| arg.for_each_meta(|meta| unknown_rank |= meta.shape.rank().is_none()));
    let inferred = if unknown_rank { at_ranks(op, args, context) } else { at_sizes(op, args, context) };
    inferred.map_err(|error| error.in_op(op.name, operands(op, args, &context.symbols)))
}

fn at_sizes(op: &'static OpDef, args: &[ArgumentMeta<'_>], context: &mut Context) -> Result<OutputsMeta> {
    if let Some(outcome) = run_composition(op, args, &Size::known) {
        return outcome.map(concrete);
    }
    if let Some(sampled) = infer_at_samples(op, args, context, run_composition)? {
        let (outs, compute, present) = (sampled.outs.into(), sampled.compute, sampled.present);
        return Ok(OutputsMeta { outs, compute, present });
    }
    // Perhaps no accepted point was tried; the error at the example values is more specific.
    let example = |size: &Size| {
        size.known()
            .or_else(|| size.evaluate(|symbol| context.symbols.example(symbol).or(Some(6))))
            .or(Some(6))
    };
    match run_composition(op, args, &example) {
        Some(Err(error)) => Err(tried(error)),
        _ => Err(Error::shape("its composition accepts none of the sizes that were tried")
            .with_help("give sizes as numbers, or an example of each")),
    }
}

/// Runs an operator's composition on meta tensors. `None` if a size has no value, or the operator
/// has no composition.
///
/// # Errors
/// Errors of its operators.
fn run_composition(
    op: &'static OpDef,
    args: &[ArgumentMeta<'_>],
    value_of: &dyn Fn(&Size) -> Option<i64>,
) -> Option<Result<Outcome>> {
    let composite = op.composite?;
    with_numbers(args, value_of, |args| {
        let outs = recorder::rehearse(args, || autograd::no_grad(|| composite(args)))?;
        let device = outs.first().map_or(Device::CPU, Tensor::device);
        let outs = outs.iter().map(|out| (out.layout().clone(), out.dtype())).collect();
        Ok(Outcome { outs, compute: None, device, present: op.present_results(args)? })
    })
}

/// Operands of unknown rank whose ranks are combined; the number of combinations is a power of theirs.
const COMBINED: usize = 3;

/// The common result of all ranks that the composition accepts: dtypes, and ranks of results, whose sizes stay unknown.
fn at_ranks(op: &'static OpDef, args: &[ArgumentMeta<'_>], context: &mut Context) -> Result<OutputsMeta> {
    let mut operands = 0;
    let mut count = |meta: &Meta| operands += usize::from(meta.shape.rank().is_none());
    args.iter().for_each(|arg| arg.for_each_meta(&mut count));
    let mut common: Option<OutputsMeta> = None;
    let mut refused = None;
    for rank in RANKS {
        match at_rank(op, args, context, &mut std::iter::repeat(rank)) {
            Err(error) => refused = Some(error),
            Ok(found) => add(&mut common, found)?,
        }
    }
    // Operands may differ in rank, unless the results say nothing that could be wrong.
    let is_open = |common: &OutputsMeta| common.outs.iter().all(|out| out.shape.rank().is_none());
    let combinations = match operands {
        ..=1 => 0,
        2..=COMBINED => RANKS.len().pow(operands as u32),
        _ => {
            let outs = common.iter_mut().flat_map(|common| &mut common.outs);
            outs.for_each(|out| out.shape = Shape::UnknownRank);
            0
        }
    };
    for combination in 0..combinations {
        if common.as_ref().is_some_and(is_open) {
            break;
        }
        let mut rest = combination;
        let mut next = std::iter::repeat_with(|| {
            let rank = rest % RANKS.len();
            rest /= RANKS.len();
            rank
        });
        if let Ok(found) = at_rank(op, args, context, &mut next) {
            add(&mut common, found)?;
        }
    }
    let unknown = || Error::shape("its composition accepts no rank that was tried");
    let common = common.ok_or_else(|| refused.map_or_else(unknown, tried))?;
    context.assume(Guard {
        condition: Condition::Unknown,
        op: op.name,
        reason: "what it is computed by accepts some ranks only".to_owned(),
    });
    Ok(common)
}

/// The error of a composition at the sampled sizes; it may accept others.
fn tried(error: Error) -> Error {
    error.with_note("for sizes that were tried in place of unknown ones; none of those was accepted").with_help(
        "if there are sizes that fit, give them as numbers: which ones a composition accepts can only be tried",
    )
}

/// Values tried for unknown sizes, until one is accepted.
const SIZES: [i64; 6] = [6, 12, 4, 2, 3, 1];

/// The result for operands of the next ranks in place of unknown ones.
fn at_rank(
    op: &'static OpDef,
    args: &[ArgumentMeta<'_>],
    context: &Context,
    ranks: &mut dyn Iterator<Item = usize>,
) -> Result<OutputsMeta> {
    let owned = args.iter().map(|arg| {
        let mut owned = Owned::of(*arg);
        owned.for_each_meta(&mut |meta| {
            if meta.shape.rank().is_none()
                && let Some(rank) = ranks.next()
            {
                meta.shape = Shape::Known(SmallVec::from_elem(Size::Unknown, rank));
            }
        });
        owned
    });
    let owned: Vec<Owned> = owned.collect();
    let args: Vec<ArgumentMeta<'_>> = owned.iter().map(Owned::as_argument).collect();
    let mut refused = Error::not_implemented("the operator has neither a kernel nor a composition");
    for start in SIZES {
        let value = |size: &Size| {
            let example = |symbol| context.symbols.example(symbol).or(Some(start));
            size.evaluate(|symbol| context.symbols.value(symbol, &example)).or(Some(start))
        };
        match run_composition(op, &args, &value) {
            Some(Err(error)) => refused = error,
            None => break,
            Some(Ok(outcome)) => {
                let mut outputs = concrete(outcome);
                for out in &mut outputs.outs {
                    let rank = out.shape.rank().unwrap_or(0);
                    out.shape = Shape::Known(SmallVec::from_elem(Size::Unknown, rank));
                    out.strides = Strides::Unknown;
                }
                return Ok(outputs);
            }
        }
    }
    Err(refused)
}

/// Adds a result to the common part of all.
fn add(common: &mut Option<OutputsMeta>, found: OutputsMeta) -> Result<()> {
    match common {
        Some(common) => unite(common, &found),
        None => {
            *common = Some(found);
            Ok(())
        }
    }
}

/// The common part of two results, stored in the first.
fn unite(common: &mut OutputsMeta, other: &OutputsMeta) -> Result<()> {
    let kinds_equal = common.outs.len() == other.outs.len()
        && common.present == other.present
        && common.outs.iter().zip(&other.outs).all(|(a, b)| a.dtype == b.dtype);
    if !kinds_equal {
        return Err(Error::shape("how many results there are, or their dtypes, depend on a rank")
            .with_help("give the number of dimensions of every tensor"));
    }
    let each = |(common, other): (&mut Meta, &Meta)| {
        if common.shape.rank() != other.shape.rank() {
            common.shape = Shape::UnknownRank;
        }
    };
    common.outs.iter_mut().zip(&other.outs).for_each(each);
    Ok(())
}
