//! `mm`: matrix products of growing size, of transposed operands, other dtypes, batches, vectors and with a bias.

use opsmith::{DType, LinearOptions, Result, TensorOps};

use super::normal;
use crate::harness::{Harness, Work};

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("mm.") {
        return Ok(());
    }
    for size in [64, 128, 256, 512, 1024, 2048] {
        let (a, b, mut out) = (normal(&[size, size])?, normal(&[size, size])?, normal(&[size, size])?);
        let work = Work::flops(2.0 * (size as f64).powi(3));
        harness.case(&format!("mm.f32.{size}"), work, || a.mm(&b));
        if size <= 1024 {
            harness.case(&format!("mm.f32.{size}.out"), work, || a.mm_out(&b, &mut out));
        }
    }
    let (a, b) = (normal(&[1024, 1024])?, normal(&[1024, 1024])?);
    let work = Work::flops(2.0 * 1024f64.powi(3));
    harness.case("mm.f32_tn.1024", work, || a.t()?.mm(&b));
    harness.case("mm.f32_nt.1024", work, || a.mm(&b.t()?));
    let (a, b) = (normal(&[16, 256, 256])?, normal(&[16, 256, 256])?);
    harness.case("mm.bmm16x256", Work::flops(16.0 * 2.0 * 256f64.powi(3)), || a.bmm(&b));
    let (a, b) = (normal(&[1024, 1024])?, normal(&[1024, 1024])?);
    for (name, dtype) in [("f64", DType::F64), ("bf16", DType::BF16), ("f16", DType::F16)] {
        let (a, b) = (a.to_dtype(dtype)?, b.to_dtype(dtype)?);
        harness.case(&format!("mm.{name}.1024"), work, || a.mm(&b));
    }
    let (matrix, vector) = (normal(&[4096, 4096])?, normal(&[4096])?);
    let elements = 4096.0 * 4096.0;
    let work = Work { flops: 2.0 * elements, bytes: 4.0 * elements, elements: 0.0 };
    harness.case("mm.gemv4096", work, || matrix.mv(&vector));
    let packed = opsmith::ones([4096, 2048])?.to_dtype(DType::U8)?;
    let scales = normal(&[4096, 128])?;
    for rows in [1, 128] {
        let x = normal(&[rows, 4096])?;
        let work = Work { flops: 2.0 * elements * rows as f64, bytes: 0.5 * elements, elements: 0.0 };
        harness.case(&format!("mm.int4_{rows}x4096x4096"), work, || x.mm_int4(&packed, &scales));
    }
    let (x, weight, bias) = (normal(&[128, 784])?, normal(&[512, 784])?, normal(&[512])?);
    let work = Work::flops(2.0 * 128.0 * 784.0 * 512.0);
    harness.case("mm.linear_128x784x512", work, || x.linear_with(&weight, LinearOptions::new().bias(&bias)));
    Ok(())
}
