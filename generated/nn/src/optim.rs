//! Optimizers, schedules of learning rates, and clipping of gradients.
//!
//! In: parameters with gradients. Out: the parameters, changed in place. The updates are those of PyTorch.

mod adagrad;
mod adam;
mod clip;
mod hyper;
mod optimizer;
mod rms_prop;
mod schedule;
mod scheduler;
mod sgd;

pub use adagrad::{Adagrad, AdagradConfig};
pub use adam::{Adam, AdamConfig, AdamW, AdamWConfig};
pub use clip::{clip_grad_norm, clip_grad_value};
pub use hyper::Hyperparameter;
pub use optimizer::{Optimizer, ParameterState, UpdateRule};
pub use rms_prop::{RmsProp, RmsPropConfig};
pub use schedule::{
    Annealing, Chained, CosineAnnealing, ExponentialLr, LearningRateSequence, LinearWarmup, OneCycle,
    Schedule, StepLr,
};
pub use scheduler::Scheduler;
pub use sgd::{Sgd, SgdConfig};
