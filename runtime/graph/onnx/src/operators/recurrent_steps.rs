//! Recurrent networks step by step: other activations, bounds, lengths of sequences, peepholes.
//!
//! In: a call, and the direction of a network. Out: its results.

use opsmith_graph::scan;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::recurrent::Kind;
use super::selection::places;
use super::sequences::reversed;
use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::run;

/// A function of single elements.
#[derive(Clone, PartialEq)]
pub(super) struct Activation {
    pub name: String,
    alpha: f64,
    beta: f64,
}

impl Activation {
    fn call(&self, x: &Tensor) -> Result<Tensor> {
        match self.name.as_str() {
            "Sigmoid" => run!("sigmoid", x),
            "Tanh" => run!("tanh", x),
            "Relu" => run!("relu", x),
            "Affine" => run!("add.Scalar", run!("mul.Scalar", x, self.alpha)?, self.beta),
            "LeakyRelu" => run!("leaky_relu", x, self.alpha),
            "ThresholdedRelu" => run!("threshold", x, self.alpha, 0i64),
            "ScaledTanh" => run!("mul.Scalar", run!("tanh", run!("mul.Scalar", x, self.beta)?)?, self.alpha),
            "HardSigmoid" => {
                run!(
                    "hardtanh",
                    run!("add.Scalar", run!("mul.Scalar", x, self.alpha)?, self.beta)?,
                    0i64,
                    1i64
                )
            }
            "Elu" => run!("elu", x, self.alpha),
            "Softsign" => run!("softsign", x),
            "Softplus" => run!("softplus", x),
            other => Err(unsupported(format!("the activation {other:?}"))),
        }
    }

    /// Factors that are left out.
    fn defaults(name: &str) -> (f64, f64) {
        match name {
            "Affine" => (1.0, 0.0),
            "LeakyRelu" => (0.01, 0.0),
            "HardSigmoid" => (0.2, 0.5),
            _ => (1.0, 1.0),
        }
    }
}

/// The properties that all directions share.
pub(super) struct Network {
    kind: Kind,
    units: i64,
    /// Those of each direction, one after the other.
    pub activations: Vec<Activation>,
    clip: f64,
    /// Whether a forget gate is one minus the input gate.
    coupled: bool,
    linear_before_reset: bool,
}

impl Network {
    pub fn of(call: &Call<'_>, kind: Kind, directions: i64, units: i64) -> Result<Network> {
        let default = kind.activations();
        let count = default.len() * directions as usize;
        let names = match call.texts("activations")? {
            Some(names) => names,
            None => default.iter().cycle().take(count).map(|name| (*name).to_owned()).collect(),
        };
        if names.len() != count {
            return Err(Error::argument(format!(
                "there are {} activations, and {count} are needed",
                names.len()
            )));
        }
        let (alphas, betas) = (call.floats("activation_alpha")?, call.floats("activation_beta")?);
        let activations = names.into_iter().enumerate().map(|(at, name)| {
            let (alpha, beta) = Activation::defaults(&name);
            let given = |list: &Option<Vec<f64>>, default: f64| {
                list.as_ref().and_then(|list| list.get(at).copied()).unwrap_or(default)
            };
            Activation { alpha: given(&alphas, alpha), beta: given(&betas, beta), name }
        });
        Ok(Network {
            kind,
            units,
            activations: activations.collect(),
            clip: call.float("clip", 0.0)?,
            coupled: call.flag("input_forget", false)?,
            linear_before_reset: call.flag("linear_before_reset", false)?,
        })
    }

    /// Whether the library's operator computes it.
    pub fn is_common(&self, call: &Call<'_>) -> Result<bool> {
        let default = self.kind.activations();
        let usual =
            self.activations.iter().enumerate().all(|(at, found)| found.name == default[at % default.len()]);
        let relu = self.kind == Kind::Plain && self.activations.iter().all(|found| found.name == "Relu");
        let gates = self.kind != Kind::Gru || self.linear_before_reset;
        Ok((usual || relu) && gates && self.clip == 0.0 && !self.coupled && call.maybe(7)?.is_none())
    }

    fn bounded(&self, x: &Tensor) -> Result<Tensor> {
        if self.clip == 0.0 { Ok(x.clone()) } else { run!("clamp", x, -self.clip, self.clip) }
    }
}

/// The parameters of a direction.
struct Direction<'a> {
    network: &'a Network,
    activations: &'a [Activation],
    recurrent: Tensor,
    /// The bias of the state, for a gate that is computed before its reset.
    state_bias: Option<Tensor>,
    /// Factors of the cell in gates: input, output, forget.
    peepholes: Option<Tensor>,
}

fn sum(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    run!("add.Tensor", a, b)
}

fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    run!("mul.Tensor", a, b)
}

impl Direction<'_> {
    fn gate(&self, x: &Tensor, at: i64) -> Result<Tensor> {
        run!("narrow", x, -1i64, at * self.network.units, self.network.units)
    }

    fn activated(&self, at: usize, x: &Tensor) -> Result<Tensor> {
        self.activations[at].call(&self.network.bounded(x)?)
    }

    /// The next state and cell, given the product of the input with its weights.
    fn step(&self, x: &Tensor, hidden: &Tensor, cell: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)> {
        match (self.network.kind, cell) {
            (Kind::Plain, _) => {
                let all = sum(x, &run!("linear", hidden, &self.recurrent)?)?;
                Ok((self.activated(0, &all)?, None))
            }
            (Kind::Gru, _) => self.gru(x, hidden).map(|hidden| (hidden, None)),
            (Kind::Lstm, Some(cell)) => self.lstm(x, hidden, cell),
            (Kind::Lstm, None) => Err(Error::argument("the cell is missing")),
        }
    }

    fn gru(&self, x: &Tensor, hidden: &Tensor) -> Result<Tensor> {
        let units = self.network.units;
        let rows =
            |start: i64, count: i64| run!("narrow", &self.recurrent, 0i64, start * units, count * units);
        let both = sum(&run!("narrow", x, -1i64, 0i64, 2 * units)?, &run!("linear", hidden, rows(0, 2)?)?)?;
        let (update, reset) =
            (self.activated(0, &self.gate(&both, 0)?)?, self.activated(0, &self.gate(&both, 1)?)?);
        let biased = |x: Tensor| match &self.state_bias {
            Some(bias) => sum(&x, bias),
            None => Ok(x),
        };
        let of_state = match self.network.linear_before_reset {
            true => product(&reset, &biased(run!("linear", hidden, rows(2, 1)?)?)?)?,
            false => biased(run!("linear", product(&reset, hidden)?, rows(2, 1)?)?)?,
        };
        let new = self.activated(1, &sum(&self.gate(x, 2)?, &of_state)?)?;
        let kept = product(&update, hidden)?;
        sum(&product(&run!("rsub.Scalar", &update, 1i64)?, &new)?, &kept)
    }

    fn lstm(&self, x: &Tensor, hidden: &Tensor, cell: &Tensor) -> Result<(Tensor, Option<Tensor>)> {
        let gates = sum(x, &run!("linear", hidden, &self.recurrent)?)?;
        let seen = |gate: Tensor, at: i64, cell: &Tensor| match &self.peepholes {
            Some(factors) => sum(&gate, &product(&self.gate(factors, at)?, cell)?),
            None => Ok(gate),
        };
        let input = self.activated(0, &seen(self.gate(&gates, 0)?, 0, cell)?)?;
        let forget = match self.network.coupled {
            true => run!("rsub.Scalar", &input, 1i64)?,
            false => self.activated(0, &seen(self.gate(&gates, 2)?, 2, cell)?)?,
        };
        let new = self.activated(1, &self.gate(&gates, 3)?)?;
        let next = sum(&product(&forget, cell)?, &product(&input, &new)?)?;
        let output = self.activated(0, &seen(self.gate(&gates, 1)?, 1, &next)?)?;
        // The cell itself has no bound.
        let hidden = product(&output, &self.activations[2].call(&next)?)?;
        Ok((hidden, Some(next)))
    }
}

/// The bias of the gates from the input, and that of the state, from both in one.
fn biases(network: &Network, bias: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
    let rows = network.kind.gates() * network.units;
    let (of_input, of_state) =
        (run!("narrow", bias, 0i64, 0i64, rows)?, run!("narrow", bias, 0i64, rows, rows)?);
    if network.kind != Kind::Gru {
        return Ok((Some(sum(&of_input, &of_state)?), None));
    }
    let kept = 2 * network.units;
    let state_bias = run!("narrow", &of_state, 0i64, kept, network.units)?;
    let first = run!("narrow", &of_state, 0i64, 0i64, kept)?;
    let padded = run!("constant_pad_nd", &first, vec![0, network.units])?;
    Ok((Some(sum(&of_input, &padded)?), Some(state_bias)))
}

/// The outputs of all steps of a direction, and its last state and cell.
pub(super) fn direction(
    call: &Call<'_>,
    network: &Network,
    x: &Tensor,
    hidden: &Tensor,
    cell: Option<&Tensor>,
    at: i64,
    backward: bool,
) -> Result<(Tensor, Tensor, Option<Tensor>)> {
    let of = |tensor: &Tensor| run!("select.int", tensor, 0i64, at);
    let (input_bias, state_bias) = match call.maybe(3)? {
        Some(bias) => biases(network, &of(&bias)?)?,
        None => (None, None),
    };
    let each = network.kind.activations().len();
    let direction = Direction {
        network,
        activations: &network.activations[at as usize * each..(at as usize + 1) * each],
        recurrent: of(&call.tensor(2)?)?,
        state_bias,
        peepholes: call.maybe(7)?.map(|factors| of(&factors)).transpose()?,
    };
    let steps = run!("arange", x.size(0)?)?;
    let lengths = call.maybe(4)?.map(|lengths| places(&lengths)).transpose()?;
    let turned = |x: &Tensor| match (&lengths, backward) {
        (_, false) => Ok(x.clone()),
        (None, true) => run!("flip", x, vec![0i64]),
        (Some(lengths), true) => reversed(x, &steps, lengths, 0),
    };
    let inputs = match input_bias {
        Some(bias) => run!("linear", turned(x)?, of(&call.tensor(1)?)?, &bias)?,
        None => run!("linear", turned(x)?, of(&call.tensor(1)?)?)?,
    };
    let mut over = vec![inputs];
    if let Some(lengths) = &lengths {
        let live = run!("lt.Tensor", run!("unsqueeze", &steps, 1i64)?, run!("unsqueeze", lengths, 0i64)?)?;
        over.push(run!("unsqueeze", &live, 2i64)?);
    }
    let mut state = vec![of(hidden)?];
    state.extend(cell.map(of).transpose()?);
    let (last, mut outputs) = scan(&state, &over, |state, elements| {
        let (hidden, cell) = direction.step(&elements[0], &state[0], state.get(1))?;
        let Some(live) = elements.get(1) else {
            return Ok((std::iter::once(hidden.clone()).chain(cell).collect(), vec![hidden]));
        };
        // A sequence that has ended keeps its state.
        let kept = |new: &Tensor, old: &Tensor| run!("where.self", live, new, old);
        let mut next = vec![kept(&hidden, &state[0])?];
        if let Some(cell) = &cell {
            next.push(kept(cell, &state[1])?);
        }
        Ok((next, vec![kept(&hidden, &run!("zeros_like", &hidden)?)?]))
    })?;
    let mut last = last.into_iter();
    let missing = || Error::argument("a result is missing");
    let output = turned(&outputs.pop().ok_or_else(missing)?)?;
    Ok((output, last.next().ok_or_else(missing)?, last.next()))
}
