//! `red`: reductions over all elements, the last or the first axis. `nrm`: softmax and norms.

use opsmith::autograd::{self, Options};
use opsmith::{AmaxOptions, ArgmaxOptions, LayerNormOptions, Result, RmsNormOptions, Tensor, TensorOps};

use super::{normal, ones};
use crate::harness::{Harness, Work};

pub fn run(harness: &mut Harness) -> Result<()> {
    if harness.wants("red.") {
        reductions(harness)?;
    }
    if harness.wants("nrm.") {
        norms(harness)?;
        gradients_of_norms(harness)?;
    }
    Ok(())
}

fn reductions(harness: &mut Harness) -> Result<()> {
    let a = normal(&[4096, 4096])?;
    let work = Work::memory(4.0, a.numel() as f64);
    let last: Option<&[i64]> = Some(&[-1]);
    harness.case("red.sum_last", work, || a.sum_dim(last));
    harness.case("red.sum_first", work, || a.sum_dim(Some(&[0])));
    harness.case("red.sum_all", work, || a.sum());
    harness.case("red.mean_all", work, || a.mean());
    harness.case("red.mean_last", work, || a.mean_dim(last));
    harness.case("red.max_all", work, || a.max());
    harness.case("red.max_last", work, || a.max_dim(-1));
    harness.case("red.amax_last", work, || a.amax_with(AmaxOptions::new().dim([-1])));
    harness.case("red.argmax_all", work, || a.argmax());
    harness.case("red.argmax_last", work, || a.argmax_with(ArgmaxOptions::new().dim(-1)));
    harness.case("red.argmax_first", work, || a.argmax_with(ArgmaxOptions::new().dim(0)));
    harness.case("red.var_last", work, || a.var_dim(last));
    for (label, count) in [("1e3", 1_000), ("1e6", 1_000_000)] {
        let a = normal(&[count])?;
        harness.case(&format!("red.sum_{label}"), Work::memory(4.0, count as f64), || a.sum());
    }
    Ok(())
}

const ROWS: [i64; 2] = [4096, 1024];

fn norms(harness: &mut Harness) -> Result<()> {
    let (a, mut out) = (normal(&ROWS)?, normal(&ROWS)?);
    let (weight, bias) = (ones(&[1024])?, opsmith::zeros([1024])?);
    let work = Work::memory(8.0, a.numel() as f64);
    harness.case("nrm.softmax", work, || a.softmax(-1));
    harness.case("nrm.softmax.out", work, || opsmith::softmax_forward_out(&a, -1, false, &mut out));
    harness.case("nrm.log_softmax", work, || a.log_softmax(-1));
    let options = || LayerNormOptions::new().weight(&weight).bias(&bias);
    harness.case("nrm.layer_norm", work, || a.layer_norm_with([1024], options()));
    let options = || RmsNormOptions::new().weight(&weight);
    harness.case("nrm.rms_norm", work, || a.rms_norm_with([1024], options()));
    Ok(())
}

fn gradients_of_norms(harness: &mut Harness) -> Result<()> {
    let tracked = |tensor: Tensor| tensor.requires_grad_(true);
    let (a, grad) = (tracked(normal(&ROWS)?)?, normal(&ROWS)?);
    let (weight, bias) = (tracked(ones(&[1024])?)?, tracked(opsmith::zeros([1024])?)?);
    let work = Work::memory(8.0, a.numel() as f64);
    harness.case("nrm.softmax_fwd_bwd", work, || {
        autograd::grad(&[&a.softmax(-1)?], &[&a], &[Some(&grad)], Options::default())
    });
    harness.case("nrm.layer_norm_fwd_bwd", work, || {
        let result = a.layer_norm_with([1024], LayerNormOptions::new().weight(&weight).bias(&bias))?;
        autograd::grad(&[&result], &[&a, &weight, &bias], &[Some(&grad)], Options::default())
    });
    Ok(())
}
