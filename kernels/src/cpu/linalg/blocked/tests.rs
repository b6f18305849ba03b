//! Blocked products against sums of products, with every set of innermost loops.

use super::super::testing::check_product;
use super::*;

#[test]
fn blocks_of_any_size_and_order_are_exact() {
    let sizes = [
        [1, 1, 3],
        [7, 5, 3],
        [16, 16, 16],
        [17, 9, 33],
        [3, 100, 7],
        [100, 3, 7],
        [65, 66, 3],
        [20, 20, 530],
        [13, 70, 600],
        [3200, 3, 4],
    ];
    for kernels in f64::all_kernels() {
        for size in sizes {
            // SAFETY: each matrix lies in memory that is large enough for any order.
            check_product::<f64>(size, |left, right, keep, scale, out| unsafe {
                multiply_with(Some(kernels), left, right, keep, scale, out)
            });
        }
    }
}
