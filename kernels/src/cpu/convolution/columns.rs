//! Convolution as a matrix product: the elements of a window at each position become a column.
//!
//! In: a plane a channel. Out: a row for each channel and element of the window, a column for each
//! position; elements of the border are zeros. Adding columns back to planes is the transpose.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::{Element, Scratch};

use crate::window::{MOST, Window};

/// Planes that a window slides over, and its positions.
#[derive(Clone, Copy)]
pub(crate) struct Sliding {
    pub window: Window,
    pub input: [i64; MOST],
    pub output: [i64; MOST],
}

/// Part of a row of positions along the last dimension for which one element of the window lies inside
/// the input.
struct Stretch {
    /// Positions that see the border before.
    before: usize,
    /// Positions that see the input.
    inside: usize,
    /// The first of these elements in its plane.
    start: usize,
}

impl Sliding {
    /// Elements of a plane.
    pub fn plane(&self) -> usize {
        self.input.iter().product::<i64>() as usize
    }

    /// Elements of the window.
    pub fn elements(&self) -> usize {
        self.window.kernel.iter().product::<i64>() as usize
    }

    /// Positions of the window.
    pub fn positions(&self) -> usize {
        self.output.iter().product::<i64>() as usize
    }

    /// Positions in one row along the last dimension.
    pub fn row(&self) -> usize {
        self.output[2] as usize
    }

    /// Whether the columns are the planes themselves.
    pub fn is_identity(&self) -> bool {
        self.elements() == 1 && self.input == self.output && self.window.padding == [0; MOST]
    }

    /// Calls `body` for each element of the window and each of the given rows of positions: with the
    /// element's number, the row's number among these, and the stretch inside.
    fn for_each_row(&self, rows: std::ops::Range<usize>, mut body: impl FnMut(usize, usize, Stretch)) {
        let [depth, height, width] = self.input;
        let Window { kernel, stride, dilation, .. } = self.window;
        let mut element = 0;
        for a in 0..kernel[0] {
            for b in 0..kernel[1] {
                for c in 0..kernel[2] {
                    // Positions whose element lies inside: at least first, below end.
                    let start = self.window.start(2, 0) + c * dilation[2];
                    let first = ((-start).max(0) + stride[2] - 1) / stride[2];
                    let end = ((width - start).max(0) + stride[2] - 1) / stride[2];
                    let (first, end) = (first.min(self.output[2]), end.clamp(0, self.output[2]));
                    for (number, row) in rows.clone().enumerate() {
                        let (i, j) = (row as i64 / self.output[1], row as i64 % self.output[1]);
                        let z = self.window.start(0, i) + a * dilation[0];
                        let y = self.window.start(1, j) + b * dilation[1];
                        let outside = z < 0 || z >= depth || y < 0 || y >= height || first >= end;
                        body(
                            element,
                            number,
                            if outside {
                                Stretch { before: self.row(), inside: 0, start: 0 }
                            } else {
                                Stretch {
                                    before: first as usize,
                                    inside: (end - first) as usize,
                                    start: ((z * height + y) * width + start + first * stride[2]) as usize,
                                }
                            },
                        );
                    }
                    element += 1;
                }
            }
        }
    }

    /// Writes the columns of some rows of positions: `columns` has a row for each channel's elements of
    /// the window and a column for each of these positions.
    pub fn gather<C: Element>(&self, planes: &[C], rows: std::ops::Range<usize>, columns: &mut Scratch<C>) {
        let channels = planes.len() / self.plane().max(1);
        columns.resize(channels * self.elements() * rows.len() * self.row(), C::default());
        self.gather_into(planes, rows, columns);
    }

    /// As [`gather`](Self::gather), to columns of this size.
    pub fn gather_into<C: Element>(&self, planes: &[C], rows: std::ops::Range<usize>, columns: &mut [C]) {
        let width = rows.len() * self.row();
        let step = self.window.stride[2] as usize;
        let each = planes.chunks_exact(self.plane()).zip(columns.chunks_exact_mut(self.elements() * width));
        for (plane, columns) in each {
            self.for_each_row(rows.clone(), |element, row, stretch| {
                let target = &mut columns[element * width + row * self.row()..][..self.row()];
                let (before, rest) = target.split_at_mut(stretch.before);
                let (target, behind) = rest.split_at_mut(stretch.inside);
                before.fill(C::default());
                behind.fill(C::default());
                if step == 1 {
                    target.copy_from_slice(&plane[stretch.start..stretch.start + stretch.inside]);
                } else if let Some(source) = plane.get(stretch.start..) {
                    for (target, &value) in target.iter_mut().zip(source.iter().step_by(step)) {
                        *target = value;
                    }
                }
            });
        }
    }

    /// Adds the columns of some rows of positions to the planes they came from; `held` rounds every sum.
    pub fn scatter<C: Arithmetic>(
        &self,
        columns: &[C],
        rows: std::ops::Range<usize>,
        planes: &mut [C],
        held: &impl Fn(C) -> C,
    ) {
        let width = rows.len() * self.row();
        let step = self.window.stride[2] as usize;
        let each = planes.chunks_exact_mut(self.plane()).zip(columns.chunks_exact(self.elements() * width));
        for (plane, columns) in each {
            self.for_each_row(rows.clone(), |element, row, stretch| {
                let source = element * width + row * self.row() + stretch.before;
                let source = &columns[source..source + stretch.inside];
                let Some(target) = plane.get_mut(stretch.start..) else { return };
                for (target, &value) in target.iter_mut().step_by(step).zip(source) {
                    *target = held(Arithmetic::add(*target, value));
                }
            });
        }
    }
}
