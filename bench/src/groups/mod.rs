//! The cases by group: the part of a case's name before the first point.

mod aot;
mod conv;
pub mod device;
mod ew;
mod generator;
mod graph;
mod idx;
mod infer;
mod layout;
mod mm;
mod ovh;
mod profile;
mod red;
mod train;

use opsmith::runtime::random::Normal;
use opsmith::{Generator, Result, Tensor};

use crate::harness::Harness;

/// Times every selected group.
pub fn run(harness: &mut Harness) -> anyhow::Result<()> {
    ovh::run(harness)?;
    profile::run(harness)?;
    aot::run(harness)?;
    ew::run(harness)?;
    layout::run(harness)?;
    red::run(harness)?;
    mm::run(harness)?;
    conv::run(harness)?;
    idx::run(harness)?;
    train::run(harness)?;
    graph::run(harness)?;
    infer::run(harness)?;
    generator::run(harness)?;
    Ok(())
}

/// Normally distributed elements, the same in every run.
fn normal(shape: &[i64]) -> Result<Tensor> {
    let mut elements = vec![0.0f32; shape.iter().product::<i64>() as usize];
    Generator::new(0).fill(&Normal::<f32>::new(), &mut elements);
    Tensor::from_slice(&elements, shape)
}

fn ones(shape: &[i64]) -> Result<Tensor> {
    Tensor::from_slice(&vec![1.0f32; shape.iter().product::<i64>() as usize], shape)
}
