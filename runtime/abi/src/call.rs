//! Calls of operators and of their derivatives.
//!
//! In: an operator and arguments from C. Out: results in the caller's memory, written or, on a device, asked for in the caller's stream.

use std::ffi::c_int;

use opsmith_runtime::autograd;
use opsmith_runtime::error::Error;
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Tensor, Value, boxed, copy, internals};
use smallvec::SmallVec;

use crate::arguments::{self, Given, by_name, list, read_all, tensors_of, with_bound};
use crate::derivative::{Lists, gradients, second, tangents};
use crate::device::CallStream;
use crate::failure::{Outcome, guarded, mistake};
use crate::operators::definition;
use crate::outputs::{Outputs, are_overlapping};
use crate::structures::{self, Operator, Tensors};

/// Calls a function with the caller's places of results, while this thread is in the caller's stream.
fn in_stream(outputs: *const structures::Outputs, call: impl FnOnce(&Outputs) -> Outcome<()>) -> c_int {
    guarded(|| {
        // SAFETY: the pointer and the stream are those of the header.
        let (outputs, entered) = unsafe {
            let outputs = Outputs::read(outputs)?;
            (outputs, outputs.stream.enter()?)
        };
        call(&outputs)?;
        entered.leave()
    })
}

/// `run` of the header.
pub unsafe extern "C" fn run(
    op: *const Operator,
    values: *const structures::Value,
    count: i64,
    outputs: *const structures::Outputs,
) -> c_int {
    in_stream(outputs, |outputs| {
        // SAFETY: the pointers are those of the header, and tensors over the caller's memory end with this function.
        unsafe {
            let op = definition(op)?;
            let given = read_all(op, values, count, outputs.stream)?;
            autograd::no_grad(|| run_given(op, &given, outputs))
        }
    })
}

/// Runs a call. A kernel writes into memory that the caller allocates, for which inference runs first; results of compositions are
/// given when they exist.
///
/// # Safety
/// The caller's functions are as the header says.
unsafe fn run_given(op: &'static OpDef, given: &Given, outputs: &Outputs) -> Outcome<()> {
    let inputs = tensors_of(given);
    let has_kernel = op.composite.is_none() || !op.kernels.is_none();
    if let Some(infer) = op.infer.filter(|_| has_kernel && op.view.is_none() && op.present.is_none()) {
        let inferred = with_bound(op, given, infer)?;
        let visible = inferred.outs.len() - op.hidden;
        let mut apart = inputs;
        let mut targets: SmallVec<[Tensor; 2]> = SmallVec::new();
        for (index, spec) in inferred.outs[..visible].iter().enumerate() {
            let (sizes, dtype, device) = (&spec.sizes, spec.dtype, inferred.device);
            // SAFETY: the caller's promise.
            let target = unsafe { outputs.allocated(index, sizes, dtype, device, &apart)? };
            apart.push(target.clone());
            targets.push(target);
        }
        let mut targets: SmallVec<[&mut Tensor; 2]> = targets.iter_mut().collect();
        return Ok(with_bound(op, given, |args| internals::call::invoke_out(op, args, &mut targets))?);
    }
    let values = with_bound(op, given, |args| boxed::functional(op, args))?;
    let mut index = 0;
    for value in values {
        let results = match value {
            Value::Tensor(tensor) => vec![tensor],
            Value::Tensors(list) => list,
            _ => return mistake(format!("`{}` returns values that are no tensors", op.name)),
        };
        for result in results {
            // SAFETY: the caller's promise.
            unsafe { outputs.give(index, result, &inputs)? };
            index += 1;
        }
    }
    Ok(())
}

/// Tensors of a list, of which some may be absent.
///
/// # Safety
/// As [`arguments::tensor`], of each item.
unsafe fn optional(
    items: Tensors,
    count: i64,
    name: &str,
    stream: CallStream,
) -> Outcome<Vec<Option<Tensor>>> {
    // SAFETY: the caller's promise.
    let items = unsafe { list(items, count, name)? };
    let one = |item: &*const structures::Tensor| {
        // SAFETY: the caller's promise.
        (!item.is_null()).then(|| unsafe { arguments::tensor(*item, name, stream) }).transpose()
    };
    items.iter().map(one).collect()
}

/// The results of a call, if they are given.
///
/// # Safety
/// As [`optional`].
unsafe fn results_of(
    op: &OpDef,
    items: Tensors,
    count: i64,
    stream: CallStream,
) -> Outcome<Option<Vec<Tensor>>> {
    if items.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let found = unsafe { optional(items, count, "results", stream)? };
    let found: Option<Vec<Tensor>> = found.into_iter().collect();
    match found {
        None => mistake(format!("a result of `{}` is null among others", op.name)),
        found => Ok(found),
    }
}

/// Truth values of a list.
///
/// # Safety
/// As [`list`].
unsafe fn truths(items: *const u8, count: i64, name: &str) -> Outcome<Vec<bool>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { list(items, count, name)? }.iter().map(|byte| *byte != 0).collect())
}

/// `gradient` of the header.
pub unsafe extern "C" fn gradient(
    op: *const Operator,
    values: *const structures::Value,
    count: i64,
    results: Tensors,
    of_results: Tensors,
    result_count: i64,
    wanted: *const u8,
    wanted_count: i64,
    outputs: *const structures::Outputs,
) -> c_int {
    in_stream(outputs, |outputs| {
        // SAFETY: the pointers are those of the header, and tensors over the caller's memory end with this function.
        unsafe {
            let op = definition(op)?;
            let given = read_all(op, values, count, outputs.stream)?;
            let mut apart = tensors_of(&given);
            let wanted = truths(wanted, wanted_count, "wanted")?;
            if wanted.len() != apart.len() {
                return mistake(format!("`wanted` has {} items for {} tensors", wanted.len(), apart.len()));
            }
            let results = results_of(op, results, result_count, outputs.stream)?;
            let of_results = optional(of_results, result_count, "gradients", outputs.stream)?;
            apart.extend(results.iter().flatten().chain(of_results.iter().flatten()).cloned());
            let mut given = (Vec::new(), by_name(op, given));
            let (leaves, found) = gradients(op, &mut given, results, &of_results, &wanted)?;
            give(outputs, places(&wanted), &leaves, found, &apart)
        }
    })
}

/// `second_gradient` of the header.
pub unsafe extern "C" fn second_gradient(
    op: *const Operator,
    values: *const structures::Value,
    count: i64,
    results: Tensors,
    of_results: Tensors,
    result_count: i64,
    wanted: *const u8,
    wanted_count: i64,
    cotangents: Tensors,
    cotangent_count: i64,
    needed: *const u8,
    needed_count: i64,
    outputs: *const structures::Outputs,
) -> c_int {
    in_stream(outputs, |outputs| {
        // SAFETY: the pointers are those of the header, and tensors over the caller's memory end with this function.
        unsafe {
            let op = definition(op)?;
            let given = read_all(op, values, count, outputs.stream)?;
            let mut apart = tensors_of(&given);
            let wanted = truths(wanted, wanted_count, "wanted")?;
            let results = results_of(op, results, result_count, outputs.stream)?;
            let mut of_results = optional(of_results, result_count, "gradients", outputs.stream)?;
            let cotangents = optional(cotangents, cotangent_count, "cotangents", outputs.stream)?;
            let needed = truths(needed, needed_count, "needed")?;
            let is_fitting = wanted.len() == apart.len() && needed.len() == of_results.len() + wanted.len();
            if !is_fitting || cotangents.len() != wanted.iter().filter(|wanted| **wanted).count() {
                return mistake("the lists of a second gradient do not fit the call");
            }
            let lists = [&of_results, &cotangents];
            apart.extend(results.iter().flatten().chain(lists.into_iter().flatten().flatten()).cloned());
            // Absent gradients have no place among those that are needed here.
            let is_there: Vec<bool> = of_results.iter().map(Option::is_some).collect();
            let kept = |at: &usize| is_there.get(*at).copied().unwrap_or(true);
            let kept: Vec<usize> = (0..needed.len()).filter(kept).collect();
            let short: Vec<bool> = kept.iter().map(|at| needed[*at]).collect();
            let mut given = (Vec::new(), by_name(op, given));
            let lists = Lists { cotangents: &cotangents, needed: &short, wanted: &wanted };
            let (leaves, found) =
                second(op, &mut given, &mut of_results, &results.unwrap_or_default(), &lists)?;
            let places: Vec<usize> = kept.into_iter().filter(|at| needed[*at]).collect();
            give(outputs, places, &leaves, found, &apart)
        }
    })
}

/// `tangent` of the header.
pub unsafe extern "C" fn tangent(
    op: *const Operator,
    values: *const structures::Value,
    count: i64,
    of_tensors: Tensors,
    others: Tensors,
    tensor_count: i64,
    wanted: *const u8,
    wanted_count: i64,
    outputs: *const structures::Outputs,
) -> c_int {
    in_stream(outputs, |outputs| {
        // SAFETY: the pointers are those of the header, and tensors over the caller's memory end with this function.
        unsafe {
            let op = definition(op)?;
            let given = read_all(op, values, count, outputs.stream)?;
            let mut apart = tensors_of(&given);
            if usize::try_from(tensor_count) != Ok(apart.len()) {
                return mistake(format!("there are {tensor_count} tangents for {} tensors", apart.len()));
            }
            let steps = optional(of_tensors, tensor_count, "tangents", outputs.stream)?;
            let others = (!others.is_null())
                .then(|| optional(others, tensor_count, "others", outputs.stream))
                .transpose()?;
            let wanted = truths(wanted, wanted_count, "wanted")?;
            apart.extend(steps.iter().chain(others.iter().flatten()).flatten().cloned());
            let given = (Vec::new(), by_name(op, given));
            let along: Vec<&[Option<Tensor>]> =
                std::iter::once(&steps).chain(&others).map(Vec::as_slice).collect();
            let (outs, found) = autograd::no_grad(|| tangents(op, &given, &along))?;
            if wanted.len() != outs.len() {
                return mistake(format!("`wanted` has {} items for {} results", wanted.len(), outs.len()));
            }
            let places = places(&wanted);
            let likes: Vec<Tensor> = places.iter().map(|place| outs[*place].clone()).collect();
            let found = places.iter().map(|place| found[*place].clone()).collect();
            give(outputs, places, &likes, found, &apart)
        }
    })
}

/// `convert` of the header.
pub unsafe extern "C" fn convert(
    target: *const structures::Tensor,
    source: *const structures::Tensor,
    stream: *const structures::Stream,
) -> c_int {
    guarded(|| {
        // SAFETY: the pointers are those of the header, and tensors over the caller's memory end before the stream is left.
        unsafe {
            let stream = CallStream::read(stream)?;
            let entered = stream.enter()?;
            {
                let target = arguments::tensor(target, "target", stream)?;
                let source = arguments::tensor(source, "source", stream)?;
                if target.shape() != source.shape() || target.device() != source.device() {
                    return mistake("the tensors of a conversion have one shape, and are on one device");
                }
                if are_overlapping(&target, &source) {
                    let error = Error::aliasing("the memory of the target is that of the source");
                    return Err(error.with_help("give the target memory of its own").into());
                }
                copy::copy(&target, &source)?;
            }
            entered.leave()
        }
    })
}

fn places(list: &[bool]) -> Vec<usize> {
    (0..list.len()).filter(|at| list[*at]).collect()
}

/// Gives gradients or tangents, zeros like a tensor each where there are none.
///
/// # Safety
/// The caller's functions are as the header says.
unsafe fn give(
    outputs: &Outputs,
    places: Vec<usize>,
    likes: &[Tensor],
    found: Vec<Option<Tensor>>,
    inputs: &[Tensor],
) -> Outcome<()> {
    for ((place, like), found) in places.into_iter().zip(likes).zip(found) {
        // SAFETY: the caller's promise.
        unsafe {
            match found {
                Some(found) => outputs.give(place, found, inputs)?,
                None => outputs.zeros(place, like, inputs)?,
            }
        }
    }
    Ok(())
}
