//! Arrays of numbers, for kernels of the host and of the device.
//!
//! In: sizes. Out: elements, and views of them.

use opsmith_runtime::{Element, Scalar, View, ViewMut};

use super::numbers::{Bits, Number};

/// Strides of elements one after the other.
pub fn row_major(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    for dim in (1..sizes.len()).rev() {
        strides[dim - 1] = strides[dim] * sizes[dim];
    }
    strides
}

/// A tensor's elements and layout.
#[derive(Clone)]
pub struct Array<T> {
    pub elements: Vec<T>,
    pub sizes: Vec<i64>,
    pub strides: Vec<i64>,
}

impl<T: Element + Number> Array<T> {
    pub fn new(sizes: &[i64], elements: Vec<T>) -> Array<T> {
        Array { elements, sizes: sizes.to_vec(), strides: row_major(sizes) }
    }

    /// Random numbers of moderate size.
    pub fn random(sizes: &[i64]) -> Array<T> {
        let mut bits = Bits(sizes.iter().sum::<i64>() as u64);
        let mut number = || f64::from(bits.next() as u32 >> 8) / f64::from(1u32 << 24) * 8.0 - 4.0;
        let elements = (0..sizes.iter().product()).map(|_| T::from_scalar(Scalar::Float(number()))).collect();
        Array::new(sizes, elements)
    }

    pub fn permuted(mut self, dims: &[usize]) -> Array<T> {
        self.sizes = dims.iter().map(|&dim| self.sizes[dim]).collect();
        self.strides = dims.iter().map(|&dim| self.strides[dim]).collect();
        self
    }

    pub fn view(&self) -> View<'_, T> {
        // SAFETY: the constructors keep sizes and strides inside the elements.
        unsafe { View::from_raw(self.elements.as_ptr(), &self.sizes, &self.strides) }
    }

    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        // SAFETY: as for `view`; there is no other reference.
        unsafe { ViewMut::from_raw(self.elements.as_mut_ptr(), &self.sizes, &self.strides) }
    }
}
