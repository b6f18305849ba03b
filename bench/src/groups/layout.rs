//! `bc`, `tr`, `st`: operands of other layouts than the result: broadcast, transposed, with steps. `cp`: copies between
//! layouts and dtypes.

use opsmith::{CatOptions, DType, Result, SliceOptions, Tensor, TensorOps};

use super::normal;
use crate::harness::{Harness, Work};

const ELEMENTS: f64 = (1 << 20) as f64;
const LARGE: f64 = (1 << 24) as f64;

pub fn run(harness: &mut Harness) -> Result<()> {
    if ["bc.", "tr.", "st."].iter().any(|group| harness.wants(group)) {
        operands(harness)?;
        large_operands(harness)?;
    }
    if harness.wants("cp.") {
        copies(harness)?;
        joins(harness)?;
    }
    Ok(())
}

fn operands(harness: &mut Harness) -> Result<()> {
    let (a, b, mut out) = (normal(&[1024, 1024])?, normal(&[1024, 1024])?, normal(&[1024, 1024])?);
    let (row, column, transposed) = (normal(&[1024])?, normal(&[1024, 1])?, a.t()?);
    for (name, one, other, bytes) in [
        ("bc.same", &a, &b, 12.0),
        ("bc.row", &a, &row, 8.0),
        ("bc.col", &a, &column, 8.0),
        ("tr.add_t_n", &transposed, &b, 12.0),
    ] {
        let work = Work::memory(bytes, ELEMENTS);
        harness.case(name, work, || one.add(other));
        harness.case(&format!("{name}.out"), work, || one.add_out(other, &mut out));
    }
    harness.case("tr.add_t_t", Work::memory(12.0, ELEMENTS), || a.t()?.add(&b.t()?));
    let steps = normal(&[1024, 2048])?.slice_with(SliceOptions::new().dim(1).step(2))?;
    harness.case("st.add_stride2.out", Work::memory(12.0, ELEMENTS), || steps.add_out(&b, &mut out));
    Ok(())
}

fn large_operands(harness: &mut Harness) -> Result<()> {
    let (a, b, mut out) = (normal(&[4096, 4096])?, normal(&[4096, 4096])?, normal(&[4096, 4096])?);
    let work = Work::memory(12.0, LARGE);
    let transposed = a.t()?;
    harness.case("tr.add_t_n_4096.out", work, || transposed.add_out(&b, &mut out));
    harness.case("bc.same_4096.out", work, || a.add_out(&b, &mut out));
    Ok(())
}

fn copies(harness: &mut Harness) -> Result<()> {
    let (a, out) = (normal(&[4096, 4096])?, normal(&[4096, 4096])?);
    let work = Work::memory(8.0, LARGE);
    harness.case("cp.contiguous_t4096", work, || a.t()?.contiguous());
    harness.case("cp.copy_t4096.out", work, || out.copy_(&a.t()?));
    harness.case("cp.copy_4096.out", work, || out.copy_(&a));
    harness.case("cp.clone_4096", work, || a.deep_clone());
    let heads = normal(&[8, 128, 4, 64])?;
    let work = Work::memory(8.0, heads.numel() as f64);
    harness.case("cp.permute_heads", work, || heads.transpose(1, 2)?.contiguous());
    harness.case("cp.cast_f32_bf16", Work::memory(6.0, LARGE), || a.to_dtype(DType::BF16));
    harness.case("cp.fill", Work::memory(4.0, LARGE), || out.fill_(1.0));
    harness.case("cp.zeros_alloc_4096", Work::memory(4.0, LARGE), || opsmith::zeros([4096, 4096]));
    Ok(())
}

fn joins(harness: &mut Harness) -> Result<()> {
    let parts = |shape: [i64; 2]| (0..4).map(|_| normal(&shape)).collect::<Result<Vec<Tensor>>>();
    let (rows, columns, mut out) = (parts([1024, 4096])?, parts([4096, 1024])?, normal(&[4096, 4096])?);
    let work = Work::memory(8.0, LARGE);
    harness.case("cp.cat0_4x1024x4096", work, || opsmith::cat(&rows));
    let along = || CatOptions::new().dim(1);
    harness.case("cp.cat1_4x4096x1024", work, || opsmith::cat_with(&columns, along()));
    harness.case("cp.cat1_4x4096x1024.out", work, || opsmith::cat_with_out(&columns, &mut out, along()));
    Ok(())
}
