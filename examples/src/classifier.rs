//! A classifier of the digits: a network with one hidden layer, and SGD with momentum.

use opsmith::autograd::no_grad;
use opsmith::{Device, Generator, Result, SubOptions, Tensor, TensorOps};

use crate::digits::Digits;

/// 64 pixels, a hidden layer of 128 units, 10 logits.
pub struct Network {
    hidden_weight: Tensor,
    hidden_bias: Tensor,
    logit_weight: Tensor,
    logit_bias: Tensor,
}

impl Network {
    /// A network with random weights (He et al. 2015, so that the magnitude of each layer's results is about that of
    /// its inputs), on a device.
    ///
    /// # Errors
    /// If the device does not exist, or its memory is exhausted.
    pub fn new(generator: &Generator, device: Device) -> Result<Network> {
        let weight = |inputs: i64, outputs: i64| -> Result<Tensor> {
            let scale = (2.0 / inputs as f64).sqrt();
            let weight = opsmith::randn_generator([inputs, outputs], Some(generator))?.mul(scale)?;
            weight.to_device(device)?.requires_grad_(true)
        };
        let bias = |outputs: i64| opsmith::zeros([outputs])?.to_device(device)?.requires_grad_(true);
        Ok(Network {
            hidden_weight: weight(64, 128)?,
            hidden_bias: bias(128)?,
            logit_weight: weight(128, 10)?,
            logit_bias: bias(10)?,
        })
    }

    /// The parameters for training.
    pub fn parameters(&self) -> Vec<Tensor> {
        let Network { hidden_weight, hidden_bias, logit_weight, logit_bias } = self;
        [hidden_weight, hidden_bias, logit_weight, logit_bias].map(Tensor::clone).into()
    }

    /// The logits of images, shape `[images, 10]`.
    ///
    /// # Errors
    /// If the images do not have 64 pixels, or are on another device.
    pub fn logits(&self, images: &Tensor) -> Result<Tensor> {
        let hidden = self.hidden_bias.addmm(images, &self.hidden_weight)?.relu()?;
        self.logit_bias.addmm(&hidden, &self.logit_weight)
    }

    /// The share of digits whose largest logit is that of their label.
    ///
    /// # Errors
    /// As [`Network::logits`].
    pub fn accuracy(&self, digits: &Digits) -> Result<f64> {
        let predictions = self.logits(&digits.images)?.argmax_with(1)?;
        let correct = predictions.eq(&digits.labels)?.sum()?;
        Ok(correct.item()?.to_f64() / digits.len() as f64)
    }
}

/// Stochastic gradient descent with momentum.
pub struct Sgd {
    parameters: Vec<Tensor>,
    velocities: Vec<Tensor>,
    learning_rate: f64,
    momentum: f64,
}

impl Sgd {
    /// An optimizer of parameters, with velocities of zero.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new(parameters: Vec<Tensor>, learning_rate: f64, momentum: f64) -> Result<Sgd> {
        let velocities = parameters.iter().map(TensorOps::zeros_like).collect::<Result<_>>()?;
        Ok(Sgd { parameters, velocities, learning_rate, momentum })
    }

    /// Updates each parameter in place and clears its gradient.
    ///
    /// # Errors
    /// If a parameter was changed elsewhere since its gradient was computed.
    pub fn step(&mut self) -> Result<()> {
        no_grad(|| {
            for (parameter, velocity) in self.parameters.iter().zip(&self.velocities) {
                let Some(gradient) = parameter.grad() else { continue };
                velocity.mul_(self.momentum)?;
                velocity.add_(&gradient)?;
                parameter.sub_with_(velocity, SubOptions::new().alpha(self.learning_rate))?;
                parameter.zero_grad();
            }
            Ok(())
        })
    }
}
