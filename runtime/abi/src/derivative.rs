//! Derivatives of an operator as functions of tensors.
//!
//! In: the gradients of a call's results, the results, and the arguments; or the tangents of arguments. Out: the gradients of arguments;
//! or the tangents of results. In reverse mode a call of an entry with formulas is recorded from its results, without running again, and
//! only elements that formulas read need exist; a composition runs again, and so does every call in forward mode.

use opsmith_runtime::autograd::{self, Options};
use opsmith_runtime::op::OpDef;
use opsmith_runtime::{Arg, Result, Tensor, Value, boxed, internals};

/// Arguments by position and by name.
pub type Given = (Vec<Value>, Vec<(String, Value)>);

/// Whether the results of a call, which are its visible ones, suffice to record it.
pub fn is_recorded_from_results(op: &OpDef) -> bool {
    op.grad.is_some() && op.hidden == 0 && op.present.is_none()
}

/// Calls a function with each tensor of arguments and its place among them, those of lists one by one.
fn each_tensor(given: &mut Given, mut visit: impl FnMut(usize, &mut Tensor) -> Result<()>) -> Result<()> {
    let mut place = 0;
    let mut one = |tensor: &mut Tensor| {
        place += 1;
        visit(place - 1, tensor)
    };
    let (args, named) = given;
    for value in args.iter_mut().chain(named.iter_mut().map(|(_, value)| value)) {
        match value {
            Value::Tensor(tensor) => one(tensor)?,
            Value::Tensors(list) => list.iter_mut().try_for_each(&mut one)?,
            Value::OptionalTensors(list) => list.iter_mut().flatten().try_for_each(&mut one)?,
            _ => {}
        }
    }
    Ok(())
}

/// Replaces the tensors of arguments by leaves where a gradient is wanted; returns those.
///
/// # Errors
/// If a wanted tensor can have no gradient.
pub fn track(given: &mut Given, wanted: &[bool]) -> Result<Vec<Tensor>> {
    let mut leaves = Vec::new();
    each_tensor(given, |place, tensor| {
        if wanted.get(place).copied().unwrap_or(false) {
            *tensor = tensor.detach();
            tensor.set_requires_grad(true)?;
            leaves.push(tensor.clone());
        }
        Ok(())
    })?;
    Ok(leaves)
}

/// The results of a call of tracked arguments, in its graph.
///
/// # Errors
/// Errors of the call.
pub fn recorded(op: &'static OpDef, given: &Given, results: Option<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    let (args, named) = given;
    let named: Vec<(&str, Value)> =
        named.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    if let Some(mut results) = results {
        results.iter_mut().for_each(|tensor| *tensor = tensor.detach());
        let record = |args: &[Arg<'_>]| internals::record_results(op, args, &mut results);
        internals::with_bound(op, args, &named, record)?;
        return Ok(results);
    }
    let values = boxed::call_definition(op, args, &named)?;
    let mut found = Vec::new();
    for value in &values {
        match value {
            // An absent result keeps its place among the gradients.
            Value::None => found.push(Tensor::from_slice::<f32>(&[], &[0])?),
            value => value.as_arg().for_each_tensor(|tensor| found.push(tensor.clone())),
        }
    }
    Ok(found)
}

/// The gradients of tensors, from those of results; `None` where no result depends on one.
///
/// # Errors
/// Errors of formulas.
pub fn pull(
    results: &[Tensor],
    gradients: &[Option<Tensor>],
    leaves: &[Tensor],
    options: Options,
) -> Result<Vec<Option<Tensor>>> {
    let flows =
        |(result, gradient): &(&Tensor, &Option<Tensor>)| gradient.is_some() && result.requires_grad();
    let (results, gradients): (Vec<&Tensor>, Vec<Option<&Tensor>>) = results
        .iter()
        .zip(gradients)
        .filter(flows)
        .map(|(result, gradient)| (result, gradient.as_ref()))
        .unzip();
    if results.is_empty() {
        return Ok(vec![None; leaves.len()]);
    }
    autograd::grad(&results, &leaves.iter().collect::<Vec<_>>(), &gradients, options)
}

/// The leaves whose gradients are wanted, and those gradients, from the gradients of results. `results` are those of the call, of
/// which the derivative is recorded; without them the operator runs again.
///
/// # Errors
/// Errors of the operator and of its formulas.
pub fn gradients(
    op: &'static OpDef,
    given: &mut Given,
    results: Option<Vec<Tensor>>,
    of_results: &[Option<Tensor>],
    wanted: &[bool],
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    let leaves = track(given, wanted)?;
    let results = results.filter(|_| is_recorded_from_results(op));
    let outs = autograd::enable_grad(|| recorded(op, given, results))?;
    let found = pull(&outs, of_results, &leaves, Options::default())?;
    Ok((leaves, found))
}

/// The lists of a call of the second derivative.
pub struct Lists<'a> {
    /// The gradients of the first derivative's results, one for each wanted tensor.
    pub cotangents: &'a [Option<Tensor>],
    /// A truth value for each present gradient of the call, then each tensor argument.
    pub needed: &'a [bool],
    /// A truth value for each tensor argument: whether the first derivative gives its gradient.
    pub wanted: &'a [bool],
}

/// The leaves whose gradients a second derivative gives, and those gradients. Without the results of the call the operator runs again.
///
/// # Errors
/// Errors of the call and of formulas.
pub fn second(
    op: &'static OpDef,
    given: &mut Given,
    gradients: &mut [Option<Tensor>],
    results: &[Tensor],
    lists: &Lists<'_>,
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    let Lists { cotangents, needed, wanted } = *lists;
    let present = gradients.iter().flatten().count();
    let mut all = Vec::new();
    for (gradient, needed) in gradients.iter_mut().flatten().zip(needed) {
        *gradient = gradient.detach();
        if *needed {
            gradient.set_requires_grad(true)?;
            all.push(gradient.clone());
        }
    }
    // Every argument that takes part in either derivative is a leaf.
    let needed = needed.get(present..).unwrap_or_default();
    let is_in = |list: &[bool], at: usize| list.get(at).copied().unwrap_or(false);
    let either: Vec<bool> =
        (0..wanted.len().max(needed.len())).map(|at| is_in(wanted, at) || is_in(needed, at)).collect();
    let leaves = track(given, &either)?;
    let places: Vec<usize> = (0..either.len()).filter(|at| either[*at]).collect();
    let of = |list: &[bool]| -> Vec<Tensor> {
        let chosen = places.iter().zip(&leaves).filter(|(at, _)| is_in(list, **at));
        chosen.map(|(_, leaf)| leaf.clone()).collect()
    };
    autograd::enable_grad(|| {
        let is_recorded = is_recorded_from_results(op) && !results.is_empty();
        let given_results = is_recorded.then(|| results.to_vec());
        let outs = recorded(op, given, given_results)?;
        let options = Options { retain_graph: true, create_graph: true };
        let first = pull(&outs, gradients, &of(wanted), options)?;
        let (first, starts): (Vec<Tensor>, Vec<Option<Tensor>>) =
            first.into_iter().zip(cotangents).filter_map(|(one, start)| Some((one?, start.clone()))).unzip();
        all.extend(of(needed));
        let found = pull(&first, &starts, &all, Options::default())?;
        Ok((all, found))
    })
}

/// The results of a call and their derivatives along each of the lists, one after the other, in forward mode. A list has an item for
/// each tensor argument; `None` is zero. One list gives the tangents of results, a second one the derivatives of these tangents. A
/// derivative is `None` where a result depends on none of the arguments that move.
///
/// # Errors
/// Errors of the operator and of its rules; if a tangent does not have the shape and dtype of its argument.
pub fn tangents(
    op: &'static OpDef,
    given: &Given,
    along: &[&[Option<Tensor>]],
) -> Result<(Vec<Tensor>, Vec<Option<Tensor>>)> {
    let Some((steps, rest)) = along.split_first() else {
        let outs = recorded(op, given, None)?;
        let found = outs.iter().cloned().map(Some).collect();
        return Ok((outs, found));
    };
    let step = |place: usize| steps.get(place).and_then(Option::as_ref);
    let mut inputs = Vec::new();
    each_tensor(&mut given.clone(), |place, tensor| {
        inputs.extend(step(place).map(|_| tensor.clone()));
        Ok(())
    })?;
    let (mut outs, mut places) = (Vec::new(), Vec::new());
    let run = |duals: &[Tensor]| {
        let (mut moved, mut duals) = (given.clone(), duals.iter());
        each_tensor(&mut moved, |place, tensor| {
            if let Some(dual) = step(place).and_then(|_| duals.next()) {
                *tensor = dual.clone();
            }
            Ok(())
        })?;
        let found;
        (outs, found) = tangents(op, &moved, rest)?;
        places = (0..found.len()).filter(|place| found[*place].is_some()).collect();
        Ok(found.into_iter().flatten().collect())
    };
    let given_steps: Vec<&Tensor> = steps.iter().flatten().collect();
    let (_, derived) = autograd::jvp(run, &inputs.iter().collect::<Vec<_>>(), &given_steps)?;
    let mut found = vec![None; outs.len()];
    for (place, derived) in places.into_iter().zip(derived) {
        found[place] = derived;
    }
    Ok((outs, found))
}
