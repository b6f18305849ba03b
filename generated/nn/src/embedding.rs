//! Tables of vectors.

use opsmith::{EmbeddingOptions, Error, Generator, Result, Tensor, TensorOps};

use crate::config::config;
use crate::module::{Layer, Parameter};
use crate::{init, module};

config! {
    /// Options of [`Embedding`].
    EmbeddingConfig {
        /// The row that is zero at first and gets no gradient, from the end if negative; none by default.
        padding_index: Option<i64> = None, set i64 => Some(padding_index);
        /// Whether gradients are divided by the number of times that a row occurs; false by default.
        scale_grad_by_freq: bool = false;
    }
}

/// The rows of a table at the indices of the input.
///
/// ```
/// use opsmith::{Generator, Tensor};
/// use opsmith_nn::{Embedding, Layer};
///
/// # fn main() -> opsmith::Result<()> {
/// let layer = Embedding::new(10, 4, &Generator::new(0))?;
/// assert_eq!(layer.forward(&Tensor::of(&[1i64, 7, 1]))?.shape(), [3, 4]);
/// # Ok(())
/// # }
/// ```
///
/// Indices of any shape, `int64` or `int32`, give `(…, width)`. Parameter: `weight`, `(rows, width)`, normally
/// distributed at first.
#[derive(Debug)]
pub struct Embedding {
    weight: Parameter,
    config: EmbeddingConfig,
}

module!(Embedding { weight });

impl Embedding {
    /// A table of `float32`.
    ///
    /// # Errors
    /// If a size is negative, or there is no memory.
    pub fn new(rows: i64, width: i64, generator: &Generator) -> Result<Embedding> {
        Embedding::new_with(rows, width, EmbeddingConfig::new(), generator)
    }

    /// As [`Embedding::new`], with options.
    ///
    /// # Errors
    /// As [`Embedding::new`], and if there is no row of the padding index.
    pub fn new_with(
        rows: i64,
        width: i64,
        mut config: EmbeddingConfig,
        generator: &Generator,
    ) -> Result<Embedding> {
        let weight = opsmith::empty([rows, width])?;
        init::normal_(&weight, 0.0, 1.0, generator)?;
        if let Some(index) = config.padding_index {
            if !(-rows..rows).contains(&index) {
                return Err(Error::index(format!("the padding index {index} is no row of {rows}"))
                    .with_help(format!("give an index from {} to {}", -rows, rows - 1)));
            }
            weight.select(0, index)?.zero_()?;
            config.padding_index = Some(if index < 0 { index + rows } else { index });
        }
        Ok(Embedding { weight: Parameter::new(weight)?, config })
    }

    /// The table.
    pub fn weight(&self) -> &Parameter {
        &self.weight
    }
}

impl Layer for Embedding {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let options = EmbeddingOptions::new()
            .padding_idx(self.config.padding_index.unwrap_or(-1))
            .scale_grad_by_freq(self.config.scale_grad_by_freq);
        opsmith::embedding_with(&self.weight, input, options)
    }
}
