//! The library for kernels on a device: texts in CUDA C++17 that include nothing.
//!
//! In: nothing. Out: the texts, which a backend compiles together with a kernel's own at run time
//! ([design](https://github.com/opsmith/opsmith/blob/main/docs/design/device-library.md)), and the parameters of its kernels.
//! Must not know the backend.

mod lines;
mod reduction;
pub(crate) mod strided;

pub use lines::{Lines, Normalisation, Shape};
pub use reduction::{Dim, Plan, Reduction};
pub use strided::Strided;

/// Texts that all others need, and some after them.
macro_rules! headers {
    ($($more:expr),*) => {
        [
            include_str!("../../cuda/types.cuh"),
            include_str!("../../cuda/dtypes.cuh"),
            include_str!("../../cuda/arith.cuh"),
            include_str!("../../cuda/math/number.cuh"),
            include_str!("../../cuda/math/order.cuh"),
            include_str!("../../cuda/math/bits.cuh"),
            include_str!("../../cuda/math/division.cuh"),
            include_str!("../../cuda/math/complex.cuh"),
            include_str!("../../cuda/math/elementary.cuh"),
            include_str!("../../cuda/math/special.cuh"),
            include_str!("../../cuda/math/parts.cuh"),
            $($more),*
        ]
    };
}

/// The library's texts, in the order in which they depend on each other; a kernel's text comes after them.
///
/// `types.cuh` has the element types, `arith.cuh` the arithmetic of expressions, `math/` in the namespace `opsmith::math`
/// the functions of [`crate::math`] under their names, `loop.cuh` the kernels around an expression:
///
/// ```
/// let instance = "OPSMITH_LOOP(opsmith_kernel, Loop0<float>, contiguous)";
/// let expression = "namespace opsmith {
///     template <class T> struct Loop0 {
///         using R = T;
///         static constexpr int kInputs = 1;
///         DEVICE R operator()(T self) const { return from_compute<T>(math::exp(to_compute(self))); }
///     };
/// }";
/// let text = [&opsmith_kernels::device::HEADERS.concat(), expression, instance].join("\n");
/// assert!(text.contains("struct Contiguous"));
/// ```
pub const HEADERS: &[&str] = &headers!(include_str!("../../cuda/loop.cuh"));

/// The library's texts for kernels with a thread for each index.
pub const EACH: &[&str] = &headers!(include_str!("../../cuda/loop.cuh"), include_str!("../../cuda/each.cuh"));

/// The library's texts for kernels with a thread for each index that need numbers in order.
pub const ORDER: &[&str] = &headers!(
    include_str!("../../cuda/loop.cuh"),
    include_str!("../../cuda/each.cuh"),
    include_str!("../../cuda/order.cuh")
);

/// The library's texts for stacks of matrices, each the work of one block.
pub const MATRICES: &[&str] =
    &headers!(include_str!("../../cuda/team.cuh"), include_str!("../../cuda/matrix.cuh"));

/// The library's texts for stacks of matrices that are reflected.
pub const REFLECTIONS: &[&str] = &headers!(
    include_str!("../../cuda/team.cuh"),
    include_str!("../../cuda/matrix.cuh"),
    include_str!("../../cuda/reflections.cuh")
);

/// The library's texts for elements that have a place in the order of their line.
pub const SELECT_HEADERS: &[&str] = &headers!(
    include_str!("../../cuda/team.cuh"),
    include_str!("../../cuda/chunks.cuh"),
    include_str!("../../cuda/softmax.cuh"),
    include_str!("../../cuda/order.cuh")
);

/// The library's texts for products of matrices in tiles.
pub const PRODUCT: &[&str] =
    &headers!(include_str!("../../cuda/team.cuh"), include_str!("../../cuda/product.cuh"));

/// The library's texts for products of images and windows in tiles, and for kernels with a thread for each place.
pub const CONVOLUTION: &[&str] = &headers!(
    include_str!("../../cuda/loop.cuh"),
    include_str!("../../cuda/each.cuh"),
    include_str!("../../cuda/window.cuh"),
    include_str!("../../cuda/team.cuh"),
    include_str!("../../cuda/product.cuh")
);

/// The library's texts for kernels with a thread for each place of images.
pub const IMAGES: &[&str] = &headers!(
    include_str!("../../cuda/loop.cuh"),
    include_str!("../../cuda/each.cuh"),
    include_str!("../../cuda/window.cuh")
);

/// The library's texts for pooling, and for sums over places that are data.
pub const POOLING: &[&str] = &headers!(
    include_str!("../../cuda/loop.cuh"),
    include_str!("../../cuda/each.cuh"),
    include_str!("../../cuda/window.cuh"),
    include_str!("../../cuda/lists.cuh")
);

/// The library's texts for attention.
pub const ATTENTION: &[&str] = &headers!(
    include_str!("../../cuda/loop.cuh"),
    include_str!("../../cuda/team.cuh"),
    include_str!("../../cuda/product.cuh")
);

/// The library's texts for attention by tensor cores.
pub const TENSOR_ATTENTION: &[&str] = &headers!(
    include_str!("../../cuda/loop.cuh"),
    include_str!("../../cuda/team.cuh"),
    include_str!("../../cuda/product.cuh"),
    include_str!("../../cuda/tensor_core.cuh"),
    include_str!("../../cuda/attention.cuh")
);

/// The library's texts for reductions; the last has the families' names and geometries at its head.
///
/// ```
/// let instance = "OPSMITH_REDUCTION(opsmith_kernel, Sum<float>)";
/// let text = [&opsmith_kernels::device::REDUCTION_HEADERS.concat(), instance].join("\n");
/// assert!(text.contains("struct Sum"));
/// ```
pub const REDUCTION_HEADERS: &[&str] =
    &headers!(include_str!("../../cuda/team.cuh"), include_str!("../../cuda/reduction.cuh"));

/// The library's texts for softmax and its gradients.
pub const SOFTMAX_HEADERS: &[&str] = &headers!(
    include_str!("../../cuda/team.cuh"),
    include_str!("../../cuda/chunks.cuh"),
    include_str!("../../cuda/softmax.cuh")
);

/// The library's texts for normalisation of rows and its gradients.
pub const LAYER_NORM_HEADERS: &[&str] = &headers!(
    include_str!("../../cuda/team.cuh"),
    include_str!("../../cuda/chunks.cuh"),
    include_str!("../../cuda/layer_norm.cuh")
);

/// The compiler's options for these texts. A product and a sum are fused only where a text says so, as on the host:
/// otherwise z times its conjugate has an imaginary part.
pub const OPTIONS: &[&str] = &["--std=c++17", "--fmad=false"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_include_nothing_and_come_in_an_order_that_compiles() {
        for texts in [HEADERS, REDUCTION_HEADERS, SOFTMAX_HEADERS, LAYER_NORM_HEADERS] {
            assert!(texts[0].contains("struct bf16"), "types come first");
            for text in texts {
                assert!(
                    !text.contains("#include") && text.ends_with('\n'),
                    "{}",
                    text.lines().next().unwrap()
                );
            }
        }
    }
}
