//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.
//!
//! Source: Householder's reduction to a tridiagonal matrix, and the implicit QL algorithm (Bowdler, Martin, Reinsch and
//! Wilkinson 1968).

use opsmith_runtime::{Error, Result, Scratch, View, ViewMut, parallel};

use super::expect_square;
use super::matrix::{Mat, add_scaled, inner, rotate};
use super::number::{Field, Real};
use super::orthogonal::{reflect, reflection};
use super::stack::Stack;

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
    parallel::try_for_each_range(matrices.count(), 1, |range| {
        for number in range {
            let matrix = matrices.matrix(number);
            let lower = mirrored(if upper { matrix.adjoint() } else { matrix });
            let (found, columns) = if lower.is_finite() {
                eigen(lower, compute_v)?
            } else {
                let unknown = T::of(T::Size::rounded(f64::NAN));
                let columns = Mat { elements: Scratch::filled(unknown, lower.elements.len()), ..lower };
                (Scratch::filled(unknown.re(), columns.rows), Some(columns))
            };
            // SAFETY: each number is one thread's.
            unsafe {
                values.write(number, &found);
                if let (Some(vectors), Some(columns)) = (&vectors, &columns) {
                    vectors.write(number, &columns.elements);
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

/// The Hermitian matrix with the given lower triangle; a diagonal is real.
fn mirrored<T: Field>(mut lower: Mat<T>) -> Mat<T> {
    for row in 0..lower.rows {
        for column in 0..row {
            let element = lower.at(row, column).conjugate();
            lower.row_mut(column)[row] = element;
        }
        let diagonal = lower.at(row, row).without_im();
        lower.row_mut(row)[row] = diagonal;
    }
    lower
}

/// Eigenvalues in ascending order, and eigenvectors as columns.
type Eigen<T> = (Scratch<<T as Field>::Size>, Option<Mat<T>>);

/// The eigenvalues of a matrix, and its eigenvectors if asked for.
fn eigen<T: Field>(a: Mat<T>, with_vectors: bool) -> Result<Eigen<T>> {
    let n = a.rows;
    let reduced = Tridiagonal::of(a);
    let (mut diagonal, mut beside) = (Scratch::new(), Scratch::new());
    diagonal.extend(reduced.diagonal.iter().copied());
    beside.extend(reduced.beside.iter().copied());
    let mut rows = if with_vectors { Mat::<T::Size>::identity(n, n) } else { Mat::zeros(0, 0) };
    implicit_ql(&mut diagonal, &mut beside, &mut rows)?;
    let mut order: Scratch<usize> = (0..n).collect();
    order.sort_unstable_by(|one, other| {
        let by_value = diagonal[*one].partial_cmp(&diagonal[*other]).unwrap_or(std::cmp::Ordering::Equal);
        by_value.then(one.cmp(other))
    });
    let values: Scratch<T::Size> = order.iter().map(|at| diagonal[*at]).collect();
    if !with_vectors {
        return Ok((values, None));
    }
    let mut columns = Mat::zeros(n, n);
    for (column, at) in order.iter().enumerate() {
        for row in 0..n {
            columns.row_mut(row)[column] = T::of(rows.at(*at, row));
        }
    }
    let mut columns = reduced.applied(columns);
    for column in 0..n {
        let turn = turn_of((0..n).map(|row| columns.at(row, column)));
        for row in 0..n {
            let element = columns.at(row, column) * turn;
            columns.row_mut(row)[column] = element;
        }
    }
    Ok((values, Some(columns)))
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
    /// The vectors of the reflections, as rows.
    vectors: Mat<T>,
    factors: Scratch<T>,
}

impl<T: Field> Tridiagonal<T> {
    fn of(mut a: Mat<T>) -> Tridiagonal<T> {
        let n = a.rows;
        let mut reduced = Tridiagonal {
            diagonal: Scratch::with_capacity(n),
            beside: Scratch::with_capacity(n),
            vectors: Mat::zeros(n, n),
            factors: Scratch::with_capacity(n),
        };
        for step in 0..n {
            reduced.diagonal.push(a.at(step, step).re());
            if step + 1 == n {
                reduced.beside.push(T::Size::NONE);
                break;
            }
            for row in step + 1..n {
                reduced.vectors.row_mut(step)[row] = a.at(row, step);
            }
            let vector = &mut reduced.vectors.row_mut(step)[step + 1..];
            let (factor, beside) = reflection(vector);
            reflect_both(&mut a, step + 1, vector, factor);
            reduced.beside.push(beside);
            reduced.factors.push(factor);
        }
        reduced
    }

    /// The product of all reflections with a matrix.
    fn applied(&self, mut to: Mat<T>) -> Mat<T> {
        for (step, factor) in self.factors.iter().enumerate().rev() {
            reflect(&mut to, step + 1, 0, &self.vectors.row(step)[step + 1..], *factor);
        }
        to
    }
}

/// Reflects the rows and columns from one on of a Hermitian matrix.
fn reflect_both<T: Field>(a: &mut Mat<T>, from: usize, vector: &[T], factor: T) {
    if factor == T::NONE {
        return;
    }
    // An inner product conjugates its second operand; a row times `v` is one with the conjugates of `v`.
    let conjugates: Scratch<T> = vector.iter().map(|element| element.conjugate()).collect();
    let mut sums: Scratch<T> =
        (from..a.rows).map(|row| factor * inner(&a.row(row)[from..], &conjugates)).collect();
    let overlap = inner(vector, &sums);
    let half = T::of(T::Size::rounded(-0.5)) * factor * overlap;
    add_scaled(&mut sums, half, vector);
    let sums_conjugated: Scratch<T> = sums.iter().map(|element| element.conjugate()).collect();
    for (at, row) in (from..a.rows).enumerate() {
        let target = &mut a.row_mut(row)[from..];
        add_scaled(target, -vector[at], &sums_conjugated);
        add_scaled(target, -sums[at], &conjugates);
    }
}

/// Makes a tridiagonal matrix diagonal; rotations are applied to `rows`, which become its eigenvectors if they were those of
/// the identity.
fn implicit_ql<R: Real>(diagonal: &mut [R], beside: &mut [R], rows: &mut Mat<R>) -> Result<()> {
    let n = diagonal.len();
    let limit = 60 * n.max(1);
    let mut steps = 0;
    for start in 0..n {
        loop {
            let end = (start..n - 1)
                .find(|at| {
                    beside[*at].size() <= R::EPSILON * (diagonal[*at].size() + diagonal[at + 1].size())
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
        let length = off.with(shifted);
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
