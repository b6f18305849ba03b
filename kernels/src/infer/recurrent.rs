//! Shapes of recurrent networks.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Dims, Error, Result, Tensor};

/// The shape of the states of all steps: the input's, with the units of all directions last.
///
/// # Errors
/// If a shape or the number of parameters does not fit.
pub fn lstm(
    input: &Tensor,
    hx: &[Tensor],
    params: &[Tensor],
    has_biases: bool,
    num_layers: i64,
    bidirectional: bool,
    batch_first: bool,
) -> Result<Dims> {
    let &[outer, inner, inputs] = input.shape() else {
        return Err(Error::shape(format!("the input has the shape {}", ShapeText(input.shape()))).with_help(
            "a sequence is (steps, batch, inputs), or (batch, steps, inputs) with `batch_first`",
        ));
    };
    let batch = if batch_first { outer } else { inner };
    let [hidden, cell] = hx else {
        return Err(Error::argument(format!("{} states are given, two are taken", hx.len())));
    };
    let directions = if bidirectional { 2 } else { 1 };
    let each = if has_biases { 4 } else { 2 };
    let blocks = num_layers
        .checked_mul(directions)
        .filter(|blocks| params.len() as i64 == blocks.saturating_mul(each));
    let Some(blocks) = blocks else {
        return Err(Error::argument(format!(
            "{} parameters are given, and {num_layers} layers in {directions} directions take {each} each",
            params.len()
        )));
    };
    let units = hidden.shape().last().copied().unwrap_or(0);
    let state = [blocks, batch, units];
    for given in [hidden, cell] {
        expect("a state", given, &state)?;
    }
    for (block, params) in params.chunks_exact(each as usize).enumerate() {
        let own = if (block as i64) < directions { inputs } else { units.saturating_mul(directions) };
        let gates = units.saturating_mul(4);
        expect("a weight of the input", &params[0], &[gates, own])?;
        expect("a weight of the state", &params[1], &[gates, units])?;
        params[2..].iter().try_for_each(|bias| expect("a bias", bias, &[gates]))?;
    }
    Ok(Dims::from_slice(&[outer, inner, units.saturating_mul(directions)]))
}

/// The shape of the state with this position: that of the one before the first step.
///
/// # Errors
/// If there is none.
pub fn lstm_state(hx: &[Tensor], position: i64) -> Result<Dims> {
    match usize::try_from(position).ok().and_then(|position| hx.get(position)) {
        Some(state) => Ok(state.shape().into()),
        None => Err(Error::argument(format!("{} states are given, two are taken", hx.len()))),
    }
}

fn expect(what: &str, given: &Tensor, shape: &[i64]) -> Result<()> {
    if given.shape() == shape {
        return Ok(());
    }
    Err(Error::shape(format!(
        "{what} has the shape {}, expected is {}",
        ShapeText(given.shape()),
        ShapeText(shape)
    )))
}
