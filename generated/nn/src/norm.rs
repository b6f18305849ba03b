//! Normalisation by statistics of a batch, a sample, a group of channels or a vector.

mod batch;
mod instance;
mod vector;

pub use batch::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, BatchNormConfig};
pub use instance::{
    GroupNorm, GroupNormConfig, InstanceNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d,
    InstanceNormConfig,
};
pub use vector::{LayerNorm, LayerNormConfig, RmsNorm, RmsNormConfig};

use opsmith::{Error, Result};

use crate::module::Parameter;

/// A weight of ones.
fn ones(sizes: &[i64]) -> Result<Parameter> {
    Parameter::new(opsmith::ones(sizes)?)
}

/// A bias of zeros.
fn zeros(sizes: &[i64]) -> Result<Parameter> {
    Parameter::new(opsmith::zeros(sizes)?)
}

/// Refuses an input whose dimensions the layer does not have.
fn check_dimensions(layer: &str, shape: &[i64], allowed: &[usize], cure: &str) -> Result<()> {
    if allowed.contains(&shape.len()) {
        return Ok(());
    }
    Err(Error::shape(format!("{layer} takes {allowed:?} dimensions, and the input has {}", shape.len()))
        .with_help(format!("its shape is {shape:?}; {cure}")))
}
