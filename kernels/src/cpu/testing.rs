//! Arrays with arbitrary strides for the tests of kernels, and naive iteration over them.

use opsmith_runtime::layout::contiguous_strides;
use opsmith_runtime::{Dims, Element, View, ViewMut};

/// Elements in memory with sizes, strides and a start.
#[derive(Clone, Debug)]
pub(crate) struct Array<T> {
    data: Vec<T>,
    start: usize,
    pub sizes: Dims,
    pub strides: Dims,
}

impl<T: Element> Array<T> {
    /// A row-major array.
    pub fn new(sizes: &[i64], elements: impl IntoIterator<Item = T>) -> Array<T> {
        let data: Vec<T> = elements.into_iter().collect();
        assert_eq!(data.len() as i64, sizes.iter().product::<i64>(), "one element a position");
        Array { data, start: 0, sizes: sizes.into(), strides: contiguous_strides(sizes) }
    }

    /// An array whose elements are still to be written.
    pub fn zeros(sizes: &[i64]) -> Array<T> {
        Array::new(sizes, vec![T::default(); sizes.iter().product::<i64>() as usize])
    }

    /// The same elements with dimensions in another order.
    pub fn permuted(mut self, dims: &[usize]) -> Array<T> {
        self.sizes = dims.iter().map(|&dim| self.sizes[dim]).collect();
        self.strides = dims.iter().map(|&dim| self.strides[dim]).collect();
        self
    }

    /// One dimension backwards.
    pub fn reversed(mut self, dim: usize) -> Array<T> {
        let last = (self.sizes[dim] - 1).max(0) * self.strides[dim];
        self.start = (self.start as i64 + last) as usize;
        self.strides[dim] = -self.strides[dim];
        self
    }

    /// Every second element of a dimension.
    pub fn halved(mut self, dim: usize) -> Array<T> {
        self.sizes[dim] = (self.sizes[dim] + 1) / 2;
        self.strides[dim] *= 2;
        self
    }

    /// A new first dimension that repeats everything.
    pub fn repeated(mut self, times: i64) -> Array<T> {
        self.sizes.insert(0, times);
        self.strides.insert(0, 0);
        self
    }

    pub fn view(&self) -> View<'_, T> {
        // SAFETY: the constructors keep sizes, strides and start inside the data.
        unsafe { View::from_raw(self.data.as_ptr().wrapping_add(self.start), &self.sizes, &self.strides) }
    }

    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        let data = self.data.as_mut_ptr().wrapping_add(self.start);
        // SAFETY: the layout is inside the elements; the borrow of `self` is unique.
        unsafe { ViewMut::from_raw(data, &self.sizes, &self.strides) }
    }

    /// The elements in row-major order.
    pub fn to_vec(&self) -> Vec<T> {
        self.view().iter().collect()
    }

    /// The element at an index.
    pub fn at(&self, index: &[i64]) -> T {
        self.data[self.place(index)]
    }

    /// Changes the element at an index.
    pub fn set(&mut self, index: &[i64], element: T) {
        let place = self.place(index);
        self.data[place] = element;
    }

    fn place(&self, index: &[i64]) -> usize {
        let offset: i64 = index.iter().zip(&self.strides).map(|(&i, &stride)| i * stride).sum();
        (self.start as i64 + offset) as usize
    }
}

/// Every index of a shape in row-major order.
pub(crate) fn indices(sizes: &[i64]) -> Vec<Dims> {
    let mut all = vec![Dims::new()];
    for &size in sizes {
        all = all
            .into_iter()
            .flat_map(|index| {
                (0..size).map(move |i| {
                    let mut index = index.clone();
                    index.push(i);
                    index
                })
            })
            .collect();
    }
    all
}

/// Numbers that are not in any order: a linear congruential generator's.
pub(crate) fn scattered(count: usize) -> impl Iterator<Item = f64> {
    let mut state = 12345u64;
    (0..count).map(move |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 22) - 2.0
    })
}

/// Asserts that two lists of numbers agree to a relative and absolute tolerance; NaN equals NaN.
#[track_caller]
pub(crate) fn assert_close(got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    for (position, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let same = got == expected
            || (got.is_nan() && expected.is_nan())
            || (got - expected).abs() <= tolerance * expected.abs().max(1.0);
        assert!(same, "element {position}: {got} instead of {expected}");
    }
}

/// Calls `body` with one thread and with several: its results must be the same.
pub(crate) fn with_threads(mut body: impl FnMut()) {
    for threads in [1, 2, 5] {
        opsmith_runtime::parallel::set_num_threads(threads).unwrap();
        body();
    }
}
