//! Adam and AdamW.

use opsmith::{AddcdivOptions, AddcmulOptions, Result, Tensor, TensorOps};

use super::hyper::{check, decayed, hyperparameters, rule_methods};
use super::optimizer::{Optimizer, ParameterState, UpdateRule};

macro_rules! adam {
    ($(#[$doc:meta])* $config:ident, $decay:literal, [$(#[$decay_doc:meta])*] $decayed:expr) => {
        hyperparameters! {
            $(#[$doc])*
            $config {
                /// The factor of updates; 1e-3 by default.
                learning_rate: f64 = 1e-3;
                /// The part of the mean of gradients that is kept; 0.9 by default.
                beta1: f64 = 0.9;
                /// The part of the mean of squared gradients that is kept; 0.999 by default.
                beta2: f64 = 0.999;
                /// The number that is added to roots; 1e-8 by default.
                eps: f64 = 1e-8;
                $(#[$decay_doc])*
                weight_decay: f64 = $decay;
                /// Whether the largest mean of squared gradients so far is used (Reddi et al., *On the convergence of Adam
                /// and beyond*, 2018); false by default.
                amsgrad: bool = false;
            }
        }

        impl UpdateRule for $config {
            rule_methods!();

            fn state_names(&self) -> &'static [&'static str] {
                &["exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
            }

            fn needs_state(&self, index: usize) -> bool {
                index < 2 || self.amsgrad
            }

            fn check(&self) -> Result<()> {
                check("the learning rate", self.learning_rate, 0.0.., "a number of 0 or more")?;
                check("beta1", self.beta1, 0.0..1.0, "a number from 0 to below 1")?;
                check("beta2", self.beta2, 0.0..1.0, "a number from 0 to below 1")?;
                check("eps", self.eps, 0.0.., "a number of 0 or more")?;
                check("the weight decay", self.weight_decay, 0.0.., "a number of 0 or more")
            }

            fn update(&self, parameter: &Tensor, gradient: &Tensor, state: &mut ParameterState) -> Result<()> {
                let decayed: fn(&Self, &Tensor, &Tensor) -> Result<Tensor> = $decayed;
                let gradient = decayed(self, parameter, gradient)?;
                let moments = Moments {
                    learning_rate: self.learning_rate,
                    betas: [self.beta1, self.beta2],
                    eps: self.eps,
                    amsgrad: self.amsgrad,
                };
                moments.update(parameter, &gradient, state)
            }
        }
    };
}

adam! {
    /// Options of [`Adam`].
    ///
    /// ```
    /// use opsmith::Tensor;
    /// use opsmith_nn::optim::{Adam, AdamConfig};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = Tensor::of(&[1.0f32]).requires_grad_(true)?;
    /// let optimizer = Adam::new([x], AdamConfig::new().learning_rate(0.01).beta2(0.99))?;
    /// assert_eq!(optimizer.learning_rates(), [0.01]);
    /// # Ok(())
    /// # }
    /// ```
    AdamConfig,
    0.0,
    [#[doc = "The factor of the parameter that is added to its gradient; 0 by default."]]
    |rule, parameter, gradient| decayed(parameter, gradient, rule.weight_decay)
}

adam! {
    /// Options of [`AdamW`].
    ///
    /// ```
    /// use opsmith::Tensor;
    /// use opsmith_nn::optim::{AdamW, AdamWConfig};
    ///
    /// # fn main() -> opsmith::Result<()> {
    /// let x = Tensor::of(&[1.0f32]).requires_grad_(true)?;
    /// let optimizer = AdamW::new([x], AdamWConfig::new().weight_decay(0.1))?;
    /// assert_eq!(optimizer.learning_rates(), [0.001]);
    /// # Ok(())
    /// # }
    /// ```
    AdamWConfig,
    1e-2,
    [#[doc = "The factor, times the learning rate, of the parameter that is subtracted from it; 0.01 by default."]]
    |rule, parameter, gradient| {
        parameter.mul_(1.0 - rule.learning_rate * rule.weight_decay)?;
        Ok(gradient.clone())
    }
}

/// `x -= learning_rate * mean / (√(mean of squares) + eps)`, with means of gradients that forget, corrected for their
/// start at zero (Kingma and Ba, *Adam*, 2015).
pub type Adam = Optimizer<AdamConfig>;

/// [`Adam`] with decay of parameters that is independent of gradients (Loshchilov and Hutter, *Decoupled weight decay
/// regularization*, 2019).
pub type AdamW = Optimizer<AdamWConfig>;

/// The hyperparameters that both have.
struct Moments {
    learning_rate: f64,
    betas: [f64; 2],
    eps: f64,
    amsgrad: bool,
}

impl Moments {
    fn update(&self, parameter: &Tensor, gradient: &Tensor, state: &mut ParameterState) -> Result<()> {
        let [beta1, beta2] = self.betas;
        let (mean, _) = state.tensor(0, || parameter.zeros_like())?;
        let (mut squares, _) = state.tensor(1, || parameter.zeros_like())?;
        mean.lerp_(gradient, 1.0 - beta1)?;
        squares.mul_(beta2)?;
        squares.addcmul_with_(gradient, gradient, AddcmulOptions::new().value(1.0 - beta2))?;
        if self.amsgrad {
            let (mut largest, _) = state.tensor(2, || parameter.zeros_like())?;
            let before = largest.clone();
            before.maximum_out(&squares, &mut largest)?;
            squares = largest;
        }
        let correction = |beta: f64| 1.0 - beta.powf(state.step as f64);
        let roots = squares.sqrt()?;
        roots.div_(correction(beta2).sqrt())?;
        roots.add_(self.eps)?;
        let factor = -self.learning_rate / correction(beta1);
        parameter.addcdiv_with_(&mean, &roots, AddcdivOptions::new().value(factor))
    }
}
