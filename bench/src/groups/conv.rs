//! `conv`: convolutions and pooling of images.

use opsmith::autograd::{self, Options};
use opsmith::{ContiguousOptions, Conv2dOptions, MemoryFormat, Result, Tensor, TensorOps};

use super::normal;
use crate::harness::{Harness, Work};

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("conv.") {
        return Ok(());
    }
    let (x, weight) = (normal(&[8, 64, 56, 56])?, normal(&[64, 64, 3, 3])?);
    let flops = 2.0 * 8.0 * 64.0 * 64.0 * 9.0 * 56.0 * 56.0;
    let convolve = |x: &Tensor, weight: &Tensor| x.conv2d_with(weight, Conv2dOptions::new().padding([1, 1]));
    harness.case("conv.8x64x56_k3p1", Work::flops(flops), || convolve(&x, &weight));
    let last = |tensor: &Tensor| {
        tensor.contiguous_with(ContiguousOptions::new().memory_format(MemoryFormat::ChannelsLast))
    };
    let (x_last, weight_last) = (last(&x)?, last(&weight)?);
    harness.case("conv.8x64x56_k3p1_channels_last", Work::flops(flops), || convolve(&x_last, &weight_last));
    let grad = normal(&[8, 64, 56, 56])?;
    let (tracked_x, tracked) = (x.detach().requires_grad_(true)?, weight.detach().requires_grad_(true)?);
    harness.case("conv.8x64x56_k3p1_fwd_bwd", Work::flops(3.0 * flops), || {
        let result = convolve(&tracked_x, &tracked)?;
        autograd::grad(&[&result], &[&tracked_x, &tracked], &[Some(&grad)], Options::default())
    });
    harness.case("conv.maxpool2x2", Work::memory(5.0, x.numel() as f64), || x.max_pool2d([2, 2]));
    Ok(())
}
