//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
//!
//! Source: Householder's reduction to a tridiagonal matrix, whose eigenvectors are found by halves (`divided`), and eigenvalues alone
//! by the implicit QL algorithm (Bowdler, Martin, Reinsch and Wilkinson 1968); both in double precision.

use opsmith_runtime::simd::widest;
use opsmith_runtime::{Error, Result, Scratch, View, ViewMut, parallel};

use super::matrix::{Mat, add_scaled, inner, rotate};
use super::number::{Field, Real};
use super::orthogonal::reflection;
use super::reflectors::Reflectors;
use super::stack::Stack;
use super::{divided, expect_square};
use crate::cpu::linalg::product::MatrixMut;

/// The eigenvalues in ascending order, and with `compute_v` the eigenvectors as columns, of each matrix, of which the lower
/// (`uplo` is `L`) or upper (`U`) triangle is read. The largest element of an eigenvector is positive. A matrix that is not
/// finite gives NaN.
///
/// # Errors
/// If the matrices are not square, `uplo` is another, or the algorithm does not converge.
pub fn eigh<T: Field>(
    a: View<'_, T>,
    uplo: &str,
    compute_v: bool,
    mut eigenvalues: ViewMut<'_, T::Real>,
    mut eigenvectors: ViewMut<'_, T>,
) -> Result<()> {
    expect_square(a.sizes())?;
    let upper = is_upper(uplo)?;
    let (matrices, values) = (Stack::of(&a)?, Stack::of_rows(&mut eigenvalues)?);
    let vectors = if compute_v { Some(Stack::of_output(&mut eigenvectors)?) } else { None };
    parallel::try_for_each_range_of(matrices.work(), matrices.count(), |range| {
        for number in range {
            let matrix = matrices.matrix(number);
            let mut lower = if upper { matrix.adjoint() } else { matrix };
            without_upper(&mut lower);
            let (found, rows) = if lower.is_finite() {
                eigen(lower, compute_v)?
            } else {
                let unknown = T::of(T::Size::rounded(f64::NAN));
                let rows = Mat { elements: Scratch::filled(unknown, lower.elements.len()), ..lower };
                (Scratch::filled(unknown.re(), rows.rows), Some(rows))
            };
            // SAFETY: each number is one thread's.
            unsafe {
                values.write(number, &found);
                if let (Some(vectors), Some(rows)) = (&vectors, &rows) {
                    vectors.write(number, &rows.transposed().elements);
                }
            }
        }
        Ok(())
    })
}

/// Whether a name is that of the upper triangle.
///
/// # Errors
/// If it is neither's.
pub(crate) fn is_upper(uplo: &str) -> Result<bool> {
    match uplo {
        "L" | "l" => Ok(false),
        "U" | "u" => Ok(true),
        other => Err(Error::value(format!("there is no triangle `{other}`")).with_help("use `L` or `U`")),
    }
}

/// The error of an iteration that does not end.
#[cold]
pub(crate) fn not_converged() -> Error {
    Error::value("the eigenvalues of a matrix did not converge")
}

/// Makes elements above the diagonal zero, and the diagonal real.
fn without_upper<T: Field>(lower: &mut Mat<T>) {
    for row in 0..lower.rows {
        let own = lower.row_mut(row);
        own[row] = own[row].without_im();
        own[row + 1..].fill(T::NONE);
    }
}

/// Eigenvalues in ascending order, and eigenvectors as rows.
type Eigen<T> = (Scratch<<T as Field>::Size>, Option<Mat<T>>);

/// The eigenvalues of a matrix, of which the lower triangle is read, and its eigenvectors if asked for.
///
/// # Errors
/// If the algorithm does not converge.
pub(super) fn eigen<T: Field>(a: Mat<T>, with_vectors: bool) -> Result<Eigen<T>> {
    let n = a.rows;
    let reduced = Tridiagonal::of(a);
    let wide = |numbers: &[T::Size]| Scratch::mapped(numbers, |number| number.wide());
    let (mut diagonal, mut beside) = (wide(&reduced.diagonal), wide(&reduced.beside));
    if !with_vectors {
        let scale = divided::scale(&diagonal, &beside);
        for numbers in [&mut diagonal, &mut beside] {
            numbers.iter_mut().for_each(|number| *number /= scale);
        }
        implicit_ql(&mut diagonal, &mut beside, &mut Mat::zeros(0, 0))?;
        diagonal.sort_unstable_by(f64::total_cmp);
        return Ok((diagonal.iter().map(|value| T::Size::rounded(*value * scale)).collect(), None));
    }
    let (values, vectors) = divided::eigen(&diagonal, &beside)?;
    let elements = vectors.elements.iter().map(|element| T::of(T::Size::rounded(*element))).collect();
    let mut rows = Mat { elements, rows: n, columns: n };
    // Vectors as columns of the same elements.
    let columns = MatrixMut { data: rows.elements.as_mut_ptr(), row_stride: 1, column_stride: n as i64 };
    // SAFETY: the matrix has as many columns of as many elements as the vectors of reflections.
    unsafe { reduced.reflectors.multiply(columns, n) };
    for row in 0..n {
        let turn = turn_of(rows.row(row).iter().copied());
        rows.row_mut(row).iter_mut().for_each(|element| *element = *element * turn);
    }
    Ok((values.iter().map(|value| T::Size::rounded(*value)).collect(), Some(rows)))
}

/// The number of size 1 that makes the largest of some elements positive.
pub(super) fn turn_of<T: Field>(elements: impl Iterator<Item = T>) -> T {
    // Elements of about one size do not take turns by rounding: an earlier one wins.
    let margin = T::Size::UNIT + T::Size::rounded(1e-3);
    let largest =
        elements.fold(
            T::NONE,
            |largest, element| {
                if element.size() > largest.size() * margin { element } else { largest }
            },
        );
    if largest == T::NONE { T::UNIT } else { largest.conjugate() / T::of(largest.size()) }
}

/// A real tridiagonal matrix, and the reflections that it is made by.
struct Tridiagonal<T: Field> {
    diagonal: Scratch<T::Size>,
    beside: Scratch<T::Size>,
    reflectors: Reflectors<T>,
}

impl<T: Field> Tridiagonal<T> {
    /// The lower triangle is read.
    fn of(mut a: Mat<T>) -> Tridiagonal<T> {
        let n = a.rows;
        let steps = n.saturating_sub(1);
        let vectors = Mat::zeros(steps, n);
        let reflectors = Reflectors { vectors, factors: Scratch::with_capacity(steps), start: 1 };
        let (diagonal, beside) = (Scratch::with_capacity(n), Scratch::with_capacity(n));
        let mut reduced = Tridiagonal { diagonal, beside, reflectors };
        // The reflection of the step before, which the rest of the matrix does not have yet.
        let mut late = Late { vector: Scratch::filled(T::NONE, n), sums: Scratch::filled(T::NONE, n) };
        for step in 0..n {
            for row in step..n {
                let element = &mut a.row_mut(row)[step];
                *element = late.changed(*element, row, step);
            }
            reduced.diagonal.push(a.at(step, step).re());
            if step + 1 == n {
                reduced.beside.push(T::Size::NONE);
                break;
            }
            let vector = &mut reduced.reflectors.vectors.row_mut(step)[step + 1..];
            vector.iter_mut().zip(step + 1..).for_each(|(to, row)| *to = a.at(row, step));
            let (factor, beside) = reflection(vector);
            reduced.beside.push(beside);
            reduced.reflectors.factors.push(factor);
            late = late.followed_by(&mut a, step + 1, vector, factor);
        }
        reduced
    }
}

/// A reflection of both sides of a Hermitian matrix, `A - v wᴴ - w vᴴ`, from zeros on.
struct Late<T> {
    vector: Scratch<T>,
    sums: Scratch<T>,
}

impl<T: Field> Late<T> {
    /// An element after the reflection.
    fn changed(&self, element: T, row: usize, column: usize) -> T {
        let (vector, sums) = (self.vector[column].conjugate(), self.sums[column].conjugate());
        element - (self.vector[row] * sums + self.sums[row] * vector)
    }

    /// Reflects the lower triangle from a row on; the result is the next reflection, of the same rows. One pass does both: the rows
    /// change, and are multiplied with the next vector, once as rows and once as columns.
    fn followed_by(self, a: &mut Mat<T>, from: usize, next: &[T], factor: T) -> Late<T> {
        let n = a.rows;
        let conjugates = |of: &[T]| Scratch::mapped(&of[from..], |element: &T| element.conjugate());
        let (vector, sums) = (conjugates(&self.vector), conjugates(&self.sums));
        let mut products = Scratch::filled(T::NONE, n - from);
        for (at, row) in (from..n).enumerate() {
            let own = &mut a.row_mut(row)[from..=row];
            let (before, diagonal) = own.split_at_mut(at);
            let parts = [self.vector[row], self.sums[row]];
            let product = reflect_row(before, parts, [&vector, &sums], next, &mut products, next[at]);
            diagonal[0] = (diagonal[0] - (parts[0] * sums[at] + parts[1] * vector[at])).without_im();
            products[at] += product + diagonal[0] * next[at];
        }
        let mut late = Late { vector: Scratch::filled(T::NONE, n), sums: Scratch::filled(T::NONE, n) };
        products.iter_mut().for_each(|product| *product = factor * *product);
        let half = T::of(T::Size::rounded(-0.5)) * factor * inner(next, &products);
        add_scaled(&mut products, half, next);
        late.vector[from..].copy_from_slice(next);
        late.sums[from..].copy_from_slice(&products);
        late
    }
}

/// Terms that are summed apart.
pub(in crate::cpu) const SUMS: usize = 16;

/// Changes the elements of a row before the diagonal by a late reflection; the result is their product with a vector. `products` gets
/// those of their conjugates, which are a column, with an element.
fn reflect_row<T: Field>(
    row: &mut [T],
    [vector_part, sums_part]: [T; 2],
    [vector, sums]: [&[T]; 2],
    next: &[T],
    products: &mut [T],
    element: T,
) -> T {
    let length = row.len();
    let (vector, sums, next) = (&vector[..length], &sums[..length], &next[..length]);
    let products = &mut products[..length];
    widest(
        #[inline(always)]
        move || {
            let mut lanes = [T::NONE; SUMS];
            let (rows, row) = row.as_chunks_mut::<SUMS>();
            let ((vectors, vector), (all_sums, sums)) =
                (vector.as_chunks::<SUMS>(), sums.as_chunks::<SUMS>());
            let ((nexts, next), (all, products)) =
                (next.as_chunks::<SUMS>(), products.as_chunks_mut::<SUMS>());
            // Of copies, the compiler knows that they are apart.
            for at in 0..rows.len() {
                let (mut own, vector, sums, next) = (rows[at], vectors[at], all_sums[at], nexts[at]);
                let mut products = all[at];
                for lane in 0..SUMS {
                    own[lane] -= vector_part * sums[lane] + sums_part * vector[lane];
                }
                for lane in 0..SUMS {
                    lanes[lane] += own[lane] * next[lane];
                }
                for lane in 0..SUMS {
                    products[lane] += own[lane].conjugate() * element;
                }
                (rows[at], all[at]) = (own, products);
            }
            for lane in 0..row.len() {
                let changed = row[lane] - (vector_part * sums[lane] + sums_part * vector[lane]);
                row[lane] = changed;
                lanes[lane] += changed * next[lane];
                products[lane] += changed.conjugate() * element;
            }
            lanes.into_iter().fold(T::NONE, |sum, lane| sum + lane)
        },
    )
}

/// Makes a tridiagonal matrix of numbers up to 1 diagonal; rotations are applied to `rows`, which become its eigenvectors if they
/// were those of the identity.
pub(super) fn implicit_ql<R: Real>(diagonal: &mut [R], beside: &mut [R], rows: &mut Mat<R>) -> Result<()> {
    let n = diagonal.len();
    let limit = 60 * n.max(1);
    let mut steps = 0;
    for start in 0..n {
        loop {
            let end = (start..n - 1)
                .find(|at| {
                    let sizes = diagonal[*at].size() + diagonal[at + 1].size();
                    // Of less, squares would not be numbers of full precision.
                    beside[*at].size() <= R::EPSILON * sizes + R::LEAST.root()
                })
                .unwrap_or(n - 1);
            if end == start {
                break;
            }
            steps += 1;
            if steps > limit {
                return Err(not_converged());
            }
            ql_step(diagonal, beside, rows, start, end);
        }
    }
    Ok(())
}

/// One step of the QL algorithm with an implicit shift, on the block between two places.
fn ql_step<R: Real>(diagonal: &mut [R], beside: &mut [R], rows: &mut Mat<R>, start: usize, end: usize) {
    let two = R::rounded(2.0);
    let ratio = (diagonal[start + 1] - diagonal[start]) / (two * beside[start]);
    let length = ratio.with(R::UNIT);
    let mut shifted = diagonal[end] - diagonal[start] + beside[start] / (ratio + length.signed(ratio));
    let (mut sine, mut cosine, mut moved) = (R::UNIT, R::UNIT, R::NONE);
    for at in (start..end).rev() {
        let (off, kept) = (sine * beside[at], cosine * beside[at]);
        let length = (off * off + shifted * shifted).root();
        beside[at + 1] = length;
        if length == R::NONE {
            diagonal[at + 1] -= moved;
            beside[end] = R::NONE;
            return;
        }
        (sine, cosine) = (off / length, shifted / length);
        shifted = diagonal[at + 1] - moved;
        let turned = (diagonal[at] - shifted) * sine + two * cosine * kept;
        moved = sine * turned;
        diagonal[at + 1] = shifted + moved;
        shifted = cosine * turned - kept;
        if rows.rows > 0 {
            let (first, second) = rows.rows_mut(at, at + 1);
            rotate(first, second, cosine, sine);
        }
    }
    diagonal[start] -= moved;
    beside[start] = shifted;
    beside[end] = R::NONE;
}
