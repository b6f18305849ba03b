//! Adagrad.

use opsmith::{AddcdivOptions, Result, Tensor, TensorOps};

use super::hyper::{check, decayed, hyperparameters, rule_methods};
use super::optimizer::{Optimizer, ParameterState, UpdateRule};

hyperparameters! {
    /// Options of [`Adagrad`].
    ///
    /// ```
    /// use opsmith::Tensor;
    /// use opsmith_nn::optim::{Adagrad, AdagradConfig};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = Tensor::of(&[1.0f32]).requires_grad_(true)?;
    /// let optimizer = Adagrad::new([x], AdagradConfig::new().learning_rate_decay(0.1))?;
    /// assert_eq!(optimizer.learning_rates(), [0.01]);
    /// # Ok(())
    /// # }
    /// ```
    AdagradConfig {
        /// The factor of updates; 0.01 by default.
        learning_rate: f64 = 1e-2;
        /// The decay of the learning rate, `learning_rate / (1 + decay * steps)`; 0 by default.
        learning_rate_decay: f64 = 0.0;
        /// The factor of the parameter that is added to its gradient; 0 by default.
        weight_decay: f64 = 0.0;
        /// The sum of squared gradients at the start; 0 by default.
        initial_accumulator_value: f64 = 0.0;
        /// The number that is added to roots; 1e-10 by default.
        eps: f64 = 1e-10;
    }
}

/// `x -= learning_rate * gradient / (√(sum of squares) + eps)` (Duchi et al., *Adaptive subgradient methods*, 2011).
pub type Adagrad = Optimizer<AdagradConfig>;

impl UpdateRule for AdagradConfig {
    rule_methods!();

    fn state_names(&self) -> &'static [&'static str] {
        &["sum"]
    }

    fn needs_state(&self, _index: usize) -> bool {
        true
    }

    fn check(&self) -> Result<()> {
        check("the learning rate", self.learning_rate, 0.0.., "a number of 0 or more")?;
        check("the decay of the learning rate", self.learning_rate_decay, 0.0.., "a number of 0 or more")?;
        check("the weight decay", self.weight_decay, 0.0.., "a number of 0 or more")?;
        check("the initial sum", self.initial_accumulator_value, 0.0.., "a number of 0 or more")?;
        check("eps", self.eps, 0.0.., "a number of 0 or more")
    }

    fn update(&self, parameter: &Tensor, gradient: &Tensor, state: &mut ParameterState) -> Result<()> {
        let gradient = decayed(parameter, gradient, self.weight_decay)?;
        let (sum, _) = state.tensor(0, || parameter.full_like(self.initial_accumulator_value))?;
        sum.addcmul_(&gradient, &gradient)?;
        let roots = sum.sqrt()?;
        roots.add_(self.eps)?;
        let rate = self.learning_rate / (1.0 + (state.step - 1) as f64 * self.learning_rate_decay);
        parameter.addcdiv_with_(&gradient, &roots, AddcdivOptions::new().value(-rate))
    }
}
