//! Stencils on two-dimensional grids.

use opsmith::runtime::arith::Arithmetic;
use opsmith::{Element, Result, View, ViewMut};

/// The five-point Laplacian; cells outside the grid count as 0.
pub fn laplacian<T>(grid: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()>
where
    T: Element<Compute: Arithmetic>,
{
    let (rows, columns) = (grid.size(0), grid.size(1));
    let cells = grid.to_contiguous();
    let cell = |row: usize, column: usize| match row < rows && column < columns {
        true => cells[row * columns + column].to_compute(),
        false => T::Compute::ZERO,
    };
    let four = T::Compute::from_scalar(4.into());
    let each_cell = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    out.write(each_cell.map(|(row, column)| {
        // One less than 0 wraps around to far outside the grid.
        let vertical = cell(row.wrapping_sub(1), column).add(cell(row + 1, column));
        let horizontal = cell(row, column.wrapping_sub(1)).add(cell(row, column + 1));
        T::from_compute(vertical.add(horizontal).sub(cell(row, column).mul(four)))
    }))
}
