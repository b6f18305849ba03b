//! Stored tensors, rebuilt with their recorded strides.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use opsmith::{DType, Device, Tensor};
use opsmith_runtime::{Layout, with_dtype};
use safetensors::SafeTensors;

use super::Recorded;

/// The tensors of one overload's cases.
pub struct Tensors {
    bytes: Vec<u8>,
    /// The byte range of each tensor.
    places: HashMap<String, Range<usize>>,
}

impl Tensors {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read or is not in the safetensors format.
    pub fn read(path: &Path) -> Result<Tensors, String> {
        let in_file = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let bytes = std::fs::read(path).map_err(|error| in_file(&error))?;
        let file = SafeTensors::deserialize(&bytes).map_err(|error| in_file(&error))?;
        let places = file.tensors().into_iter().map(|(key, stored)| {
            let start = stored.data().as_ptr().addr() - bytes.as_ptr().addr();
            (key, start..start + stored.data().len())
        });
        Ok(Tensors { places: places.collect(), bytes })
    }

    /// A recorded tensor with its dtype, sizes and strides, in host memory.
    ///
    /// # Errors
    /// If the stored data does not fit the record.
    pub fn get(&self, recorded: &Recorded) -> Result<Tensor, String> {
        self.on(recorded, Device::CPU)
    }

    /// The same on a device.
    ///
    /// # Errors
    /// As [`Tensors::get`], and errors of the device.
    pub fn on(&self, recorded: &Recorded, device: Device) -> Result<Tensor, String> {
        let Recorded::Tensor { key, dtype, shape, strides } = recorded else {
            return Err(format!("{recorded} is not a tensor"));
        };
        let dtype = DType::from_name(dtype).ok_or_else(|| format!("unknown dtype {dtype}"))?;
        let place = self.places.get(key).ok_or_else(|| format!("{key}: no such tensor is stored"))?;
        let stored = &self.bytes[place.clone()];
        let layout = Layout { sizes: shape.as_slice().into(), strides: strides.as_slice().into(), offset: 0 };
        if stored.len() != layout.numel() as usize * dtype.size() {
            return Err(format!("{key}: {} bytes are stored for {recorded}", stored.len()));
        }
        with_dtype!(dtype, T => rebuild::<T>(stored, layout, device))
    }
}

/// A tensor of a device with the given layout from elements in row-major order.
fn rebuild<T: opsmith::Element>(bytes: &[u8], layout: Layout, device: Device) -> Result<Tensor, String> {
    let size = size_of::<T>();
    // SAFETY: the bytes of every element type may be copied from any address; `bool` was stored as
    // 0 or 1.
    let element = |index: usize| unsafe { bytes.as_ptr().add(index * size).cast::<T>().read_unaligned() };
    let (low, high) = layout.extent().unwrap_or((0, 0));
    if low < 0 {
        return Err(format!("negative strides {:?}", layout.strides));
    }
    let mut elements = vec![T::default(); high as usize];
    let positions = opsmith_runtime::view::Positions::new(&layout.sizes, &layout.strides);
    for (index, position) in positions.enumerate() {
        elements[position as usize] = element(index);
    }
    let whole = Tensor::of(&elements).to_device(device).map_err(|error| error.to_string())?;
    // SAFETY: the storage holds the layout's extent, all of it written.
    Ok(unsafe { Tensor::from_parts(whole.storage().clone(), layout, T::DTYPE, whole.device()) })
}
