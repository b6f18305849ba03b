//! RMSProp.

use opsmith::{AddOptions, AddcdivOptions, AddcmulOptions, Result, Tensor, TensorOps};

use super::hyper::{check, decayed, hyperparameters, rule_methods};
use super::optimizer::{Optimizer, ParameterState, UpdateRule};

hyperparameters! {
    /// Options of [`RmsProp`].
    ///
    /// ```
    /// use opsmith::Tensor;
    /// use opsmith_nn::optim::{RmsProp, RmsPropConfig};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = Tensor::of(&[1.0f32]).requires_grad_(true)?;
    /// let optimizer = RmsProp::new([x], RmsPropConfig::new().centered(true))?;
    /// assert_eq!(optimizer.learning_rates(), [0.01]);
    /// # Ok(())
    /// # }
    /// ```
    RmsPropConfig {
        /// The factor of updates; 0.01 by default.
        learning_rate: f64 = 1e-2;
        /// The part of the mean of squared gradients that is kept; 0.99 by default.
        alpha: f64 = 0.99;
        /// The number that is added to roots; 1e-8 by default.
        eps: f64 = 1e-8;
        /// The part of the last update that is kept; 0 by default.
        momentum: f64 = 0.0;
        /// Whether gradients are divided by an estimate of their deviation, in place of their magnitude; false by default.
        centered: bool = false;
        /// The factor of the parameter that is added to its gradient; 0 by default.
        weight_decay: f64 = 0.0;
    }
}

/// `x -= learning_rate * gradient / (√(mean of squares) + eps)`, with a mean that forgets (Tieleman and Hinton, lecture
/// 6.5 of *Neural networks for machine learning*, 2012).
pub type RmsProp = Optimizer<RmsPropConfig>;

impl UpdateRule for RmsPropConfig {
    rule_methods!();

    fn state_names(&self) -> &'static [&'static str] {
        &["square_avg", "grad_avg", "momentum_buffer"]
    }

    fn needs_state(&self, index: usize) -> bool {
        [true, self.centered, self.momentum != 0.0][index.min(2)]
    }

    fn check(&self) -> Result<()> {
        check("the learning rate", self.learning_rate, 0.0.., "a number of 0 or more")?;
        check("alpha", self.alpha, 0.0..=1.0, "a number from 0 to 1")?;
        check("eps", self.eps, 0.0.., "a number of 0 or more")?;
        check("the momentum", self.momentum, 0.0.., "a number of 0 or more")?;
        check("the weight decay", self.weight_decay, 0.0.., "a number of 0 or more")
    }

    fn update(&self, parameter: &Tensor, gradient: &Tensor, state: &mut ParameterState) -> Result<()> {
        let gradient = decayed(parameter, gradient, self.weight_decay)?;
        let (squares, _) = state.tensor(0, || parameter.zeros_like())?;
        squares.mul_(self.alpha)?;
        squares.addcmul_with_(&gradient, &gradient, AddcmulOptions::new().value(1.0 - self.alpha))?;
        let roots = if self.centered {
            let (mean, _) = state.tensor(1, || parameter.zeros_like())?;
            mean.lerp_(&gradient, 1.0 - self.alpha)?;
            let variance = squares.addcmul_with(&mean, &mean, AddcmulOptions::new().value(-1.0))?;
            variance.sqrt_()?;
            variance
        } else {
            squares.sqrt()?
        };
        roots.add_(self.eps)?;
        if self.momentum == 0.0 {
            let factor = AddcdivOptions::new().value(-self.learning_rate);
            return parameter.addcdiv_with_(&gradient, &roots, factor);
        }
        let (buffer, _) = state.tensor(2, || parameter.zeros_like())?;
        buffer.mul_(self.momentum)?;
        buffer.addcdiv_(&gradient, &roots)?;
        parameter.add_with_(&buffer, AddOptions::new().alpha(-self.learning_rate))
    }
}
