//! Recurrent networks.
//!
//! In: calls. Out: results. The common networks are the library's operators; others run step by step.

use opsmith_runtime::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::all;
use super::recurrent_steps::{Network, direction};
use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::{run, tensors};
use crate::values::Datum;

/// The kinds of networks.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Lstm,
    Gru,
    Plain,
}

impl Kind {
    pub fn gates(self) -> i64 {
        match self {
            Kind::Lstm => 4,
            Kind::Gru => 3,
            Kind::Plain => 1,
        }
    }

    /// The activations that a direction has by default.
    pub fn activations(self) -> &'static [&'static str] {
        match self {
            Kind::Lstm => &["Sigmoid", "Tanh", "Tanh"],
            Kind::Gru => &["Sigmoid", "Tanh"],
            Kind::Plain => &["Tanh"],
        }
    }

    /// The place of each of the library's gates among ONNX's.
    fn order(self) -> &'static [i64] {
        match self {
            // Input, forget, cell, output; in ONNX input, output, forget, cell.
            Kind::Lstm => &[0, 2, 3, 1],
            // Reset, update, new; in ONNX update, reset, hidden.
            Kind::Gru => &[1, 0, 2],
            Kind::Plain => &[0],
        }
    }
}

pub(super) fn lstm(call: &Call<'_>) -> Result<Vec<Datum>> {
    network(call, Kind::Lstm)
}

pub(super) fn gru(call: &Call<'_>) -> Result<Vec<Datum>> {
    network(call, Kind::Gru)
}

pub(super) fn rnn(call: &Call<'_>) -> Result<Vec<Datum>> {
    network(call, Kind::Plain)
}

fn network(call: &Call<'_>, kind: Kind) -> Result<Vec<Datum>> {
    let batch_first = call.flag("layout", false)?;
    let turned = |x: Tensor| if batch_first { run!("transpose.int", &x, 0i64, 1i64) } else { Ok(x) };
    let x = turned(call.tensor(0)?)?;
    let (weight, recurrent) = (call.tensor(1)?, call.tensor(2)?);
    let (&[steps, batch, _], &[directions, rows, units]) = (x.shape(), recurrent.shape()) else {
        return Err(Error::shape("the input and the weights must have 3 dimensions"));
    };
    if rows != kind.gates() * units {
        return Err(Error::shape(format!(
            "the weights have {rows} rows, and {units} units need {}",
            kind.gates() * units
        )));
    }
    let text = call.text("direction", "forward")?;
    if (text == "bidirectional") != (directions == 2)
        || !matches!(text.as_str(), "forward" | "reverse" | "bidirectional")
    {
        return Err(Error::value(format!(
            "`direction` is {text:?}, and the weights have {directions} directions"
        )));
    }
    let zeros = || run!("zeros", vec![directions, batch, units]; "dtype" => x.dtype());
    let state = |position: usize| match call.maybe(position)? {
        Some(state) => turned(state),
        None => zeros(),
    };
    let hidden = state(5)?;
    let cell = if kind == Kind::Lstm { Some(state(6)?) } else { None };
    let network = Network::of(call, kind, directions, units)?;
    let reverse_only = text == "reverse";
    let (rows_of, last_hidden, last_cell) = match network.is_common(call)? && call.maybe(4)?.is_none() {
        true => {
            let flipped = |x: &Tensor| if reverse_only { run!("flip", x, vec![0i64]) } else { Ok(x.clone()) };
            let params = params(&weight, &recurrent, call.maybe(3)?, kind)?;
            let results = by_library(kind, &network, &flipped(&x)?, hidden, cell, params, directions == 2)?;
            let mut results = results.into_iter();
            let mut next = || results.next().ok_or_else(|| Error::argument("a result is missing"));
            let (output, hidden) = (next()?, next()?);
            let cell = if kind == Kind::Lstm { Some(next()?) } else { None };
            let split = run!("reshape", flipped(&output)?, vec![steps, batch, directions, units])?;
            (run!("transpose.int", &split, 1i64, 2i64)?, hidden, cell)
        }
        false => by_direction(call, &network, &x, (&hidden, cell.as_ref()), directions, reverse_only)?,
    };
    // With batches first, `(batch, steps, directions, units)` and `(batch, directions, units)`.
    let output = match batch_first {
        true => run!("permute", &rows_of, vec![2i64, 0, 1, 3])?,
        false => rows_of,
    };
    let mut results = vec![output, turned(last_hidden)?];
    results.extend(last_cell.map(turned).transpose()?);
    Ok(all(results))
}

/// The outputs of all steps and directions, and their last states and cells, one direction after the other.
fn by_direction(
    call: &Call<'_>,
    network: &Network,
    x: &Tensor,
    (hidden, cell): (&Tensor, Option<&Tensor>),
    directions: i64,
    reverse_only: bool,
) -> Result<(Tensor, Tensor, Option<Tensor>)> {
    let (mut rows, mut hiddens, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..directions {
        let (row, last, cell) = direction(call, network, x, hidden, cell, at, reverse_only || at == 1)?;
        rows.push(row);
        hiddens.push(last);
        cells.extend(cell);
    }
    let cell = if cells.is_empty() { None } else { Some(run!("stack", cells, 0i64)?) };
    Ok((run!("stack", rows, 1i64)?, run!("stack", hiddens, 0i64)?, cell))
}

fn by_library(
    kind: Kind,
    network: &Network,
    x: &Tensor,
    hidden: Tensor,
    cell: Option<Tensor>,
    (params, biased): (Vec<Tensor>, bool),
    both: bool,
) -> Result<Vec<Tensor>> {
    let state: Value = match cell {
        Some(cell) => vec![hidden, cell].into(),
        None => hidden.into(),
    };
    let name = match kind {
        Kind::Lstm => "lstm.input",
        Kind::Gru => "gru.input",
        Kind::Plain if network.activations.iter().all(|activation| activation.name == "Relu") => {
            "rnn_relu.input"
        }
        Kind::Plain => "rnn_tanh.input",
    };
    let args: [Value; 9] = [
        x.into(),
        state,
        params.into(),
        biased.into(),
        1i64.into(),
        0.0.into(),
        false.into(),
        both.into(),
        false.into(),
    ];
    tensors(name, &args, &[])
}

/// The weights of each direction in the library's order of gates, and whether there are biases.
fn params(
    weight: &Tensor,
    recurrent: &Tensor,
    bias: Option<Tensor>,
    kind: Kind,
) -> Result<(Vec<Tensor>, bool)> {
    let units = recurrent.size(2)?;
    let ordered = |x: &Tensor, direction: i64, first: i64| {
        let rows = run!("select.int", x, 0i64, direction)?;
        let gate = |gate: &i64| run!("narrow", &rows, 0i64, (first + gate) * units, units);
        run!("cat", kind.order().iter().map(gate).collect::<Result<Vec<_>>>()?, 0i64)
    };
    if let Some(bias) = &bias
        && bias.size(-1)? != 2 * kind.gates() * units
    {
        return Err(unsupported(format!("a bias of {} numbers for {units} units", bias.size(-1)?)));
    }
    let mut params = Vec::new();
    for direction in 0..recurrent.size(0)? {
        params.push(ordered(weight, direction, 0)?);
        params.push(ordered(recurrent, direction, 0)?);
        if let Some(bias) = &bias {
            params.push(ordered(bias, direction, 0)?);
            params.push(ordered(bias, direction, kind.gates())?);
        }
    }
    Ok((params, bias.is_some()))
}
