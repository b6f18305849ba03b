//! Products in the terms of cuBLASLt, whose matrices are stored by columns.
//!
//! In: a product of operands of any strides. Out: its problem, or none if an operand is stored in another way. A result stored
//! by rows is the transpose of one stored by columns, and the product of the transposed factors in the other order. Must not
//! know functions of the library.

use std::ffi::c_int;

use opsmith_core::DType;
use opsmith_runtime::backend::{Activation, Elements, LibraryProduct};
use opsmith_runtime::{Complex32, Complex64, Element, Scalar};

use super::api::{self, EPILOGUE_BIAS, EPILOGUE_GELU, EPILOGUE_NONE, EPILOGUE_RELU};

/// Alignments beyond this do not matter to an algorithm.
const MOST_ALIGNED: usize = 256;

/// A stack of matrices stored by columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    /// Number of rows and columns.
    pub rows: i64,
    pub columns: i64,
    /// Elements from a column to the next.
    pub leading: i64,
    /// Elements from a matrix to the next.
    pub stack_stride: i64,
    /// Bytes by a multiple of which the address is aligned.
    pub alignment: u32,
}

/// A factor: a stack of matrices, of which the transposes are meant if it says so.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Factor {
    pub layout: Layout,
    pub is_transposed: bool,
}

/// The facts of a problem on which the choice of an algorithm depends.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The type of elements.
    pub element: c_int,
    /// The types of sums and of the numbers by which they are multiplied.
    pub compute: c_int,
    pub scale: c_int,
    pub epilogue: c_int,
    /// Alignment of the bias; 0 without one.
    pub bias_alignment: u32,
    pub stacks: i32,
    pub a: Factor,
    pub b: Factor,
    pub c: Layout,
    pub d: Layout,
}

/// A number by which a matrix is multiplied, in the type of sums.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C, align(16))]
pub struct Multiplier([u8; 16]);

impl Multiplier {
    pub const ZERO: Multiplier = Multiplier([0; 16]);

    fn of(scalar: Scalar, scale: c_int) -> Multiplier {
        let mut bytes = [0; 16];
        let mut put = |number: &[u8], at: usize| bytes[at..at + number.len()].copy_from_slice(number);
        match scale {
            api::REAL_64 => put(&f64::from_scalar(scalar).to_ne_bytes(), 0),
            api::COMPLEX_32 => {
                let number = Complex32::from_scalar(scalar);
                put(&number.re.to_ne_bytes(), 0);
                put(&number.im.to_ne_bytes(), 4);
            }
            api::COMPLEX_64 => {
                let number = Complex64::from_scalar(scalar);
                put(&number.re.to_ne_bytes(), 0);
                put(&number.im.to_ne_bytes(), 8);
            }
            _ => put(&f32::from_scalar(scalar).to_ne_bytes(), 0),
        }
        Multiplier(bytes)
    }

    /// Whether it is 0: the library then does not read the matrix, whose elements may be infinite.
    fn is_zero(self, scale: c_int) -> bool {
        let zero = Scalar::Int(0);
        let negative = Scalar::Float(-0.0);
        self == Multiplier::of(zero, scale) || self == Multiplier::of(negative, scale)
    }
}

/// `D = activation(alpha · A · B + beta · C + bias)`.
#[derive(Clone, Debug)]
pub struct Problem {
    pub key: Key,
    pub alpha: Multiplier,
    pub beta: Multiplier,
    pub a: *mut u8,
    pub b: *mut u8,
    pub c: *mut u8,
    pub d: *mut u8,
    /// Numbers of each row of D that are added in the epilogue.
    pub bias: Option<*mut u8>,
    /// Whether the addend has to be copied to D first, which is C too.
    pub is_copied: bool,
}

/// Types of elements, sums and multipliers.
fn types(dtype: DType, allows_tf32: bool) -> Option<[c_int; 3]> {
    let single = if allows_tf32 { api::COMPUTE_TF32 } else { api::COMPUTE_32 };
    Some(match dtype {
        DType::F32 => [api::REAL_32, single, api::REAL_32],
        DType::C64 => [api::COMPLEX_32, single, api::COMPLEX_32],
        DType::F16 => [api::REAL_16, api::COMPUTE_32, api::REAL_32],
        DType::BF16 => [api::BRAIN_16, api::COMPUTE_32, api::REAL_32],
        DType::F64 => [api::REAL_64, api::COMPUTE_64, api::REAL_64],
        DType::C128 => [api::COMPLEX_64, api::COMPUTE_64, api::COMPLEX_64],
        _ => return None,
    })
}

/// Sizes and strides of a stack of matrices: stack, row, column.
#[derive(Clone, Copy)]
struct Strided {
    start: *mut u8,
    sizes: [i64; 3],
    strides: [i64; 3],
}

impl Strided {
    fn of(elements: &Elements<'_>, dtype: DType) -> Option<Strided> {
        let (sizes, strides) = (elements.sizes.try_into().ok()?, elements.strides.try_into().ok()?);
        (elements.dtype == dtype).then_some(Strided { start: elements.start, sizes, strides })
    }

    fn transposed(self) -> Strided {
        let turned = |[stack, row, column]: [i64; 3]| [stack, column, row];
        Strided { sizes: turned(self.sizes), strides: turned(self.strides), ..self }
    }

    /// The layout, if the matrices are stored by columns. A dimension of one element may have any stride.
    fn by_columns(&self) -> Option<Layout> {
        let ([stacks, rows, columns], [stack, row, column]) = (self.sizes, self.strides);
        let leading = if columns == 1 { rows } else { column };
        let stack_stride = if stacks == 1 { 0 } else { stack };
        let fits = (rows == 1 || row == 1) && leading >= rows && stack_stride >= 0;
        let alignment = alignment(self.start);
        fits.then_some(Layout { rows, columns, leading, stack_stride, alignment })
    }

    fn factor(&self) -> Option<Factor> {
        let plain = self.by_columns().map(|layout| Factor { layout, is_transposed: false });
        plain.or_else(|| self.transposed().by_columns().map(|layout| Factor { layout, is_transposed: true }))
    }

    fn is_column(&self) -> bool {
        self.sizes[2] == 1 && self.strides[1] == 1
    }
}

fn alignment(start: *mut u8) -> u32 {
    let bits = start.addr() | MOST_ALIGNED;
    1 << bits.trailing_zeros()
}

/// The addend of a problem.
enum Addend {
    None,
    Bias(*mut u8),
    Matrix(*mut u8, Layout),
    Copied,
}

impl Addend {
    /// `added` has the sizes of `result`, which is stored by columns.
    fn of(added: &Strided, is_one: bool, may_be_bias: bool) -> Addend {
        let ([stacks, rows, columns], [stack, row, column]) = (added.sizes, added.strides);
        let is_shared = (stacks == 1 || stack == 0) && (columns == 1 || column == 0);
        if may_be_bias && is_one && is_shared && (rows == 1 || row == 1) {
            return Addend::Bias(added.start);
        }
        match added.by_columns() {
            Some(layout) => Addend::Matrix(added.start, layout),
            None => Addend::Copied,
        }
    }
}

impl Problem {
    /// The problem of a product; `None` if the library does not compute it. A vector that is added to each row or column is a
    /// bias only if `allows_bias`.
    pub fn of(product: &LibraryProduct<'_>, allows_tf32: bool, allows_bias: bool) -> Option<Problem> {
        let dtype = product.out.dtype;
        let [element, compute, scale] = types(dtype, allows_tf32)?;
        let part = |elements| Strided::of(elements, dtype);
        let (mut left, mut right) = (part(&product.left)?, part(&product.right)?);
        let mut out = part(&product.out)?;
        let mut added = match &product.added {
            Some((added, factor)) => Some((part(added)?, Multiplier::of(*factor, scale))),
            None => None,
        };
        if !out.is_column() && out.transposed().by_columns().is_some() {
            (left, right) = (right.transposed(), left.transposed());
            out = out.transposed();
            added = added.map(|(added, factor)| (added.transposed(), factor));
        }
        let [stacks, rows, columns] = out.sizes;
        let alpha = Multiplier::of(product.scale, scale);
        let is_empty = rows == 0 || columns == 0 || stacks == 0 || left.sizes[2] == 0;
        if is_empty || alpha.is_zero(scale) {
            return None;
        }
        let d = out.by_columns().filter(|d| stacks == 1 || d.stack_stride > 0)?;
        let allows_bias = allows_bias && !dtype.is_complex();
        let one = Multiplier::of(Scalar::Int(1), scale);
        let addend =
            added.map_or(Addend::None, |(added, factor)| Addend::of(&added, factor == one, allows_bias));
        let beta = added.map_or(Multiplier::ZERO, |(_, factor)| factor);
        let (c, c_layout, beta, bias) = match addend {
            Addend::None => (out.start, d, Multiplier::ZERO, None),
            Addend::Bias(bias) => (out.start, d, Multiplier::ZERO, Some(bias)),
            Addend::Matrix(start, layout) => (start, layout, beta, None),
            Addend::Copied => (out.start, d, beta, None),
        };
        let key = Key {
            element,
            compute,
            scale,
            epilogue: epilogue(product.activation, bias.is_some()),
            bias_alignment: bias.map_or(0, alignment),
            stacks: i32::try_from(stacks).ok()?,
            a: left.factor()?,
            b: right.factor()?,
            c: c_layout,
            d,
        };
        let is_copied = matches!(addend, Addend::Copied);
        Some(Problem { key, alpha, beta, a: left.start, b: right.start, c, d: out.start, bias, is_copied })
    }
}

fn epilogue(activation: Option<Activation>, has_bias: bool) -> c_int {
    let activation = match activation {
        None => 0,
        Some(Activation::Relu) => EPILOGUE_RELU,
        Some(Activation::TanhGelu) => EPILOGUE_GELU,
    };
    let bias = if has_bias { EPILOGUE_BIAS } else { 0 };
    if activation | bias == 0 { EPILOGUE_NONE } else { activation | bias }
}
