//! The optimizer: groups of parameters, their states, and an update rule for each parameter.

use opsmith::autograd::no_grad;
use opsmith::runtime::in_batches;
use opsmith::{DType, Error, Result, Tensor, TensorOps};

use crate::state::StateDict;

/// The update of a parameter by its gradient, with hyperparameters: the options of an optimizer.
pub trait UpdateRule: Clone {
    /// The names of the tensors that a parameter's state may have, in the order of [`ParameterState::tensors`].
    fn state_names(&self) -> &'static [&'static str];

    /// Whether a parameter that was updated has the tensor of this number in its state.
    fn needs_state(&self, index: usize) -> bool;

    /// Changes a parameter in place. The state's step has been counted; its tensors are missing at the first.
    ///
    /// # Errors
    /// Those of operators.
    fn update(&self, parameter: &Tensor, gradient: &Tensor, state: &mut ParameterState) -> Result<()>;

    /// Refuses hyperparameters out of range.
    ///
    /// # Errors
    /// If one is.
    fn check(&self) -> Result<()>;

    /// The learning rate.
    fn learning_rate(&self) -> f64;

    /// Changes the learning rate.
    fn set_learning_rate(&mut self, learning_rate: f64);

    /// All hyperparameters by name, for state dicts.
    fn hyperparameters(&self) -> Vec<(&'static str, f64)>;

    /// Sets a hyperparameter by name.
    fn set_hyperparameter(&mut self, name: &str, value: f64);
}

/// The state of one parameter.
#[derive(Clone, Debug, Default)]
pub struct ParameterState {
    /// Number of updates.
    pub step: u64,
    /// Tensors, under the names of [`UpdateRule::state_names`]; none before they are first needed.
    pub tensors: Vec<Option<Tensor>>,
}

impl ParameterState {
    /// A tensor of the state, made by a function when it is first needed; and whether it was.
    ///
    /// # Errors
    /// Those of the function.
    pub fn tensor(&mut self, index: usize, first: impl FnOnce() -> Result<Tensor>) -> Result<(Tensor, bool)> {
        if self.tensors.len() <= index {
            self.tensors.resize(index + 1, None);
        }
        match &self.tensors[index] {
            Some(tensor) => Ok((tensor.clone(), false)),
            None => {
                let tensor = first()?;
                self.tensors[index] = Some(tensor.clone());
                Ok((tensor, true))
            }
        }
    }
}

/// Parameters with one set of hyperparameters.
struct Group<R> {
    parameters: Vec<Tensor>,
    states: Vec<ParameterState>,
    rule: R,
    /// The learning rate from which schedules start.
    initial: f64,
}

/// An optimizer of groups of parameters by an update rule: [`Sgd`](crate::optim::Sgd), [`Adam`](crate::optim::Adam) and
/// others are this type with their rules.
///
/// ```
/// use opsmith::{Tensor, TensorOps};
/// use opsmith_nn::optim::{Sgd, SgdConfig};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = Tensor::of(&[2.0f64]).requires_grad_(true)?;
/// let mut optimizer = Sgd::new([x.clone()], SgdConfig::new().learning_rate(0.25))?;
/// x.mul(&x)?.sum()?.backward()?;
/// optimizer.step()?;
/// optimizer.zero_grad();
/// assert_eq!(x.to_vec::<f64>()?, [1.0]);
/// # Ok(())
/// # }
/// ```
///
/// Parameters that have no gradient at a step stay as they are. Nothing is recorded for gradients.
pub struct Optimizer<R: UpdateRule> {
    groups: Vec<Group<R>>,
}

impl<R: UpdateRule> Optimizer<R> {
    /// An optimizer of one group.
    ///
    /// # Errors
    /// If a hyperparameter is out of range, there is no parameter, one occurs twice, or one was computed from others.
    pub fn new(parameters: impl IntoIterator<Item = Tensor>, rule: R) -> Result<Optimizer<R>> {
        let mut optimizer = Optimizer { groups: Vec::new() };
        optimizer.add_group(parameters, rule)?;
        Ok(optimizer)
    }

    /// Adds a group with hyperparameters of its own, for instance without decay for biases.
    ///
    /// # Errors
    /// As [`Optimizer::new`].
    pub fn add_group(&mut self, parameters: impl IntoIterator<Item = Tensor>, rule: R) -> Result<()> {
        rule.check()?;
        let parameters: Vec<Tensor> = parameters.into_iter().collect();
        if parameters.is_empty() {
            return Err(Error::argument("an optimizer was given no parameters")
                .with_help("give those of a module, `module.parameters()`"));
        }
        for (position, parameter) in parameters.iter().enumerate() {
            let known = self.groups.iter().flat_map(|group| &group.parameters);
            if known.chain(&parameters[..position]).any(|known| known.same(parameter)) {
                return Err(Error::argument(format!("parameter {position} of the group occurs twice"))
                    .with_help("give each parameter once, in one group"));
            }
            if !parameter.is_leaf() {
                return Err(Error::autograd(format!(
                    "parameter {position} of the group was computed by an operator, so it has no gradient of its own"
                ))
                .with_help("give the tensors on which requires_grad_(true) was called"));
            }
        }
        let states = vec![ParameterState::default(); parameters.len()];
        let initial = rule.learning_rate();
        self.groups.push(Group { parameters, states, rule, initial });
        Ok(())
    }

    /// Updates every parameter that has a gradient. On a device, the updates of many parameters are few launches
    /// ([`in_batches`]).
    ///
    /// # Errors
    /// Those of operators, with the parameter's position: if a gradient or a parameter is on a device that fails, or
    /// there is no memory. Parameters before it have been updated.
    pub fn step(&mut self) -> Result<()> {
        let mut update = || {
            let mut position = 0;
            for group in &mut self.groups {
                for (parameter, state) in group.parameters.iter().zip(&mut group.states) {
                    if let Some(gradient) = parameter.grad() {
                        state.step += 1;
                        let place =
                            |error: Error| error.with_note(format!("in the update of parameter {position}"));
                        group.rule.update(parameter, &gradient.detach(), state).map_err(place)?;
                    }
                    position += 1;
                }
            }
            Ok(())
        };
        no_grad(|| in_batches(&mut update))
    }

    /// Removes all gradients.
    pub fn zero_grad(&self) {
        self.groups.iter().flat_map(|group| &group.parameters).for_each(Tensor::zero_grad);
    }

    /// The learning rate of each group.
    pub fn learning_rates(&self) -> Vec<f64> {
        self.groups.iter().map(|group| group.rule.learning_rate()).collect()
    }

    /// The learning rates with which the groups were made, from which schedules start.
    pub fn initial_learning_rates(&self) -> Vec<f64> {
        self.groups.iter().map(|group| group.initial).collect()
    }

    /// Sets the learning rate of each group.
    ///
    /// # Errors
    /// If there are not as many as groups.
    pub fn set_learning_rates(&mut self, rates: &[f64]) -> Result<()> {
        if rates.len() != self.groups.len() {
            let (given, groups) = (rates.len(), self.groups.len());
            return Err(Error::argument(format!("{given} learning rates were given for {groups} groups")));
        }
        self.groups.iter_mut().zip(rates).for_each(|(group, rate)| group.rule.set_learning_rate(*rate));
        Ok(())
    }

    /// Sets each group's learning rate to a function of its initial one.
    pub(super) fn schedule(&mut self, rate: impl Fn(f64) -> f64) {
        self.groups.iter_mut().for_each(|group| group.rule.set_learning_rate(rate(group.initial)));
    }

    /// The hyperparameters of a group, if there is one of the number.
    pub fn rule(&self, group: usize) -> Option<&R> {
        self.groups.get(group).map(|group| &group.rule)
    }

    /// States and hyperparameters: `state.P.NAME` of parameter number `P` over all groups, `param_groups.G.NAME` of group
    /// `G`, numbers as `float64` without dimensions, steps as `int64`. An optimizer that loads it continues bit for bit.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn state_dict(&self) -> Result<StateDict> {
        let mut dict = StateDict::new();
        let number = |value: f64| Tensor::scalar(value, DType::F64);
        let mut position = 0;
        for (index, group) in self.groups.iter().enumerate() {
            for (name, value) in group.rule.hyperparameters() {
                dict.insert(format!("param_groups.{index}.{name}"), number(value));
            }
            dict.insert(format!("param_groups.{index}.initial_learning_rate"), number(group.initial));
            for state in &group.states {
                if state.step > 0 {
                    let step = Tensor::scalar(state.step as i64, DType::I64);
                    dict.insert(format!("state.{position}.step"), step);
                }
                for (name, tensor) in group.rule.state_names().iter().zip(&state.tensors) {
                    if let Some(tensor) = tensor {
                        dict.insert(format!("state.{position}.{name}"), tensor.deep_clone()?);
                    }
                }
                position += 1;
            }
        }
        Ok(dict)
    }

    /// Restores states and hyperparameters that [`Optimizer::state_dict`] gave for the same groups.
    ///
    /// # Errors
    /// With all differences, in which case nothing has changed.
    pub fn load_state_dict(&mut self, dict: &StateDict) -> Result<()> {
        let mut reader = Reader { dict, used: Vec::new(), differences: Vec::new() };
        let mut loaded: Vec<(R, f64, Vec<ParameterState>)> = Vec::with_capacity(self.groups.len());
        let mut position = 0;
        for (index, group) in self.groups.iter().enumerate() {
            let mut rule = group.rule.clone();
            for (name, _) in group.rule.hyperparameters() {
                if let Some(value) = reader.number(format!("param_groups.{index}.{name}")) {
                    rule.set_hyperparameter(name, value);
                }
            }
            let initial = reader.number(format!("param_groups.{index}.initial_learning_rate"));
            if let Err(error) = rule.check() {
                reader.differences.push(format!("`param_groups.{index}`: {}", error.message()));
            }
            let mut states = Vec::with_capacity(group.parameters.len());
            for parameter in &group.parameters {
                states.push(reader.state(position, parameter, &rule)?);
                position += 1;
            }
            loaded.push((rule, initial.unwrap_or(group.initial), states));
        }
        reader.finish()?;
        for (group, (rule, initial, states)) in self.groups.iter_mut().zip(loaded) {
            (group.rule, group.initial, group.states) = (rule, initial, states);
        }
        Ok(())
    }
}

/// A state dict, the paths that were read, and differences from the optimizer.
struct Reader<'a> {
    dict: &'a StateDict,
    used: Vec<String>,
    differences: Vec<String>,
}

impl Reader<'_> {
    fn number(&mut self, path: String) -> Option<f64> {
        let number = match self.dict.get(&path) {
            None => Err("is missing".to_owned()),
            Some(tensor) if tensor.dim() != 0 => {
                Err(format!("has the shape {:?} and is no number", tensor.shape()))
            }
            Some(tensor) => tensor.item().map(|number| number.to_f64()).map_err(|error| error.to_string()),
        };
        let number = number.map_err(|problem| self.differences.push(format!("`{path}` {problem}"))).ok();
        self.used.push(path);
        number
    }

    fn state(
        &mut self,
        position: usize,
        parameter: &Tensor,
        rule: &impl UpdateRule,
    ) -> Result<ParameterState> {
        let mut state = ParameterState::default();
        let step = format!("state.{position}.step");
        if self.dict.get(&step).is_some() {
            let count = self.number(step.clone()).unwrap_or(1.0);
            if !(count >= 1.0 && count.fract() == 0.0 && count < 9e15) {
                self.differences.push(format!("`{step}` is {count} and no number of steps"));
            }
            state.step = count as u64;
        }
        for (index, name) in rule.state_names().iter().enumerate() {
            let path = format!("state.{position}.{name}");
            let tensor = self.dict.get(&path);
            if tensor.is_none() && state.step > 0 && rule.needs_state(index) {
                self.differences.push(format!("`{path}` is missing"));
            }
            if tensor.is_some() && state.step == 0 {
                self.differences.push(format!("`{path}` has no `{step}` beside it"));
            }
            if let Some(tensor) = tensor {
                if tensor.shape() != parameter.shape() || tensor.dtype() != parameter.dtype() {
                    self.differences.push(format!(
                        "`{path}` is {} {:?}, and the parameter is {} {:?}",
                        tensor.dtype(),
                        tensor.shape(),
                        parameter.dtype(),
                        parameter.shape()
                    ));
                }
                self.used.push(path);
            }
            let own = |tensor: &Tensor| tensor.to_device(parameter.device())?.deep_clone();
            state.tensors.push(tensor.map(own).transpose()?.map(|tensor| tensor.detach()));
        }
        Ok(state)
    }

    fn finish(mut self) -> Result<()> {
        let unknown = self.dict.iter().filter(|(path, _)| !self.used.contains(path));
        self.differences.extend(unknown.map(|(path, _)| format!("`{path}` is unexpected")));
        if self.differences.is_empty() {
            return Ok(());
        }
        let error = Error::argument("the state dict does not fit the optimizer, and nothing was loaded");
        let error = self.differences.iter().fold(error, Error::with_note);
        Err(error.with_help("load it into an optimizer of the same kind, groups and parameters"))
    }
}
