//! Eigenvalues and eigenvectors of real symmetric tridiagonal matrices by halves.
//!
//! In: the diagonal and the numbers beside it. Out: eigenvalues in ascending order, and eigenvectors as rows. Everything is computed in
//! double precision. A matrix is two of half the size and one of rank one, whose eigenvalues are the zeros of a rational
//! function (`secular`); eigenvectors of the halves are joined by matrix products.
//!
//! Source: J. Cuppen, "A divide and conquer method for the symmetric tridiagonal eigenproblem" (1981); M. Gu and S. Eisenstat, "A
//! divide-and-conquer algorithm for the symmetric tridiagonal eigenproblem" (1995), by which eigenvectors are orthogonal.

use opsmith_runtime::{Result, Scratch};

use super::hermitian::implicit_ql;
use super::matrix::{Mat, rotate};
use super::secular;

/// Matrices that are not divided.
pub(in crate::cpu) const SMALL: usize = 32;

/// The eigenvalues of a matrix in ascending order, and its eigenvectors as rows.
///
/// # Errors
/// If the algorithm for small matrices does not converge.
pub(super) fn eigen(diagonal: &[f64], beside: &[f64]) -> Result<(Scratch<f64>, Mat<f64>)> {
    let n = diagonal.len();
    let beside = &beside[..n.saturating_sub(1)];
    let scale = scale(diagonal, beside);
    let scaled = |numbers: &[f64]| Scratch::mapped(numbers, |number| number / scale);
    let (mut values, rows) = solve(&scaled(diagonal), &scaled(beside))?;
    values.iter_mut().for_each(|value| *value *= scale);
    Ok((values, rows))
}

/// The largest size of a number, by which squares neither overflow nor vanish; 1 if all are zeros.
pub(super) fn scale(diagonal: &[f64], beside: &[f64]) -> f64 {
    let largest = diagonal.iter().chain(beside).fold(0f64, |largest, number| largest.max(number.abs()));
    if largest > 0.0 { largest } else { 1.0 }
}

/// As [`eigen`], of a matrix of numbers up to 1.
fn solve(diagonal: &[f64], beside: &[f64]) -> Result<(Scratch<f64>, Mat<f64>)> {
    let n = diagonal.len();
    if n <= SMALL {
        let mut values: Scratch<f64> = diagonal.iter().copied().collect();
        let mut beside: Scratch<f64> = beside.iter().copied().chain([0.0]).collect();
        let mut rows = Mat::identity(n, n);
        implicit_ql(&mut values, &mut beside, &mut rows)?;
        return Ok(sorted(&values, &rows));
    }
    let (half, link) = (n / 2, beside[n / 2 - 1]);
    let mut parts: Scratch<f64> = diagonal.iter().copied().collect();
    parts[half - 1] -= link.abs();
    parts[half] -= link.abs();
    let (above, of_above) = solve(&parts[..half], &beside[..half - 1])?;
    let (below, of_below) = solve(&parts[half..], &beside[half..])?;
    let mut joined = Joined::of(above, of_above, below, of_below, link);
    joined.deflate();
    Ok(joined.eigen())
}

/// Eigenvalues in ascending order, and the rows in that order.
fn sorted(values: &[f64], rows: &Mat<f64>) -> (Scratch<f64>, Mat<f64>) {
    let order = ascending(values);
    let mut ordered = Mat::zeros(rows.rows, rows.columns);
    for (to, from) in order.iter().enumerate() {
        ordered.row_mut(to).copy_from_slice(rows.row(*from));
    }
    (order.iter().map(|at| values[*at]).collect(), ordered)
}

/// The places of values in ascending order.
fn ascending(values: &[f64]) -> Scratch<usize> {
    let mut order: Scratch<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|one, other| values[*one].total_cmp(&values[*other]).then(one.cmp(other)));
    order
}

/// Eigenvalues and eigenvectors of both halves, and the matrix of rank one between them.
struct Joined {
    /// Rows of the first half.
    half: usize,
    values: Scratch<f64>,
    rows: Mat<f64>,
    /// The matrix of rank one is `factor` times this vector times itself, in the basis of the rows.
    vector: Scratch<f64>,
    factor: f64,
    /// Whether a row has elements in the first half, and in the second.
    reach: Scratch<[bool; 2]>,
    /// Rows that are eigenvectors of the whole, and others, by their values.
    done: Scratch<usize>,
    open: Scratch<usize>,
}

impl Joined {
    fn of(
        above: Scratch<f64>,
        of_above: Mat<f64>,
        below: Scratch<f64>,
        of_below: Mat<f64>,
        link: f64,
    ) -> Joined {
        let (half, n) = (above.len(), above.len() + below.len());
        let mut rows = Mat::zeros(n, n);
        let root = std::f64::consts::FRAC_1_SQRT_2;
        let mut vector = Scratch::with_capacity(n);
        for row in 0..half {
            rows.row_mut(row)[..half].copy_from_slice(of_above.row(row));
            vector.push(root * of_above.at(row, half - 1));
        }
        for row in 0..n - half {
            rows.row_mut(half + row)[half..].copy_from_slice(of_below.row(row));
            vector.push(root.copysign(link) * of_below.at(row, 0));
        }
        let reach = (0..n).map(|row| [row < half, row >= half]).collect();
        let values = above.into_iter().chain(below).collect();
        let (done, open) = (Scratch::new(), Scratch::new());
        Joined { half, values, rows, vector, factor: 2.0 * link.abs(), reach, done, open }
    }

    /// Finds rows that are eigenvectors of the whole, to rounding: those without a part in the vector, and, after a rotation, one of
    /// two whose values are equal.
    fn deflate(&mut self) {
        let largest =
            |numbers: &[f64]| numbers.iter().fold(0f64, |largest, number| largest.max(number.abs()));
        let tolerance = 8.0 * f64::EPSILON * largest(&self.values).max(largest(&self.vector));
        let mut last: Option<usize> = None;
        for row in ascending(&self.values) {
            if self.factor * self.vector[row].abs() <= tolerance {
                self.done.push(row);
                continue;
            }
            let Some(before) = last.replace(row) else { continue };
            let (of_before, of_row) = (self.vector[before], self.vector[row]);
            let length = of_before.hypot(of_row);
            let (cosine, sine) = (of_row / length, -of_before / length);
            let (low, high) = (self.values[before], self.values[row]);
            if ((high - low) * cosine * sine).abs() > tolerance {
                self.open.push(before);
                continue;
            }
            (self.vector[before], self.vector[row]) = (0.0, length);
            self.values[before] = low * cosine * cosine + high * sine * sine;
            self.values[row] = low * sine * sine + high * cosine * cosine;
            self.turn(before, row, cosine, sine);
            self.done.push(before);
        }
        self.open.extend(last);
    }

    /// Replaces two rows by `cosine * one + sine * other` and `cosine * other - sine * one`.
    fn turn(&mut self, one: usize, other: usize, cosine: f64, sine: f64) {
        if one < other {
            let (first, second) = self.rows.rows_mut(one, other);
            rotate(first, second, cosine, -sine);
        } else {
            let (first, second) = self.rows.rows_mut(other, one);
            rotate(first, second, cosine, sine);
        }
        let both = [0, 1].map(|side: usize| self.reach[one][side] || self.reach[other][side]);
        (self.reach[one], self.reach[other]) = (both, both);
    }

    /// The eigenvalues and eigenvectors of the whole.
    fn eigen(self) -> (Scratch<f64>, Mat<f64>) {
        let (n, count) = (self.values.len(), self.open.len());
        let poles: Scratch<f64> = self.open.iter().map(|row| self.values[*row]).collect();
        let parts: Scratch<f64> = self.open.iter().map(|row| self.vector[*row]).collect();
        let (found, turns) = secular::eigen(&poles, &parts, self.factor);
        let mut joined = Mat::zeros(count, n);
        for (side, columns) in [0..self.half, self.half..n].into_iter().enumerate() {
            // Rows without elements here add nothing.
            let used: Scratch<usize> = (0..count).filter(|at| self.reach[self.open[*at]][side]).collect();
            let mut rows = Mat::zeros(used.len(), columns.len());
            for (to, at) in used.iter().enumerate() {
                rows.row_mut(to).copy_from_slice(&self.rows.row(self.open[*at])[columns.clone()]);
            }
            let mut own = Mat::zeros(count, used.len());
            for row in 0..count {
                let from = turns.row(row);
                own.row_mut(row).iter_mut().zip(&used).for_each(|(to, at)| *to = from[*at]);
            }
            let product = own.times(&rows);
            for row in 0..count {
                joined.row_mut(row)[columns.clone()].copy_from_slice(product.row(row));
            }
        }
        let values: Scratch<f64> =
            found.into_iter().chain(self.done.iter().map(|row| self.values[*row])).collect();
        let mut ordered = Mat::zeros(n, n);
        let order = ascending(&values);
        for (to, &from) in order.iter().enumerate() {
            let row = if from < count { joined.row(from) } else { self.rows.row(self.done[from - count]) };
            ordered.row_mut(to).copy_from_slice(row);
        }
        (order.iter().map(|at| values[*at]).collect(), ordered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::testing::scattered;

    /// The largest errors of `T v = λ v` and of the orthogonality of vectors.
    #[track_caller]
    fn check(diagonal: &[f64], beside: &[f64]) {
        let n = diagonal.len();
        let (values, rows) = eigen(diagonal, beside).unwrap();
        assert!(values.is_sorted());
        let scale = diagonal.iter().chain(beside).fold(0f64, |most, number| most.max(number.abs()));
        let bound = 1e-14 * (n as f64).sqrt();
        for row in 0..n {
            let vector = rows.row(row);
            for at in 0..n {
                let mut image = diagonal[at] * vector[at];
                if at > 0 {
                    image += beside[at - 1] * vector[at - 1];
                }
                if at + 1 < n {
                    image += beside[at] * vector[at + 1];
                }
                let error = (image - values[row] * vector[at]).abs();
                assert!(error <= bound * scale, "{n}: vector {row} is off by {error} at {at}");
            }
        }
        let products = rows.times(&rows.adjoint());
        for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
            let expected = if row == column { 1.0 } else { 0.0 };
            let error = (products.at(row, column) - expected).abs();
            assert!(error <= bound, "{n}: vectors {row} and {column} are off by {error}");
        }
    }

    #[test]
    fn eigenvectors_are_orthogonal_and_of_the_matrix() {
        for n in [1, 2, SMALL, SMALL + 1, 100, 211] {
            let numbers: Vec<f64> = scattered(2 * n).collect();
            check(&numbers[..n], &numbers[n..]);
            check(&numbers[..n].iter().map(|number| number * 1e200).collect::<Vec<_>>(), &vec![1e190; n]);
            // Equal eigenvalues of the halves, an eigenvalue close to another, and neighbours without a link.
            check(&vec![2.0; n], &vec![-1.0; n]);
            check(&(0..n).map(|at| (at as f64 - (n / 2) as f64).abs()).collect::<Vec<_>>(), &vec![1.0; n]);
            check(&vec![1.0; n], &vec![1e-12; n]);
            check(
                &numbers[..n],
                &(0..n).map(|at| f64::from(at % 7 != 3) * numbers[n + at]).collect::<Vec<_>>(),
            );
            check(&vec![0.0; n], &vec![0.0; n]);
            check(&(0..n).map(|at| 10f64.powi(-(at as i32) / 8)).collect::<Vec<_>>(), &vec![1e-9; n]);
        }
    }
}
