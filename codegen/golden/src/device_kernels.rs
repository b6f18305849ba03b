//! Kernels of a device with protected memory: only their work can access it.

use opsmith_protected::launch;
use opsmith_runtime::{DeviceView, DeviceViewMut, Element, Result, Scalar};

/// `scale * (self + Σ rest)` where the mask is true, and how many tensors were added.
///
/// # Errors
/// None.
pub fn scaled_sum<T: Element>(
    self_: DeviceView<'_, T>,
    rest: &[DeviceView<'_, T>],
    mask: Option<DeviceView<'_, bool>>,
    scale: f64,
    sum: DeviceViewMut<'_, T>,
    count: DeviceViewMut<'_, i64>,
) -> Result<()> {
    let inputs: Vec<usize> =
        std::iter::once(&self_).chain(rest).map(|view| view.address().expose_provenance()).collect();
    let mask = mask.map(|mask| mask.address().expose_provenance());
    let (numel, sum, count) =
        (sum.numel(), sum.address().expose_provenance(), count.address().expose_provenance());
    let memory: Vec<usize> = inputs.iter().chain(&mask).copied().chain([sum, count]).collect();
    launch(memory, move || {
        for at in 0..numel {
            // SAFETY: the launch opens the memory, in which every operand has as many elements in a row.
            unsafe {
                let element = |start: &usize| {
                    (*std::ptr::with_exposed_provenance::<T>(*start).add(at)).to_scalar().to_f64()
                };
                let shown = mask.is_none_or(|mask| *std::ptr::with_exposed_provenance::<bool>(mask).add(at));
                let total = if shown { scale * inputs.iter().map(element).sum::<f64>() } else { 0.0 };
                std::ptr::with_exposed_provenance_mut::<T>(sum)
                    .add(at)
                    .write(T::from_scalar(Scalar::Float(total)));
                std::ptr::with_exposed_provenance_mut::<i64>(count).add(at).write(inputs.len() as i64);
            }
        }
        Ok(())
    });
    Ok(())
}
