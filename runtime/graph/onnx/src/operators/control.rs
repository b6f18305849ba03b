//! Branches and loops.
//!
//! In: calls whose attributes are blocks. Out: results. A branch whose condition is known is its block in place. A loop
//! whose number of iterations is known is its body as often; other loops are those of graphs.

use opsmith_core::DType;
use opsmith_graph::{cond, scan as scan_graph, while_loop};
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::run;
use crate::values::Datum;

/// More iterations are not written one by one into a graph.
const ITERATIONS: i64 = 1024;

fn tensors(values: &[Datum]) -> Result<Vec<Tensor>> {
    values.iter().map(Datum::tensor).collect()
}

pub(super) fn branch(call: &Call<'_>) -> Result<Vec<Datum>> {
    let (then, otherwise) = (call.block("then_branch")?, call.block("else_branch")?);
    if call.given(0)?.known().is_some() {
        let holds = call.given(0)?.ints("cond")?.first().is_some_and(|truth| *truth != 0);
        return (call.run_block)(if holds { then } else { otherwise }, &[]);
    }
    let predicate = run!("reshape", call.tensor(0)?, Vec::<i64>::new())?;
    // Tensors from outside are copied: results of a branch are its own.
    let own = |block| {
        let results = tensors(&(call.run_block)(block, &[])?)?;
        results.iter().map(|result| run!("clone", result)).collect::<Result<Vec<_>>>()
    };
    cond(&predicate, || own(then), || own(otherwise)).map(all)
}

pub(super) fn repeat(call: &Call<'_>) -> Result<Vec<Datum>> {
    let body = call.block("body")?;
    let carried = call.inputs.len().saturating_sub(2);
    let scanned = body.outputs.len().checked_sub(1 + carried).ok_or_else(|| {
        Error::argument(format!(
            "the body has {} results, and {carried} values are carried",
            body.outputs.len()
        ))
    })?;
    let state: Vec<Datum> = (0..carried).map(|at| call.given(2 + at).cloned()).collect::<Result<_>>()?;
    let most = match call.datum(0) {
        Some(datum) if datum.known().is_some() => Some(call.number(0, "M")?.unwrap_or(0).max(0)),
        Some(_) => None,
        None => Some(i64::MAX),
    };
    let first = match call.datum(1) {
        None => Some(true),
        Some(datum) if datum.known().is_some() => {
            Some(datum.ints("cond")?.first().is_some_and(|truth| *truth != 0))
        }
        Some(_) => None,
    };
    if let (Some(most), Some(first)) = (most, first)
        && let Some(results) = unrolled(call, most, first, &state, scanned)?
    {
        return Ok(results);
    }
    if scanned > 0 {
        return Err(unsupported(
            "a loop that stacks results, and whose number of iterations follows from elements",
        )
        .with_help("export the model with a fixed number of iterations"));
    }
    looped(call, most, &state)
}

#[cold]
fn no_condition() -> Error {
    Error::argument("the body of the loop has no outputs, of which the first is its condition")
}

/// The iterations of a loop one by one; `None` if their number is not known.
fn unrolled(
    call: &Call<'_>,
    most: i64,
    first: bool,
    state: &[Datum],
    scanned: usize,
) -> Result<Option<Vec<Datum>>> {
    let body = call.block("body")?;
    let (mut state, mut stacks) = (state.to_vec(), vec![Vec::new(); scanned]);
    let (mut truth, mut iteration) = (first, 0i64);
    while truth && iteration < most {
        if iteration >= ITERATIONS {
            return Ok(None);
        }
        // Values of a body differ from iteration to iteration, as others do from replay to replay.
        let mut given =
            vec![Datum::sizes(&[iteration], &[], true)?, Datum::of(Tensor::from_slice(&[true], &[])?, true)];
        given.extend(state.iter().map(|value| match value {
            Datum::Known(known) => Datum::of(known.tensor.clone(), true),
            other => other.clone(),
        }));
        let results = (call.run_block)(body, &given)?;
        let condition = results.first().ok_or_else(no_condition)?;
        match condition.known() {
            Some(_) => truth = condition.ints("cond")?.first().is_some_and(|truth| *truth != 0),
            // The number of iterations follows from elements.
            None => return Ok(None),
        }
        state = results[1..=state.len()].to_vec();
        for (stack, result) in stacks.iter_mut().zip(&results[1 + state.len()..]) {
            stack.push(result.tensor()?);
        }
        iteration += 1;
    }
    for stack in stacks {
        if stack.is_empty() {
            return Err(unsupported("a loop without iterations that stacks results"));
        }
        state.push(Datum::Tensor(run!("stack", stack, 0i64)?));
    }
    Ok(Some(state))
}

/// A loop of the graph: its state is the number of the iteration, the condition, and the carried values.
fn looped(call: &Call<'_>, most: Option<i64>, state: &[Datum]) -> Result<Vec<Datum>> {
    let body = call.block("body")?;
    let scalar = |tensor: &Tensor| run!("reshape", tensor, Vec::<i64>::new());
    let limit = match most {
        Some(_) => None,
        None => Some(scalar(&call.tensor(0)?)?),
    };
    let first = match call.datum(1) {
        None => run!("full", Vec::<i64>::new(), true; "dtype" => DType::Bool)?,
        Some(given) => scalar(&given.tensor()?)?,
    };
    let zero = run!("zeros", Vec::<i64>::new(); "dtype" => DType::I64)?;
    let mut initial = vec![zero, first];
    initial.extend(tensors(state)?);
    let results = while_loop(
        &initial,
        |state| {
            let below = match (&limit, most) {
                (Some(limit), _) => run!("lt.Tensor", &state[0], limit)?,
                (None, most) => run!("lt.Scalar", &state[0], most.unwrap_or(i64::MAX))?,
            };
            run!("logical_and", &below, &state[1])
        },
        |state| {
            let given: Vec<Datum> = state.iter().cloned().map(Datum::Tensor).collect();
            let mut next = tensors(&(call.run_block)(body, &given)?)?;
            let condition = next.first_mut().ok_or_else(no_condition)?;
            *condition = scalar(condition)?;
            next.insert(0, run!("add.Scalar", &state[0], 1i64)?);
            Ok(next)
        },
    )?;
    Ok(all(results.into_iter().skip(2)))
}

pub(super) fn scan(call: &Call<'_>) -> Result<Vec<Datum>> {
    let body = call.block("body")?;
    let count = call.int("num_scan_inputs", 0)?;
    let states =
        usize::try_from(count).ok().and_then(|count| call.inputs.len().checked_sub(count)).ok_or_else(
            || Error::argument(format!("`num_scan_inputs` is {count}, of {} inputs", call.inputs.len())),
        )?;
    let axes = |name: &str| -> Result<Vec<i64>> { Ok(call.ints(name)?.unwrap_or_default()) };
    let (input_axes, output_axes) = (axes("scan_input_axes")?, axes("scan_output_axes")?);
    let (input_turned, output_turned) = (axes("scan_input_directions")?, axes("scan_output_directions")?);
    let at = |list: &[i64], place: usize| list.get(place).copied().unwrap_or(0);
    let mut over = Vec::new();
    for place in 0..count as usize {
        let x = run!("movedim.int", call.tensor(states + place)?, at(&input_axes, place), 0i64)?;
        over.push(if at(&input_turned, place) == 1 { run!("flip", &x, vec![0i64])? } else { x });
    }
    let state = (0..states).map(|at| call.tensor(at)).collect::<Result<Vec<_>>>()?;
    let (mut results, stacked) = scan_graph(&state, &over, |state, elements| {
        let given: Vec<Datum> = state.iter().chain(elements).cloned().map(Datum::Tensor).collect();
        let mut next = tensors(&(call.run_block)(body, &given)?)?;
        if next.len() < states {
            return Err(Error::argument("the body has fewer results than states"));
        }
        let rows = next.split_off(states);
        Ok((next, rows))
    })?;
    for (place, x) in stacked.into_iter().enumerate() {
        let x = if at(&output_turned, place) == 1 { run!("flip", &x, vec![0i64])? } else { x };
        results.push(run!("movedim.int", &x, 0i64, at(&output_axes, place))?);
    }
    Ok(all(results))
}
