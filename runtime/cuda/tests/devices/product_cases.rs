//! Products of numbers whose sums are exact, in any layout, and their expected results.

use opsmith_runtime::backend::{Activation, DeviceMemory, Elements, LibraryProduct, Work};
use opsmith_runtime::copy::convert_elements;
use opsmith_runtime::{Complex64, DType, Result, Scalar};

use crate::common::{DEVICE, assert_same, download, upload};

/// How a stack of matrices lies in memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Order {
    /// By rows, without gaps.
    Rows,
    /// By columns, without gaps.
    Columns,
    /// By rows, with gaps of three elements, from the third element on.
    GappedRows,
    /// By columns, with gaps of three elements, from the third element on.
    GappedColumns,
    /// By rows, one matrix for all.
    Shared,
    /// Every other element of rows.
    Sparse,
    /// One row for all.
    OneRow,
    /// One column for all.
    OneColumn,
    /// One number for all.
    OneNumber,
}

/// A stack of matrices on the device, and its numbers.
pub struct Operand {
    memory: DeviceMemory,
    dtype: DType,
    first: usize,
    /// Number of elements along each dimension.
    pub sizes: [i64; 3],
    strides: [i64; 3],
    /// Elements of the memory.
    count: usize,
}

fn strides(order: Order, [_, rows, columns]: [i64; 3]) -> (usize, [i64; 3]) {
    match order {
        Order::Rows => (0, [rows * columns, columns, 1]),
        Order::Columns => (0, [rows * columns, 1, rows]),
        Order::GappedRows => (2, [rows * (columns + 3) + 5, columns + 3, 1]),
        Order::GappedColumns => (2, [columns * (rows + 3) + 5, 1, rows + 3]),
        Order::Shared => (0, [0, columns, 1]),
        Order::Sparse => (0, [rows * columns * 2, columns * 2, 2]),
        Order::OneRow => (1, [0, 0, 1]),
        Order::OneColumn => (1, [0, 1, 0]),
        Order::OneNumber => (1, [0, 0, 0]),
    }
}

/// Numbers as elements of a dtype, as the host converts them.
fn encoded(numbers: &[Complex64], dtype: DType) -> Vec<u8> {
    let mut words = vec![0u128; numbers.len() + 1];
    let sizes = [numbers.len() as i64];
    let to = Elements { start: words.as_mut_ptr().cast(), dtype, sizes: &sizes, strides: &[1] };
    let from = Elements {
        start: numbers.as_ptr().cast_mut().cast(),
        dtype: DType::C128,
        sizes: &sizes,
        strides: &[1],
    };
    // SAFETY: both sides have as many elements, and are aligned for all dtypes.
    unsafe { convert_elements(to, from).unwrap() };
    words.iter().flat_map(|word| word.to_ne_bytes()).take(numbers.len() * dtype.size()).collect()
}

/// The number of an operand's element.
fn number(seed: usize, at: [i64; 3], dtype: DType) -> Complex64 {
    let mix = at.iter().fold(seed as u64 + 1, |mix, &index| {
        (mix ^ (index as u64 + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    let part = |bits: u64| (bits % 17) as f64 / 8.0 - 1.0;
    Complex64::new(part(mix >> 8), if dtype.is_complex() { part(mix >> 24) } else { 0.0 })
}

impl Operand {
    /// An operand of numbers.
    pub fn new(seed: usize, order: Order, sizes: [i64; 3], dtype: DType) -> Operand {
        let (first, strides) = strides(order, sizes);
        let last: i64 = sizes.iter().zip(strides).map(|(size, stride)| (size - 1).max(0) * stride).sum();
        let count = first + last as usize + 3;
        let mut host = vec![Complex64::new(f64::NAN, f64::NAN); count];
        let operand = |memory| Operand { memory, dtype, first, sizes, strides, count };
        let described = operand(upload(DEVICE, &vec![0; count * dtype.size()]));
        for at in indices(sizes) {
            host[described.place(at)] = described.number(seed, at);
        }
        operand(upload(DEVICE, &encoded(&host, dtype)))
    }

    /// The number of an index's element in the memory.
    pub fn place(&self, at: [i64; 3]) -> usize {
        self.first + at.iter().zip(self.strides).map(|(index, stride)| index * stride).sum::<i64>() as usize
    }

    /// The number at an index; equal places have equal numbers.
    fn number(&self, seed: usize, at: [i64; 3]) -> Complex64 {
        let canonical = std::array::from_fn(|dim| if self.strides[dim] == 0 { 0 } else { at[dim] });
        number(seed, canonical, self.dtype)
    }

    /// The operand for the runtime.
    pub fn elements(&self) -> Elements<'_> {
        let start = self.memory.start().wrapping_add(self.first * self.dtype.size());
        Elements { start, dtype: self.dtype, sizes: &self.sizes, strides: &self.strides }
    }
}

/// All indices of a stack of matrices.
pub fn indices([stacks, rows, columns]: [i64; 3]) -> impl Iterator<Item = [i64; 3]> {
    (0..stacks).flat_map(move |stack| {
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [stack, row, column]))
    })
}

/// A product of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub dtype: DType,
    /// Stacks, rows, columns, inner.
    pub sizes: [i64; 4],
    pub orders: [Order; 3],
    pub scale: f64,
    pub added: Option<(Order, f64)>,
    pub activation: Option<Activation>,
}

/// A plain product.
pub const PLAIN: Case = Case {
    dtype: DType::F32,
    sizes: [1, 5, 4, 6],
    orders: [Order::Rows; 3],
    scale: 1.0,
    added: None,
    activation: None,
};

impl Case {
    /// Factors and result, and the addend.
    pub fn operands(&self) -> ([Operand; 3], Option<Operand>) {
        let [stacks, rows, columns, inner] = self.sizes;
        let all = [[stacks, rows, inner], [stacks, inner, columns], [stacks, rows, columns]];
        let made = |number: usize| Operand::new(number, self.orders[number], all[number], self.dtype);
        let added = self.added.map(|(order, _)| Operand::new(3, order, all[2], self.dtype));
        ([made(0), made(1), made(2)], added)
    }

    /// The result's memory, before the product and after; `None` if the product is left to others.
    pub fn run(&self) -> Result<Option<[Vec<u8>; 2]>> {
        let ([left, right, out], added) = self.operands();
        let bytes = out.count * self.dtype.size();
        let before = download(&out.memory, bytes)?;
        let product = LibraryProduct {
            left: left.elements(),
            right: right.elements(),
            out: out.elements(),
            scale: Scalar::Float(self.scale),
            added: added
                .as_ref()
                .zip(self.added)
                .map(|(added, (_, factor))| (added.elements(), Scalar::Float(factor))),
            activation: self.activation,
        };
        let work = Work::on(DEVICE)?;
        // SAFETY: operands are on the device, and kept until their last use.
        let computed = unsafe { work.runtime().product(work.queue(), &product)? };
        for memory in [Some(&left), Some(&right), Some(&out), added.as_ref()].into_iter().flatten() {
            memory.memory.note_use(&work)?;
        }
        let after = download(&out.memory, bytes)?;
        if !computed {
            assert_eq!(before, after, "{self:?} is left, and was written");
        }
        Ok(computed.then_some([before, after]))
    }

    /// The number of the result at an index.
    pub fn expected(
        &self,
        added: Option<&Operand>,
        left: &Operand,
        right: &Operand,
        at: [i64; 3],
    ) -> Complex64 {
        let [stack, row, column] = at;
        let sum: Complex64 = (0..self.sizes[3])
            .map(|k| left.number(0, [stack, row, k]) * right.number(1, [stack, k, column]))
            .sum();
        let addend = added.zip(self.added).map(|(added, (_, factor))| added.number(3, at) * factor);
        let whole = sum * self.scale + addend.unwrap_or_default();
        match self.activation {
            None => whole,
            Some(Activation::Relu) => Complex64::from(whole.re.max(0.0)),
            Some(Activation::TanhGelu) => {
                let x = whole.re;
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
                Complex64::from(x / 2.0 * (1.0 + inner.tanh()))
            }
        }
    }

    /// Runs the product, and compares the whole memory of the result.
    #[track_caller]
    pub fn check(&self) {
        let [before, after] = self.run().unwrap().unwrap_or_else(|| panic!("{self:?} is left to others"));
        let ([left, right, out], added) = self.operands();
        let mut expected = before;
        let size = self.dtype.size();
        for at in indices(out.sizes) {
            let number = self.expected(added.as_ref(), &left, &right, at);
            let place = out.place(at) * size;
            expected[place..place + size].copy_from_slice(&encoded(&[number], self.dtype));
        }
        let [after, expected] = [after, expected].map(|bytes| without_signs_of_zeros(bytes, self.dtype));
        assert_same(&after, &expected, self.dtype, &format!("{self:?}"));
    }
}

/// Zeros have the sign of their last addend, which the order of sums decides.
fn without_signs_of_zeros(mut bytes: Vec<u8>, dtype: DType) -> Vec<u8> {
    let part = if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() };
    for number in bytes.chunks_exact_mut(part) {
        if let Some((0x80, rest)) = number.split_last()
            && rest.iter().all(|byte| *byte == 0)
        {
            number.fill(0);
        }
    }
    bytes
}
