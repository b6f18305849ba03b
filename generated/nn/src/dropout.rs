//! Dropout: elements set to zero at random while a module trains.

use opsmith::{BernoulliPOptions, Error, Generator, Result, Tensor, TensorOps};

use crate::module;
use crate::module::{Layer, TrainingMode};

/// Elements set to 0 with a probability `p`, and the others divided by `1 - p`, while the module trains; else the input
/// itself (Srivastava et al., *Dropout*, 2014).
///
/// ```
/// use opsmith_nn::{Dropout, Layer, Module};
///
/// # fn main() -> opsmith::Result<()> {
/// let mut layer = Dropout::new(0.5)?;
/// let x = opsmith::ones([100])?;
/// assert!(layer.forward(&x)?.to_vec::<f32>()?.iter().all(|x| *x == 0.0 || *x == 2.0));
/// layer.eval();
/// assert!(layer.forward(&x)?.same(&x));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Dropout {
    p: f64,
    generator: Option<Generator>,
    mode: TrainingMode,
}

module!(Dropout { mode });

impl Dropout {
    /// Dropout with random numbers from the default generator.
    ///
    /// # Errors
    /// If the probability is not between 0 and 1.
    pub fn new(p: f64) -> Result<Dropout> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Error::value(format!("the probability of dropout is {p}"))
                .with_help("give a number from 0 to 1"));
        }
        Ok(Dropout { p, generator: None, mode: TrainingMode::default() })
    }

    /// The same layer with random numbers from a generator.
    #[must_use]
    pub fn generator(mut self, generator: &Generator) -> Dropout {
        self.generator = Some(generator.clone());
        self
    }

    /// The probability that a call uses: 0 unless the module trains.
    pub(crate) fn rate(&self) -> f64 {
        if self.mode.is_training() { self.p } else { 0.0 }
    }
}

impl Layer for Dropout {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        if self.rate() == 0.0 {
            return Ok(input.clone());
        }
        let Some(generator) = &self.generator else { return input.dropout(self.p, true) };
        // Of 1 - p = 0 nothing is kept, and nothing is divided.
        let kept = 1.0 - self.p;
        let options = BernoulliPOptions::new().generator(generator);
        let mask = input.detach().bernoulli_p_with(kept, options)?;
        input.mul(&if kept > 0.0 { mask.div(kept)? } else { mask })
    }
}
