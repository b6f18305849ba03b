// @generated from spec.yaml by codegen/src/emit/kernels.rs.
// One operator's share: `opsmith expand NAME`.

mod foreign {
    use super::*;
    #[allow(improper_ctypes, reason = "handles of the runtime are opaque to C")]
    unsafe extern "C" {
        /// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:52.
        pub fn golden_largest(
            context: *mut abi::RawContext,
            self_: *const abi::ForeignTensor<'_>,
            dim: *const i64,
            out0: *mut abi::ForeignTensor<'_>,
            out1: *mut abi::ForeignTensor<'_>,
        ) -> std::ffi::c_int;
    }
}

rt::pointwise_kernels! {
    /// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
    pub static PLUS_TENSOR: KernelTable = of![I64; F32 for BF16].at(Backend::Cpu, "spec.yaml:8");
    fn kernel(call: &KernelCall<'_>, [self_, other, alpha]: Arguments<'_>) -> T {
        let alpha = alpha.scalar();
        let alpha_element = C::from_scalar(alpha);
        pointwise::map2_light(
            call,
            [self_.position, other.position],
            #[inline(always)]
            move |self_: T, other: T| {
                let (self_, other) = (self_.to_compute(), other.to_compute());
                R::from_compute(Arithmetic::add(self_, Arithmetic::mul(alpha_element, other)))
            },
        )
    }
}

rt::pointwise_kernels! {
    /// `plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:24.
    pub static PLUS_SCALAR: KernelTable = of![I64; F32 for BF16].at(Backend::Cpu, "spec.yaml:24");
    fn kernel(call: &KernelCall<'_>, [self_, other, alpha]: Arguments<'_>) -> T {
        let (other, alpha) = (other.scalar(), alpha.scalar());
        let alpha_times_other = C::from_scalar(alpha * other);
        pointwise::map1_light(
            call,
            [self_.position],
            #[inline(always)]
            move |self_: T| {
                let self_ = self_.to_compute();
                R::from_compute(Arithmetic::add(self_, alpha_times_other))
            },
        )
    }
}

rt::pointwise_kernels! {
    /// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:31.
    pub static GROWN: KernelTable = of![F32].at(Backend::Cpu, "spec.yaml:31");
    fn kernel(call: &KernelCall<'_>, [self_, twice]: Arguments<'_>) -> T {
        let twice = twice.bool();
        if twice {
            pointwise::map1(
                call,
                [self_.position],
                #[inline(always)]
                move |self_: T| {
                    let self_ = self_.to_compute();
                    R::from_compute({
                        let once = kernels::scalar::grow(self_);
                        kernels::scalar::grow(once)
                    })
                },
            )
        } else {
            pointwise::map1(
                call,
                [self_.position],
                #[inline(always)]
                move |self_: T| {
                    let self_ = self_.to_compute();
                    R::from_compute(kernels::scalar::grow(self_))
                },
            )
        }
    }
}

use crate::kernels::kernel::product as product_at_spec_yaml_39;
use product_at_spec_yaml_39 as product_in_rust;

rt::rust_kernel! {
    fn product_kernel<T>(self_: View<'_, T>, mat2: View<'_, T>, out: ViewMut<'_, T>) -> Result<()> =
        |call, [self_, mat2]| [self_.view(), mat2.view(), call.view_mut(0)];
}

const _: KernelFn = |call| product_kernel(call, product_at_spec_yaml_39::<f32>);

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:39.
pub static PRODUCT: KernelTable = KernelTable::cpu(
    "kernel::product",
    &rt::kernels_of!(product_kernel of product_in_rust: F32 F64),
);

fn largest_kernel(call: &KernelCall<'_>) -> Result<()> {
    let mut context = abi::KernelContext::new("golden_largest", "kernels/largest.cc", call.device());
    let self_ = abi::ForeignTensor::of(call.args()[0].tensor());
    let dim = call.args()[1].optional(Arg::int);
    let mut out0 = call.foreign_output(0);
    let mut out1 = call.foreign_output(1);
    // SAFETY: the generated header declares the function with
    // these types and is included where it is defined; every
    // pointer lives until the call returns, and the dispatcher
    // holds the borrows of all tensors.
    let status = unsafe {
        foreign::golden_largest(context.as_raw(), &self_, abi::address_or_null(&dim), &mut out0, &mut out1)
    };
    context.check(status)
}

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:52.
pub static LARGEST: KernelTable = KernelTable::cpu(
    "kernels/largest.cc:golden_largest",
    &rt::same_kernel!(largest_kernel of F32),
);

use crate::kernels::kernel::spread as spread_at_spec_yaml_65;
use spread_at_spec_yaml_65 as spread_in_rust;

rt::rust_kernel! {
    fn spread_kernel<T>(
        self_: View<'_, T>,
        index: View<'_, i64>,
        size: &[i64],
        out: ViewMut<'_, T>,
    ) -> Result<()> =
        |call, [self_, index, size]| [self_.view(), index.view(), size.ints(), call.view_mut(0)];
}

const _: KernelFn = |call| spread_kernel(call, spread_at_spec_yaml_65::<f32>);

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:65.
pub static SPREAD: KernelTable = KernelTable::cpu(
    "kernel::spread",
    &rt::kernels_of!(spread_kernel of spread_in_rust: F32),
);
