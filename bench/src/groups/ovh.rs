//! `ovh`: the cost of a call, with one element or a few.

use std::time::{Duration, Instant};

use opsmith::autograd::{self, Options};
use opsmith::{Result, Tensor, TensorOps};

use super::ones;
use crate::harness::{CALL, Harness};

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("ovh.") {
        return Ok(());
    }
    forward(harness)?;
    backward(harness)
}

fn forward(harness: &mut Harness) -> Result<()> {
    let (a, b, zero) = (ones(&[1])?, ones(&[1])?, Tensor::of(&[0.0f32]));
    let mut out = ones(&[1])?;
    harness.case("ovh.add1", CALL, || opsmith::add(&a, &b));
    harness.case("ovh.add1_operator", CALL, || &a + &b);
    harness.case("ovh.add1_inplace", CALL, || a.add_(&zero));
    harness.case("ovh.add1_out", CALL, || opsmith::add_out(&a, &b, &mut out));
    harness.case("ovh.add1_scalar", CALL, || &a + 1.0);
    harness.case("ovh.mul1", CALL, || opsmith::mul(&a, &b));
    harness.case("ovh.empty1", CALL, || opsmith::empty([1]));
    harness.case("ovh.view1", CALL, || a.view([1]));
    harness.case("ovh.sum1", CALL, || a.sum());
    harness.case("ovh.item1", CALL, || a.item());
    harness.case("ovh.shape_query", CALL, || a.shape());
    let square = [ones(&[2, 2])?, ones(&[2, 2])?];
    harness.case("ovh.mm2x2", CALL, || opsmith::mm(&square[0], &square[1]));
    harness.case("ovh.softmax2x2", CALL, || square[0].softmax(-1));
    harness.case("ovh.detach1", CALL, || a.detach());
    harness.case("ovh.tensor_copy_refcount", CALL, || a.clone());
    let (tracked_a, tracked_b) = (ones(&[1])?.requires_grad_(true)?, ones(&[1])?.requires_grad_(true)?);
    harness.case("ovh.add1_grad_tracked", CALL, || opsmith::add(&tracked_a, &tracked_b));
    autograd::no_grad(|| harness.case("ovh.add1_no_grad", CALL, || opsmith::add(&tracked_a, &tracked_b)));
    autograd::inference(|| harness.case("ovh.add1_inference_mode", CALL, || opsmith::add(&a, &b)));
    Ok(())
}

fn backward(harness: &mut Harness) -> Result<()> {
    let (a, b) = (ones(&[4])?.requires_grad_(true)?, ones(&[4])?.requires_grad_(true)?);
    let forward = || a.mul(&b).and_then(|product| product.sum());
    harness.case("ovh.fwd4_mul_sum_tracked", CALL, forward);
    harness.case("ovh.fwd_bwd4", CALL, || forward().and_then(|sum| sum.backward()));
    harness.timed("ovh.bwd4_only", CALL, |count| {
        let (mut total, mut left) = (Duration::ZERO, count);
        while left > 0 {
            let batch = left.min(64);
            let sums: Vec<Tensor> = (0..batch).filter_map(|_| forward().ok()).collect();
            let start = Instant::now();
            sums.iter().for_each(|sum| _ = sum.backward());
            total += start.elapsed();
            left -= batch;
        }
        total
    });
    harness.case("ovh.autograd_grad4", CALL, || {
        autograd::grad(&[&forward()?], &[&a, &b], &[None], Options::default())
    });
    let (x, factor) = (ones(&[1])?.requires_grad_(true)?, ones(&[1])?);
    let chain = || (0..100).try_fold(x.clone(), |product, _| product.mul(&factor));
    harness.case("ovh.chain100_mul_fwd_bwd", CALL, || chain().and_then(|product| product.backward()));
    autograd::no_grad(|| harness.case("ovh.chain100_mul_nograd", CALL, chain));
    Ok(())
}
