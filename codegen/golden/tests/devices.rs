//! Rows of two backends in one table: each has its own kernel, dtypes and adapter.

use opsmith_golden::{DoubledOnOptions, LIBRARY, ScaledSumOptions, doubled_on_with, scaled_sum_with};
use opsmith_protected::device;
use opsmith_runtime::{Backend, DType, Device, Result, Tensor};

fn tensors(dtype: DType, place: Device) -> Result<(Tensor, Vec<Tensor>, Tensor)> {
    let tensor = |numbers: [f64; 3]| {
        let tensor = Tensor::of(&numbers);
        let converted = Tensor::from_slice(&[0f32; 3], &[3])?;
        opsmith_runtime::copy::copy(&converted, &tensor)?;
        if dtype == DType::F64 { tensor.to_device(place) } else { converted.to_device(place) }
    };
    let rest = vec![tensor([10.0, 20.0, 30.0])?, tensor([0.5, 0.25, 0.125])?];
    Ok((tensor([1.0, 2.0, 3.0])?, rest, Tensor::of(&[true, false, true]).to_device(place)?))
}

#[test]
fn each_backend_has_its_own_kernel() -> Result<()> {
    for dtype in [DType::F32, DType::F64] {
        let mut results = Vec::new();
        for place in [Device::CPU, device(0)] {
            let (first, rest, mask) = tensors(dtype, place)?;
            let rest: Vec<&Tensor> = rest.iter().collect();
            let options = ScaledSumOptions::new().mask(&mask).scale(2.0);
            let (sum, count) = scaled_sum_with(&first, &rest, &options)?;
            assert_eq!((sum.device(), count.device()), (place, place));
            assert_eq!(format!("{sum} {count}"), "[23.00,  0.00, 66.25] [3, 3, 3]");
            results.push(sum);
        }
    }
    Ok(())
}

#[test]
fn a_row_has_the_dtypes_that_the_entry_gives_it() {
    let (op, _) = LIBRARY.get("scaled_sum").unwrap();
    let dtypes = |backend| op.kernels.dtypes(backend).iter().collect::<Vec<_>>();
    assert_eq!(dtypes(Backend::Cpu), [DType::F16, DType::BF16, DType::F32, DType::F64]);
    assert_eq!(dtypes(Backend::Cuda), [DType::F32, DType::F64]);
    assert_eq!(op.kernels.source(Backend::Cuda), "scaled_sum");
}

/// Operands of one form need no inference, except for the device.
#[test]
fn a_call_runs_on_the_device_that_it_names() -> Result<()> {
    // Kernel tables are global: the operators of other tests keep their own kernels.
    let (op, _) = LIBRARY.get("doubled_on").unwrap();
    opsmith_protected::install(&[op]);
    let x = Tensor::of(&[1.0, 2.5]);
    let there = doubled_on_with(&x, DoubledOnOptions::new().device(device(0)))?;
    assert_eq!((there.device(), there.to_vec::<f64>()?), (device(0), vec![2.0, 5.0]));
    let back = doubled_on_with(&there, DoubledOnOptions::new().device(Device::CPU))?;
    assert_eq!((back.device(), back.to_vec::<f64>()?), (Device::CPU, vec![4.0, 10.0]));
    Ok(())
}
