//! Parameters of the kernels of `softmax.cuh` and `layer_norm.cuh`.
//!
//! In: sizes and strides. Out: geometries and the blocks of their launches. Must not know the rule of a line.

use std::ffi::c_void;

use opsmith_runtime::DType;

/// The most dimensions of a geometry.
pub(super) const MOST_DIMS: usize = 8;
/// Threads of a block of all these kernels.
pub(super) const THREADS: u64 = 256;

/// Blocks and threads of a launch, x and y.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Blocks.
    pub blocks: u32,
    /// Threads of a block.
    pub threads: [u32; 2],
}

/// The parameter of kernels for lines of N operands, the output first, field by field as in `softmax.cuh`.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Lines<const N: usize> {
    /// The number of lines.
    pub lines: u64,
    /// Elements of a line.
    pub size: u64,
    /// The number of dimensions that count lines.
    pub dims: u32,
    /// 1 if the threads of a row of a block have one line, 0 if those of a column do.
    pub along_x: u32,
    /// Sizes of the dimensions that count lines, the innermost last.
    pub sizes: [u64; MOST_DIMS],
    /// Their strides in elements, of each operand.
    pub strides: [[i64; MOST_DIMS]; N],
    /// The step along a line in elements, of each operand.
    pub steps: [i64; N],
    /// Addresses of the operands' first elements.
    pub pointers: [*const c_void; N],
}

/// The elements of a chunk of `chunks.cuh`, 16 bytes.
fn chunk_of(dtype: DType) -> u64 {
    (16 / dtype.size() as u64).max(1)
}

/// Threads of a block that have one line of so many elements, a power of two.
fn threads_of_line(size: u64, chunk: u64) -> u64 {
    size.div_ceil(chunk).clamp(1, THREADS).next_power_of_two()
}

impl<const N: usize> Lines<N> {
    /// The lines along a dimension of operands with the same sizes, without addresses, and their launch. `None` if there are
    /// more than eight other dimensions, or too many lines for a launch.
    pub fn along(dim: usize, sizes: &[i64], strides: [&[i64]; N]) -> Option<(Lines<N>, Shape)> {
        let size = sizes.get(dim).map_or(1, |&size| size as u64);
        let mut lines = Lines {
            lines: 1,
            size,
            dims: 0,
            along_x: 1,
            sizes: [0; MOST_DIMS],
            strides: [[0; MOST_DIMS]; N],
            steps: strides.map(|strides| strides.get(dim).copied().unwrap_or(0)),
            pointers: [std::ptr::null(); N],
        };
        let mut nearest = u64::MAX;
        for other in (0..sizes.len()).filter(|&other| other != dim && sizes[other] != 1) {
            let place = lines.dims as usize;
            *lines.sizes.get_mut(place)? = sizes[other] as u64;
            lines.lines *= sizes[other] as u64;
            for (operand, strides) in strides.iter().enumerate() {
                lines.strides[operand][place] = strides[other];
            }
            nearest = nearest.min(strides[N - 1][other].unsigned_abs());
            lines.dims += 1;
        }
        let along_x = lines.steps[N - 1].unsigned_abs() < nearest;
        lines.along_x = u32::from(along_x);
        let shape = lines.shape(1)?;
        Some((lines, shape))
    }

    /// The launch of kernels whose threads have chunks of lines of elements of this type (`chunks.cuh`); `None` if there are too many
    /// lines for one.
    pub fn in_chunks(&self, dtype: DType) -> Option<Shape> {
        self.shape(chunk_of(dtype))
    }

    /// The launch in which a thread has `chunk` neighbouring elements of a line.
    fn shape(&self, chunk: u64) -> Option<Shape> {
        let along_x = self.along_x != 0;
        let x = if along_x { threads_of_line(self.size, chunk) } else { 32 };
        let teams = if along_x { THREADS / x } else { x };
        let blocks =
            u32::try_from(self.lines.div_ceil(teams)).ok().filter(|&blocks| blocks <= i32::MAX as u32)?;
        Some(Shape { blocks, threads: [x as u32, (THREADS / x) as u32] })
    }
}

/// The parameter of the kernels of `layer_norm.cuh`, field by field.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct Normalisation {
    /// The number of rows.
    pub rows: u64,
    /// Elements of a row.
    pub size: u64,
    /// The number added to the mean square.
    pub eps: f64,
    /// Blocks that share a column's sums.
    pub splits: u32,
    /// Zero.
    pub padding: u32,
    /// The address of the rows.
    pub input: *const c_void,
    /// The address of the gradient of the output.
    pub grad: *const c_void,
    /// The address of the weight, or null.
    pub weight: *const c_void,
    /// The address of the bias, or null.
    pub bias: *const c_void,
    /// The address of the means, or null.
    pub mean: *mut c_void,
    /// The address of the reciprocal deviations, or null.
    pub rstd: *mut c_void,
    /// The address of the output, or of the gradient of the input.
    pub out: *mut c_void,
    /// The address of `2 * splits * size` numbers of the compute type.
    pub partials: *mut c_void,
    /// The address of the gradient of the weight, or null.
    pub grad_weight: *mut c_void,
    /// The address of the gradient of the bias, or null.
    pub grad_bias: *mut c_void,
}

/// Rows that a thread sums before another block is worth while.
const ROWS_OF_A_THREAD: u64 = 16;

impl Normalisation {
    /// Rows, without addresses.
    pub fn of_rows(rows: u64, size: u64, eps: f64) -> Normalisation {
        let (null, nowhere) = (std::ptr::null(), std::ptr::null_mut());
        Normalisation {
            rows,
            size,
            eps,
            splits: (rows / (8 * ROWS_OF_A_THREAD)).clamp(1, 64) as u32,
            padding: 0,
            input: null,
            grad: null,
            weight: null,
            bias: null,
            mean: nowhere,
            rstd: nowhere,
            out: nowhere,
            partials: nowhere,
            grad_weight: nowhere,
            grad_bias: nowhere,
        }
    }

    /// The launch of the kernels with a team for each row, of elements of this type; `None` if rows are too many for one.
    pub fn of_each_row(&self, dtype: DType) -> Option<Shape> {
        let x = threads_of_line(self.size, chunk_of(dtype));
        let blocks = u32::try_from(self.rows.div_ceil(THREADS / x))
            .ok()
            .filter(|&blocks| blocks <= i32::MAX as u32)?;
        Some(Shape { blocks, threads: [x as u32, (THREADS / x) as u32] })
    }

    /// The launch of `OPSMITH_NORMALISE_FACTORS`' kernel, whose grid y is `splits`; `None` if a row is too long for one.
    pub fn of_columns(&self) -> Option<Shape> {
        let blocks =
            u32::try_from(self.size.div_ceil(32)).ok().filter(|&blocks| blocks <= i32::MAX as u32)?;
        Some(Shape { blocks, threads: [32, 8] })
    }
}
