//! Layers, optimizers and state dicts over the operators of `opsmith`.
//!
//! In: tensors. Out: results of layers, new parameters, files of parameters. A layer is its parameters and a call of its
//! operator, whose errors it returns; names of parameters are those of PyTorch, so that files go both ways. This crate
//! has no kernels, no gradients and no graphs of its own.
//!
//! ```
//! use opsmith::{Generator, TensorOps};
//! use opsmith_nn::optim::{AdamW, AdamWConfig};
//! use opsmith_nn::{Dropout, Layer, Linear, Module, Relu, sequential};
//!
//! # fn main() -> opsmith::Result<()> {
//! let generator = Generator::new(1);
//! let network = sequential![
//!     Linear::new(4, 16, &generator)?,
//!     Relu,
//!     Dropout::new(0.1)?,
//!     Linear::new(16, 3, &generator)?,
//! ];
//! let mut optimizer = AdamW::new(network.parameters(), AdamWConfig::new().learning_rate(0.01))?;
//! let images = opsmith::ones([8, 4])?;
//! let labels = opsmith::Tensor::of(&[0i64, 1, 2, 0, 1, 2, 0, 1]);
//! let loss = network.forward(&images)?.cross_entropy(&labels)?;
//! loss.backward()?;
//! optimizer.step()?;
//! optimizer.zero_grad();
//! assert_eq!(network.state_dict().names(), ["0.bias", "0.weight", "3.bias", "3.weight"]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Module`] is a tree of named parameters, [`Layer`] a module with a function of one tensor; [`init`] has initial
//! values, [`optim`] optimizers, schedules and clipping, [`StateDict`] and [`npz`] files.

mod activation;
mod attention;
mod config;
mod conv;
mod dropout;
mod embedding;
pub mod init;
mod linear;
mod module;
mod norm;
pub mod npz;
pub mod optim;
mod per_axis;
mod pooling;
mod recurrent;
mod sequential;
mod state;
mod transformer;

pub use activation::{
    Elu, Gelu, Hardswish, LeakyRelu, LogSoftmax, Mish, Prelu, Relu, Relu6, Sigmoid, Silu, Softmax, Softplus,
    Tanh,
};
pub use attention::{AttentionConfig, AttentionMasks, MultiheadAttention};
pub use conv::{
    Conv, Conv1d, Conv2d, Conv3d, ConvConfig, ConvTranspose, ConvTranspose1d, ConvTranspose2d,
    ConvTranspose3d, ConvTransposeConfig,
};
pub use dropout::Dropout;
pub use embedding::{Embedding, EmbeddingConfig};
pub use linear::{Flatten, Identity, Linear, LinearConfig};
pub use module::{
    InLayer, Layer, Module, ModuleBuffer, ModuleItem, Parameter, TrainingMode, Visitor, VisitorMut,
};
pub use norm::{
    BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, BatchNormConfig, GroupNorm, GroupNormConfig,
    InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, InstanceNormConfig, LayerNorm,
    LayerNormConfig, RmsNorm, RmsNormConfig,
};
pub use per_axis::PerAxis;
pub use pooling::{
    AdaptiveAvgPool, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool,
    AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, AvgPool, AvgPool1d, AvgPool2d, AvgPool3d,
    AvgPoolConfig, MaxPool, MaxPool1d, MaxPool2d, MaxPool3d, MaxPoolConfig,
};
pub use recurrent::{Gru, Lstm, RecurrentConfig, Rnn, RnnConfig, RnnNonlinearity};
pub use sequential::{FunctionLayer, Sequential};
pub use state::{LoadConfig, StateDict};
pub use transformer::{
    FeedForwardActivation, TransformerEncoder, TransformerEncoderLayer, TransformerLayerConfig,
};

/// The programs of the guide are tests.
#[cfg(doctest)]
#[doc = include_str!("../nn.md")]
mod guide {}
