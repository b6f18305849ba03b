//! The scheduler: sets the learning rates of an optimizer at each step.

use opsmith::{DType, Error, Result, Tensor};

use super::optimizer::{Optimizer, UpdateRule};
use super::schedule::Schedule;
use crate::state::StateDict;

/// A count of steps, and a schedule that gives an optimizer's learning rates.
///
/// ```
/// use opsmith::Tensor;
/// use opsmith_nn::optim::{ExponentialLr, Scheduler, Sgd, SgdConfig};
///
/// # fn main() -> opsmith::Result<()> {
/// let x = Tensor::of(&[1.0f32]).requires_grad_(true)?;
/// let mut optimizer = Sgd::new([x], SgdConfig::new().learning_rate(1.0))?;
/// let mut scheduler = Scheduler::new(ExponentialLr { factor: 0.5 }, &mut optimizer);
/// optimizer.step()?;
/// scheduler.step(&mut optimizer);
/// assert_eq!(optimizer.learning_rates(), [0.5]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Scheduler<S> {
    schedule: S,
    step: u64,
}

impl<S: Schedule> Scheduler<S> {
    /// A scheduler at step 0, whose learning rates are set.
    pub fn new<R: UpdateRule>(schedule: S, optimizer: &mut Optimizer<R>) -> Scheduler<S> {
        let scheduler = Scheduler { schedule, step: 0 };
        scheduler.apply(optimizer);
        scheduler
    }

    /// Goes on by a step, after one of the optimizer or after an epoch, as the schedule counts.
    pub fn step<R: UpdateRule>(&mut self, optimizer: &mut Optimizer<R>) {
        self.step += 1;
        self.apply(optimizer);
    }

    /// Number of steps.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// The number of steps, as `step`. Initial learning rates are in the optimizer's state dict.
    pub fn state_dict(&self) -> StateDict {
        [("step".to_owned(), Tensor::scalar(self.step as i64, DType::I64))].into_iter().collect()
    }

    /// Restores the number of steps; the optimizer's state dict restores its learning rates.
    ///
    /// # Errors
    /// If the state dict is not that of a scheduler, in which case nothing has changed.
    pub fn load_state_dict(&mut self, dict: &StateDict) -> Result<()> {
        let step = match (dict.names().as_slice(), dict.get("step")) {
            (["step"], Some(step)) if step.dtype() == DType::I64 && step.dim() == 0 => step.item()?.to_f64(),
            _ => -1.0,
        };
        if step < 0.0 {
            return Err(Error::argument("the state dict is not that of a scheduler")
                .with_help("it has one tensor, `step`, int64 without dimensions, 0 or more"));
        }
        self.step = step as u64;
        Ok(())
    }

    fn apply<R: UpdateRule>(&self, optimizer: &mut Optimizer<R>) {
        optimizer.schedule(|initial| self.schedule.at(initial, self.step));
    }
}
