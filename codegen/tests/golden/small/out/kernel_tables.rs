// @generated from spec.yaml by codegen/src/emit/kernels.rs.
// One operator's share: `opsmith expand NAME`.

mod foreign {
    use super::*;
    #[allow(improper_ctypes, reason = "handles of the runtime are opaque to C")]
    unsafe extern "C" {
        /// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:50.
        pub fn golden_largest(
            context: *mut rt::foreign::RawContext,
            self_: *const rt::foreign::ForeignTensor<'_>,
            dim: *const i64,
            out0: *mut rt::foreign::ForeignTensor<'_>,
            out1: *mut rt::foreign::ForeignTensor<'_>,
        ) -> std::ffi::c_int;
    }
}

use rt::declared::Misfit as _;

macro_rules! plus_tensor_kernel {
    ($T:ty) => {{
        #[allow(unused, reason = "an expression need not use everything")]
        fn kernel(call: &KernelCall<'_>) -> rt::Result<()> {
            type T = $T;
            type C = <T as rt::Element>::Compute;
            type R = T;
            let alpha = call.args()[2].scalar();
            let constant0 = <C as rt::Element>::from_scalar(alpha);
            rt::pointwise::map2(call, [0, 1], |self_: T, other: T| {
                let self_ = self_.to_compute();
                let other = other.to_compute();
                <R as rt::Element>::from_compute(
                    rt::arith::Arithmetic::add(self_, rt::arith::Arithmetic::mul(constant0, other)),
                )
            })
        }
        kernel
    }};
}

/// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
pub static PLUS_TENSOR: KernelTable = KernelTable::of(
    Backend::Cpu,
    "pointwise",
    &rt::kernels_of!(plus_tensor_kernel : I64; F32 for BF16),
);

macro_rules! plus_scalar_kernel {
    ($T:ty) => {{
        #[allow(unused, reason = "an expression need not use everything")]
        fn kernel(call: &KernelCall<'_>) -> rt::Result<()> {
            type T = $T;
            type C = <T as rt::Element>::Compute;
            type R = T;
            let other = call.args()[1].scalar();
            let alpha = call.args()[2].scalar();
            let constant0 = alpha * other;
            let constant1 = <C as rt::Element>::from_scalar(constant0);
            rt::pointwise::map1(call, [0], |self_: T| {
                let self_ = self_.to_compute();
                <R as rt::Element>::from_compute(rt::arith::Arithmetic::add(self_, constant1))
            })
        }
        kernel
    }};
}

/// `plus.Scalar(Tensor self, Scalar other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:22.
pub static PLUS_SCALAR: KernelTable = KernelTable::of(
    Backend::Cpu,
    "pointwise",
    &rt::kernels_of!(plus_scalar_kernel : I64; F32 for BF16),
);

macro_rules! grown_kernel {
    ($T:ty) => {{
        #[allow(unused, reason = "an expression need not use everything")]
        fn kernel(call: &KernelCall<'_>) -> rt::Result<()> {
            type T = $T;
            type C = <T as rt::Element>::Compute;
            type R = T;
            let twice = call.args()[1].bool();
            if twice {
                rt::pointwise::map1(call, [0], |self_: T| {
                    let self_ = self_.to_compute();
                    <R as rt::Element>::from_compute({
                        let once = kernels::scalar::grow(self_);
                        kernels::scalar::grow(once)
                    })
                })
            } else {
                rt::pointwise::map1(call, [0], |self_: T| {
                    let self_ = self_.to_compute();
                    <R as rt::Element>::from_compute(kernels::scalar::grow(self_))
                })
            }
        }
        kernel
    }};
}

/// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:29.
pub static GROWN: KernelTable = KernelTable::of(
    Backend::Cpu,
    "pointwise",
    &rt::kernels_of!(grown_kernel : F32),
);

use crate::kernels::kernel::product as product_at_spec_yaml_37;

use product_at_spec_yaml_37 as product_in_rust;

/// The type that `crate::kernels::kernel::product` must have for spec.yaml:37.
fn product_kernel<T: rt::Element>(
    call: &KernelCall<'_>,
    kernel: fn(self_: rt::View<'_, T>, mat2: rt::View<'_, T>, out: rt::ViewMut<'_, T>) -> rt::Result<()>,
) -> rt::Result<()> {
    Any_product_kernel(kernel, std::marker::PhantomData::<T>).run_declared(call)
}

const _: fn(&KernelCall<'_>) -> rt::Result<()> = |call| product_kernel(call, product_at_spec_yaml_37::<f32>);

#[allow(non_camel_case_types, reason = "names that differ in underscores stay apart")]
struct Any_product_kernel<T, F>(F, std::marker::PhantomData<T>);

impl<
    T: rt::Element,
    F: Fn(rt::View<'_, T>, rt::View<'_, T>, rt::ViewMut<'_, T>) -> rt::Result<()>,
> Any_product_kernel<T, F> {
    fn run_declared(self, call: &KernelCall<'_>) -> rt::Result<()> {
        let kernel = self.0;
        rt::scratch::or_out_of_memory(|| kernel(call.view(0), call.view(1), call.view_mut(0)))
    }
}

macro_rules! product_kernel_of {
    ($T:ty) => {{
        |call| Any_product_kernel(product_in_rust::<$T>, std::marker::PhantomData::<$T>).run_declared(call)
    }};
}

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:37.
pub static PRODUCT: KernelTable = KernelTable::of(
    Backend::Cpu,
    "kernel::product",
    &rt::kernels_of!(product_kernel_of : F32 F64),
);

fn largest_kernel(call: &KernelCall<'_>) -> rt::Result<()> {
    let mut context = rt::foreign::KernelContext::new("golden_largest", "kernels/largest.cc", call.device());
    let self_ = rt::foreign::ForeignTensor::of(call.args()[0].tensor());
    let dim = call.args()[1].optional(rt::Arg::int);
    let mut out0 = call.foreign_output(0);
    let mut out1 = call.foreign_output(1);
    // SAFETY: the generated header declares the function with
    // these types and is included where it is defined; every
    // pointer lives until the call returns, and the dispatcher
    // holds the borrows of all tensors.
    let status = unsafe {
        foreign::golden_largest(
            context.as_raw(),
            &self_,
            rt::foreign::address_or_null(&dim),
            &mut out0,
            &mut out1,
        )
    };
    context.check(status)
}

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:50.
pub static LARGEST: KernelTable = KernelTable::of(
    Backend::Cpu,
    "kernels/largest.cc:golden_largest",
    &rt::op::same_kernel(largest_kernel, [DType::F32]),
);

use crate::kernels::kernel::spread as spread_at_spec_yaml_60;

use spread_at_spec_yaml_60 as spread_in_rust;

/// The type that `crate::kernels::kernel::spread` must have for spec.yaml:60.
fn spread_kernel<T: rt::Element>(
    call: &KernelCall<'_>,
    kernel: fn(
        self_: rt::View<'_, T>,
        index: rt::View<'_, i64>,
        size: &[i64],
        out: rt::ViewMut<'_, T>,
    ) -> rt::Result<()>,
) -> rt::Result<()> {
    Any_spread_kernel(kernel, std::marker::PhantomData::<T>).run_declared(call)
}

const _: fn(&KernelCall<'_>) -> rt::Result<()> = |call| spread_kernel(call, spread_at_spec_yaml_60::<f32>);

#[allow(non_camel_case_types, reason = "names that differ in underscores stay apart")]
struct Any_spread_kernel<T, F>(F, std::marker::PhantomData<T>);

impl<
    T: rt::Element,
    F: Fn(rt::View<'_, T>, rt::View<'_, i64>, &[i64], rt::ViewMut<'_, T>) -> rt::Result<()>,
> Any_spread_kernel<T, F> {
    fn run_declared(self, call: &KernelCall<'_>) -> rt::Result<()> {
        let kernel = self.0;
        rt::scratch::or_out_of_memory(|| kernel(
            call.view(0),
            call.view(1),
            call.args()[2].ints(),
            call.view_mut(0),
        ))
    }
}

macro_rules! spread_kernel_of {
    ($T:ty) => {{
        |call| Any_spread_kernel(spread_in_rust::<$T>, std::marker::PhantomData::<$T>).run_declared(call)
    }};
}

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:60.
pub static SPREAD: KernelTable = KernelTable::of(
    Backend::Cpu,
    "kernel::spread",
    &rt::kernels_of!(spread_kernel_of : F32),
);
