//! `idx`: rows of a table by number, read and added to.

use opsmith::{Result, Tensor, TensorOps};

use super::normal;
use crate::harness::{Harness, Work};

const ROWS: i64 = 50_000;
const PICKED: i64 = 8192;
const WIDTH: i64 = 512;

pub fn run(harness: &mut Harness) -> Result<()> {
    if !harness.wants("idx.") {
        return Ok(());
    }
    let (table, mut out) = (normal(&[ROWS, WIDTH])?, normal(&[PICKED, WIDTH])?);
    // Steps of a number that shares no factor with the rows visit them without an order that a processor could predict.
    let picked: Vec<i64> = (0..PICKED).map(|row| row * 30_011 % ROWS).collect();
    let index = Tensor::from_slice(&picked, &[PICKED])?;
    let elements = (PICKED * WIDTH) as f64;
    let read = Work::memory(8.0, elements);
    harness.case("idx.index_select", read, || table.index_select(0, &index));
    harness.case("idx.index_select.out", read, || table.index_select_out(0, &index, &mut out));
    harness.case("idx.embedding", read, || table.embedding(&index));
    harness.case("idx.getitem", read, || table.index(&[Some(index.clone())]));
    let expanded = index.unsqueeze(1)?.expand([PICKED, WIDTH])?;
    let whole = expanded.contiguous()?;
    harness.case("idx.gather_expanded", read, || table.gather(0, &expanded));
    harness.case("idx.gather_contig", read, || table.gather(0, &whole));
    let (source, sums) = (normal(&[PICKED, WIDTH])?, opsmith::zeros([ROWS, WIDTH])?);
    let add = Work::memory(12.0, elements);
    harness.case("idx.index_add", add, || sums.index_add_(0, &index, &source));
    harness.case("idx.scatter_add", add, || sums.scatter_add_(0, &whole, &source));
    Ok(())
}
