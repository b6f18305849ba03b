//! `mm`: matrix products of growing size.

use opsmith::{Result, TensorOps};

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
    Ok(())
}
