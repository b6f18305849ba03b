//! Stochastic gradient descent.

use opsmith::{AddOptions, Error, Result, Tensor, TensorOps};

use super::hyper::{check, decayed, hyperparameters, rule_methods};
use super::optimizer::{Optimizer, ParameterState, UpdateRule};

hyperparameters! {
    /// Options of [`Sgd`].
    ///
    /// ```
    /// use opsmith::Tensor;
    /// use opsmith_nn::optim::{Sgd, SgdConfig};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = Tensor::of(&[1.0f32]).requires_grad_(true)?;
    /// let optimizer = Sgd::new([x], SgdConfig::new().learning_rate(0.1).momentum(0.9).nesterov(true))?;
    /// assert_eq!(optimizer.learning_rates(), [0.1]);
    /// # Ok(())
    /// # }
    /// ```
    SgdConfig {
        /// The factor of updates; 1e-3 by default.
        learning_rate: f64 = 1e-3;
        /// The part of the last update's direction that is kept; 0 by default.
        momentum: f64 = 0.0;
        /// The part of the gradient that is left out of the direction; 0 by default.
        dampening: f64 = 0.0;
        /// Whether the gradient is added to the direction again (Sutskever et al., *On the importance of initialization
        /// and momentum in deep learning*, 2013); false by default.
        nesterov: bool = false;
        /// The factor of the parameter that is added to its gradient; 0 by default.
        weight_decay: f64 = 0.0;
    }
}

/// Stochastic gradient descent: `x -= learning_rate * direction`, where the direction is the gradient, or with momentum
/// `momentum * direction + (1 - dampening) * gradient`, and the gradient at the first step.
pub type Sgd = Optimizer<SgdConfig>;

impl UpdateRule for SgdConfig {
    rule_methods!();

    fn state_names(&self) -> &'static [&'static str] {
        &["momentum_buffer"]
    }

    fn needs_state(&self, _index: usize) -> bool {
        self.momentum != 0.0
    }

    fn check(&self) -> Result<()> {
        check("the learning rate", self.learning_rate, 0.0.., "a number of 0 or more")?;
        check("the momentum", self.momentum, 0.0.., "a number of 0 or more")?;
        check("the weight decay", self.weight_decay, 0.0.., "a number of 0 or more")?;
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            return Err(Error::value("Nesterov's momentum needs a momentum and no dampening")
                .with_help("set `momentum` above 0 and `dampening` to 0"));
        }
        Ok(())
    }

    fn update(&self, parameter: &Tensor, gradient: &Tensor, state: &mut ParameterState) -> Result<()> {
        let gradient = decayed(parameter, gradient, self.weight_decay)?;
        let direction = if self.momentum == 0.0 {
            gradient
        } else {
            let (buffer, first) = state.tensor(0, || gradient.deep_clone())?;
            if !first {
                buffer.mul_(self.momentum)?;
                buffer.add_with_(&gradient, AddOptions::new().alpha(1.0 - self.dampening))?;
            }
            match self.nesterov {
                true => gradient.add_with(&buffer, AddOptions::new().alpha(self.momentum))?,
                false => buffer,
            }
        };
        parameter.add_with_(&direction, AddOptions::new().alpha(-self.learning_rate))
    }
}
