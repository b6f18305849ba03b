//! Rows of operands as loops want them: elements of the loop's own types, one after the other.
//!
//! In: a row at any steps, of which operands may be 16-bit floats where the loop computes in `f32`. Out: calls of the loop
//! over blocks, with copies of the elements that lie otherwise. So each loop is compiled once, for the layout that is fast,
//! and one loop serves `f32` and both 16-bit floats; copying is the same code for all of them. Must know no operator.

use opsmith_core::DType;

use super::loops::Loop;
use super::slots::{Block, Slot, load, load_transposed, store, store_transposed};
use super::{Row, Rows, Visit, for_each_rows};
use crate::axes::TILE_BYTES;
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Bytes of a copy: those of three operands stay in the first cache.
pub(super) const BLOCK: usize = 4096;

/// The part of a block, a fourth, that is filled with an element that is repeated along a row.
const REPEATED: usize = 4;

/// Most operands that are transposed in blocks: others are copied row by row.
const TRANSPOSED: usize = 2;

/// The operands of a loop, and the size of the blocks that they are copied to.
pub(super) struct Blocks<const N: usize> {
    slots: [Slot; N],
    /// Most elements of a block.
    length: usize,
}

impl<const N: usize> Blocks<N> {
    /// For a loop that wants these dtypes.
    pub fn new(operands: &[&Tensor; N], wanted: [DType; N]) -> Blocks<N> {
        Blocks::of(operands.map(Tensor::dtype), wanted)
    }

    /// As [`new`](Self::new), for operands of these dtypes.
    pub fn of(dtypes: [DType; N], wanted: [DType; N]) -> Blocks<N> {
        let slot = |index: usize| Slot { dtype: dtypes[index], step: wanted[index].size() as isize };
        let largest = wanted.iter().map(|dtype| dtype.size()).max().unwrap_or(1);
        Blocks { slots: std::array::from_fn(slot), length: BLOCK / largest }
    }

    /// Most elements of a tile.
    pub fn area(&self) -> usize {
        TILE_BYTES / BLOCK * self.length
    }

    /// Runs a loop over rows.
    ///
    /// # Safety
    /// The elements of the rows are valid for reads, those of the first operand for writes; they have no other writer. An
    /// operand that shares memory with the first has the same elements. If neighbours of an operand are of different rows, they are at
    /// most [`area`](Self::area).
    #[inline]
    pub unsafe fn run(&self, rows: &Rows<'_>, body: Loop<'_>) {
        let copies = self.copies(&rows.first);
        // SAFETY: the caller's promises.
        unsafe {
            if copies.contains(&true) && (0..N).any(|index| self.is_transposed(index, rows)) {
                self.run_tile(rows, body);
            } else {
                self.run_rows(rows, copies, body);
            }
        }
    }

    /// As [`run`](Self::run), row by row.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    #[inline]
    unsafe fn run_rows(&self, rows: &Rows<'_>, copies: [bool; N], body: Loop<'_>) {
        // SAFETY: the caller's promises; without copies, the rows are as the loop wants them.
        unsafe {
            if let Some(body) = self.without_copies(rows, copies, body) {
                let mut pointers = *rows.first.pointers;
                for _ in 0..rows.count {
                    body.run(&pointers, rows.first.length);
                    rows.advance::<N>(&mut pointers);
                }
            } else if (0..N).all(|index| !copies[index] || index > 0 && rows.first.strides[index] == 0) {
                self.run_repeated(rows, copies, body);
            } else {
                rows.for_each(|row| self.run_copied(&row, copies, body));
            }
        }
    }

    /// The loop over the rows as they are: itself if nothing is copied, or the one that repeats the only operand that would be.
    #[inline]
    fn without_copies<'a>(&self, rows: &Rows<'_>, copies: [bool; N], body: Loop<'a>) -> Option<Loop<'a>> {
        let mut copied = (0..N).filter(|&index| copies[index]);
        let Some(index) = copied.next() else { return Some(body) };
        let Slot { dtype, step } = self.slots[index];
        let is_repeated = rows.first.strides[index] == 0 && dtype.size() as isize == step;
        if is_repeated && copied.next().is_none() { body.repeating(index) } else { None }
    }

    /// Whether neighbours of an operand are of different rows.
    #[inline]
    fn is_transposed(&self, index: usize, rows: &Rows<'_>) -> bool {
        let (unit, step) = (self.slots[index].dtype.size() as isize, rows.first.strides[index]);
        rows.count > 1 && rows.first.length > 1 && rows.steps[index] == unit && step != unit && step != 0
    }

    /// Runs a loop over rows of a tile: operands whose neighbours are of different rows are transposed.
    ///
    /// # Safety
    /// As [`run`](Self::run), of at most [`area`] elements.
    #[inline(never)]
    unsafe fn run_tile(&self, rows: &Rows<'_>, body: Loop<'_>) {
        let blocks: [Block<TILE_BYTES>; TRANSPOSED] = [const { Block::new() }; TRANSPOSED];
        let transposed = (0..N).filter(|&index| self.is_transposed(index, rows));
        let (mut pointers, mut strides, mut steps) = (*rows.first.pointers, *rows.first.strides, *rows.steps);
        // In blocks, elements have the loop's types and rows follow each other.
        let mut slots = self.slots;
        for (index, block) in transposed.zip(&blocks) {
            let (slot, block) = (self.slots[index], block.pointer());
            if index != 0 {
                // SAFETY: the elements of the rows are valid for reads, and the block has room for as many.
                unsafe { load_transposed(slot, pointers[index], strides[index], block, rows) };
            }
            slots[index] = Slot { dtype: slot.wanted(), ..slot };
            (pointers[index], strides[index]) = (block, slot.step);
            steps[index] = slot.step * rows.first.length as isize;
        }
        let first = Row { pointers: &pointers, strides: &strides, ..rows.first };
        let moved = Blocks { slots, length: self.length };
        let copies = moved.copies(&first);
        // SAFETY: the rows are those of the operands or of their blocks.
        unsafe { moved.run_rows(&Rows { first, count: rows.count, steps: &steps }, copies, body) };
        if pointers[0] != rows.first.pointers[0] {
            let (to, step) = (rows.first.pointers[0], rows.first.strides[0]);
            // SAFETY: the loop wrote as many elements into the block, and those of the rows are valid for writes.
            unsafe { store_transposed(self.slots[0], pointers[0], to, step, rows) };
        }
    }

    /// Which operands of a row are copied: those whose elements have another type or step than the loop wants, and those
    /// that the loop writes, too, since it reads no element that it writes.
    #[inline]
    fn copies(&self, row: &Row<'_>) -> [bool; N] {
        let copies: [bool; N] = std::array::from_fn(|index| {
            let Slot { dtype, step } = self.slots[index];
            dtype.size() as isize != step || row.length > 1 && row.strides[index] != step
        });
        std::array::from_fn(|index| {
            copies[index] || !copies[0] && index > 0 && row.pointers[index] == row.pointers[0]
        })
    }

    /// Runs a loop over rows of which all copied operands are one element in a row: a short block of it serves the whole row.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    #[inline(never)]
    unsafe fn run_repeated(&self, rows: &Rows<'_>, copies: [bool; N], body: Loop<'_>) {
        let blocks: [Block<BLOCK>; N] = [const { Block::new() }; N];
        let length = rows.first.length;
        let most = (self.length / REPEATED).min(length);
        let mut steps = [0; N];
        for index in (0..N).filter(|index| !copies[*index]) {
            steps[index] = rows.first.strides[index] * most as isize;
        }
        let mut starts = *rows.first.pointers;
        for row in 0..rows.count {
            let mut pointers = starts;
            for index in (1..N).filter(|index| copies[*index]) {
                let block = blocks[index].pointer();
                pointers[index] = block;
                // One element of all rows is in its block already.
                if row == 0 || rows.steps[index] != 0 {
                    // SAFETY: the element is valid for reads, and the block has room for so many of the loop's type.
                    unsafe { load(self.slots[index], starts[index], 0, block, most) };
                }
            }
            let mut left = length;
            loop {
                // SAFETY: the elements lie in the row or in blocks, as the loop wants them.
                unsafe { body.run(&pointers, most.min(left)) };
                if left <= most {
                    break;
                }
                left -= most;
                for (pointer, step) in pointers.iter_mut().zip(steps) {
                    *pointer = pointer.wrapping_offset(step);
                }
            }
            rows.advance::<N>(&mut starts);
        }
    }

    /// Runs a loop over a row of which some operands are copied.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn run_copied(&self, row: &Row<'_>, copies: [bool; N], body: Loop<'_>) {
        let blocks: [Block<BLOCK>; N] = [const { Block::new() }; N];
        let mut pointers = *row.pointers;
        let mut start = 0;
        while start < row.length {
            let length = self.length.min(row.length - start);
            for index in (0..N).filter(|index| copies[*index]) {
                let block = blocks[index].pointer();
                pointers[index] = block;
                let step = row.strides[index];
                // A block of one element again and again holds it already.
                if index == 0 || step == 0 && start != 0 {
                    continue;
                }
                // SAFETY: the elements of the row are valid for reads, as the caller promises, and the block has room for
                // as many of the loop's type.
                unsafe {
                    load(
                        self.slots[index],
                        row.pointers[index].offset(step * start as isize),
                        step,
                        block,
                        length,
                    )
                };
            }
            for index in (0..N).filter(|index| !copies[*index]) {
                // SAFETY: the place lies in the row, or is one past its end.
                pointers[index] = unsafe { row.pointers[index].offset(row.strides[index] * start as isize) };
            }
            // SAFETY: the elements lie in the row or in blocks, as the loop wants them.
            unsafe { body.run(&pointers, length) };
            if copies[0] {
                let step = row.strides[0];
                // SAFETY: the loop wrote as many elements into the block, and those of the row are valid for writes.
                unsafe {
                    store(
                        self.slots[0],
                        pointers[0],
                        row.pointers[0].offset(step * start as isize),
                        step,
                        length,
                    )
                };
            }
            start += length;
        }
    }
}

/// Runs a loop over the elements of two tensors, the first of which it writes, in the dtypes that it wants.
///
/// # Errors
/// If the second does not broadcast to the first.
///
/// # Safety
/// The loop is one over elements of the wanted dtypes: those of the tensors, or the dtype that one computes in. The borrows are held, and elements that both tensors have are the same.
#[inline(never)]
pub(crate) unsafe fn map_any(
    target: &Tensor,
    source: &Tensor,
    wanted: [DType; 2],
    body: Loop<'_>,
) -> Result<()> {
    let operands = [target, source];
    let blocks = Blocks::new(&operands, wanted);
    // SAFETY: the plan keeps all rows inside the tensors, and the caller promises the rest.
    for_each_rows(&operands, blocks.area(), Visit::InThreads(&|rows| unsafe { blocks.run(rows, body) }))
}

/// Rejects operands of dtypes that blocks do not convert to those that a loop wants: those that compute in another become it.
///
/// # Errors
/// If there is one.
pub(super) fn check_converted(operands: &[&Tensor], wanted: &[DType]) -> Result<()> {
    for (tensor, wanted) in operands.iter().zip(wanted) {
        if tensor.dtype() != *wanted && tensor.dtype().to_compute() != *wanted {
            return Err(other_dtype(tensor.dtype(), *wanted));
        }
    }
    Ok(())
}

#[cold]
fn other_dtype(tensor: DType, kernel: DType) -> Error {
    Error::dtype(format!("the kernel computes with {kernel}, and was given {tensor}"))
        .with_help("install it for the dtype that it is written for")
}

#[cfg(test)]
mod tests {
    use opsmith_core::DType;

    use crate::arg::Arg;
    use crate::element::Element;
    use crate::layout::Layout;
    use crate::library::Library;
    use crate::op::{KernelCall, OpDef, Schema};
    use crate::pointwise::natural::run_by_blocks;
    use crate::pointwise::{Loop, MAX_OPERANDS, Versions, map2, map2_light};
    use crate::tensor::Tensor;
    use half::{bf16, f16};

    static OP: OpDef =
        OpDef::new("op", Schema { text: "", args: &[], returns: &[] }, "tests.yaml:1", &Library::EMPTY);

    /// Elements of rows, in an order that is not that of memory if `transposed`.
    fn rows<T: Element>([count, length]: [i64; 2], first: usize, transposed: bool) -> Tensor {
        let elements: Vec<T> = (0..(count * length) as usize)
            .map(|index| T::from_scalar(((index * 7 + first) as f64 / 16.0 % 50.0).into()))
            .collect();
        let sizes = [count, length];
        let tensor = Tensor::from_slice(&elements, &sizes).unwrap();
        if !transposed {
            return tensor;
        }
        let layout = Layout { sizes: sizes[..].into(), strides: [1, count][..].into(), offset: 0 };
        tensor.with_layout(&layout).unwrap()
    }

    /// Rows that are longer than a block, and more of them than a tile has; one of each kind under Miri.
    const SIZES: [[i64; 2]; 3] =
        if cfg!(miri) { [[1, 4200], [40, 36], [70, 3]] } else { [[3, 4200], [256, 290], [1024, 5]] };

    /// Adds with a loop over `C`, and compares with sums of single elements of `T`.
    fn check<C: Element + std::ops::Add<Output = C>, T: Element<Compute = C>>(
        a: &Tensor,
        b: &Tensor,
        out: &Tensor,
    ) {
        let (left, right) = (a.to_vec::<T>().unwrap(), b.to_vec::<T>().unwrap());
        let at = |elements: &[T], index: usize| elements[index % elements.len()].to_compute();
        let expected: Vec<T> = (0..out.numel() as usize)
            .map(|index| T::from_compute(at(&left, index) + at(&right, index)))
            .collect();
        let args = [Arg::Tensor(a), Arg::Tensor(b)];
        // SAFETY: the tensors are this test's alone; those that share memory are the same elements.
        let call = unsafe { KernelCall::new(&OP, &args, std::slice::from_ref(out)).with_elements() };
        map2::<C, C, C, _>(&call, [0, 1], |a, b| a + b).unwrap();
        assert_eq!(out.to_vec::<T>().unwrap(), expected);
    }

    fn check_layouts<C: Element + std::ops::Add<Output = C>, T: Element<Compute = C>>() {
        for sizes in SIZES {
            for (a, b, out) in
                [(false, false, false), (false, true, false), (true, false, true), (true, true, false)]
            {
                check::<C, T>(&rows::<T>(sizes, 1, a), &rows::<T>(sizes, 5, b), &rows::<T>(sizes, 0, out));
            }
        }
        let number = Tensor::from_slice(&[T::from_scalar(2.5.into())], &[]).unwrap();
        for transposed in [false, true] {
            let same = rows::<T>(SIZES[0], 3, transposed);
            check::<C, T>(&same, &rows::<T>(SIZES[0], 5, true), &same);
            check::<C, T>(&same, &number, &same);
        }
    }

    #[test]
    fn a_loop_over_f32_serves_16_bit_floats_in_every_layout() {
        check_layouts::<f32, f16>();
        check_layouts::<f32, bf16>();
    }

    #[test]
    fn elements_at_any_step_are_copied_to_the_loop_and_back() {
        check_layouts::<f32, f32>();
        check_layouts::<f64, f64>();
        check_layouts::<i16, i16>();
        check_layouts::<crate::Complex64, crate::Complex64>();
    }

    #[test]
    fn a_loop_over_16_bit_floats_takes_them_as_they_are() {
        for transposed in [false, true] {
            let (a, b) = (rows::<f16>(SIZES[0], 1, transposed), rows::<f16>(SIZES[0], 5, transposed));
            let out = rows::<f16>(SIZES[0], 0, false);
            let args = [Arg::Tensor(&a), Arg::Tensor(&b)];
            // SAFETY: the arguments and the output live as long as the call, and nothing else uses them.
            let call = unsafe { KernelCall::new(&OP, &args, std::slice::from_ref(&out)) };
            map2(&call, [0, 1], |a: f16, b: f16| a + b).unwrap();
            let sums = std::iter::zip(a.to_vec::<f16>().unwrap(), b.to_vec::<f16>().unwrap());
            assert_eq!(out.to_vec::<f16>().unwrap(), sums.map(|(a, b)| a + b).collect::<Vec<_>>());
        }
    }

    fn check_repeated<T: Element + std::ops::Sub<Output = T>>(count: i64, length: i64) {
        let (row, column) = (rows::<T>([count, length], 1, false), rows::<T>([count, 1], 5, false));
        let (rows_of, columns) = (row.to_vec::<T>().unwrap(), column.to_vec::<T>().unwrap());
        let out = rows::<T>([count, length], 0, false);
        for column_is_left in [false, true] {
            let args = if column_is_left { [&column, &row] } else { [&row, &column] }.map(Arg::Tensor);
            // SAFETY: the tensors are this test's alone.
            let call = unsafe { KernelCall::new(&OP, &args, std::slice::from_ref(&out)).with_elements() };
            map2_light::<T, T, T, _>(&call, [0, 1], |a, b| a - b).unwrap();
            let expected: Vec<T> = (0..(count * length) as usize)
                .map(|at| (rows_of[at], columns[at / length as usize]))
                .map(|(row, column)| if column_is_left { column - row } else { row - column })
                .collect();
            assert_eq!(out.to_vec::<T>().unwrap(), expected);
        }
    }

    #[test]
    fn one_element_serves_a_row() {
        for [count, length] in SIZES {
            check_repeated::<f32>(count, length);
            check_repeated::<f64>(count, length);
            check_repeated::<i32>(count, length);
        }
    }

    #[test]
    fn a_result_past_the_caches_is_that_of_any_loop() {
        /// # Safety
        /// As [`Loop::run`], of three operands of `f32`.
        unsafe fn add_row(_: &(), pointers: &[*mut u8; MAX_OPERANDS], length: usize) {
            let [out, a, b] = [0, 1, 2].map(|operand| pointers[operand].cast::<f32>());
            // SAFETY: the caller's promise.
            (0..length).for_each(|at| unsafe { out.add(at).write(*a.add(at) + *b.add(at)) });
        }
        // SAFETY: the loop is one over these operands.
        let body = unsafe { Loop::new(&(), const { &Versions::one(add_row) }) };
        for length in [1, 15, 1024, 5000] {
            let a: Vec<f32> = (0..length).map(|at| at as f32).collect();
            for is_input in [false, true] {
                let mut out = a.clone();
                let mut pointers = [std::ptr::null_mut(); MAX_OPERANDS];
                let first = if is_input { out.as_mut_ptr() } else { a.as_ptr().cast_mut() };
                (pointers[0], pointers[1], pointers[2]) =
                    (out.as_mut_ptr().cast(), first.cast(), a.as_ptr().cast_mut().cast());
                // SAFETY: the vectors have as many elements, and are this test's alone.
                unsafe { run_by_blocks(&pointers, &[DType::F32; 3], length, body) };
                assert_eq!(out, a.iter().map(|element| 2.0 * element).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_loop_refuses_other_dtypes() {
        let (a, out) = (Tensor::of(&[1.0f64]), Tensor::of(&[1.0f32]));
        let args = [Arg::Tensor(&a), Arg::Tensor(&a)];
        // SAFETY: the tensors are this test's alone.
        let call = unsafe { KernelCall::new(&OP, &args, std::slice::from_ref(&out)).with_elements() };
        let error = map2::<f32, f32, f32, _>(&call, [0, 1], |a, b| a + b).unwrap_err();
        assert!(error.to_string().contains("computes with float32, and was given float64"), "{error}");
    }
}
