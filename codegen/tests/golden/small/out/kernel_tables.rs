// @generated from spec.yaml by codegen/src/emit/kernels.rs.
// One operator's share: `opsmith expand NAME`.

mod foreign {
    use super::*;
    #[allow(improper_ctypes, reason = "handles of the runtime are opaque to C")]
    unsafe extern "C" {
        /// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:43.
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
        fn kernel(call: &rt::op::KernelCall<'_>) -> rt::Result<()> {
            type T = $T;
            use rt::Element as _;
            type C = <T as rt::Element>::Compute;
            type R = T;
            let alpha = call.args()[2].scalar();
            let constant0 = <C as rt::Element>::from_scalar(alpha);
            rt::pointwise::map2(
                call,
                [0, 1],
                |self_: T, other: T| {
                    let self_ = self_.to_compute();
                    let other = other.to_compute();
                    <R as rt::Element>::from_compute(
                        rt::arith::Arithmetic::add(
                            self_,
                            rt::arith::Arithmetic::mul(constant0, other),
                        ),
                    )
                },
            )
        }
        kernel
    }};
}

/// `plus.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`, declared at spec.yaml:8.
pub static PLUS_TENSOR: rt::op::KernelTable = rt::op::KernelTable::new(
    [
        [
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            Some(plus_tensor_kernel!(i64)),
            None,
            Some(plus_tensor_kernel!(rt::bf16)),
            Some(plus_tensor_kernel!(f32)),
            None,
            None,
            None,
        ],
        [None; rt::DType::COUNT],
    ],
    ["pointwise", ""],
);

macro_rules! grown_kernel {
    ($T:ty) => {{
        #[allow(unused, reason = "an expression need not use everything")]
        fn kernel(call: &rt::op::KernelCall<'_>) -> rt::Result<()> {
            type T = $T;
            use rt::Element as _;
            type C = <T as rt::Element>::Compute;
            type R = T;
            let twice = call.args()[1].bool();
            if twice {
                rt::pointwise::map1(
                    call,
                    [0],
                    |self_: T| {
                        let self_ = self_.to_compute();
                        <R as rt::Element>::from_compute({
                            let once = kernels::scalar::grow(self_);
                            kernels::scalar::grow(once)
                        })
                    },
                )
            } else {
                rt::pointwise::map1(
                    call,
                    [0],
                    |self_: T| {
                        let self_ = self_.to_compute();
                        <R as rt::Element>::from_compute(kernels::scalar::grow(self_))
                    },
                )
            }
        }
        kernel
    }};
}

/// `grown(Tensor self, bool twice=False) -> Tensor`, declared at spec.yaml:22.
pub static GROWN: rt::op::KernelTable = rt::op::KernelTable::new(
    [
        [
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            Some(grown_kernel!(f32)),
            None,
            None,
            None,
        ],
        [None; rt::DType::COUNT],
    ],
    ["pointwise", ""],
);

use crate::kernels::kernel::product as product_at_spec_yaml_30;

use product_at_spec_yaml_30 as product_in_rust;

/// The type that `crate::kernels::kernel::product` must have for spec.yaml:30.
fn product_kernel<T: rt::Element>(
    call: &rt::op::KernelCall<'_>,
    kernel: fn(
        self_: rt::View<'_, T>,
        mat2: rt::View<'_, T>,
        out: rt::ViewMut<'_, T>,
    ) -> rt::Result<()>,
) -> rt::Result<()> {
    Any_product_kernel::<T, _>(kernel, std::marker::PhantomData).run_declared(call)
}

const _: fn(&rt::op::KernelCall<'_>) -> rt::Result<()> = |call| product_kernel(
    call,
    product_at_spec_yaml_30::<f32>,
);

#[allow(non_camel_case_types, reason = "names that differ in underscores stay apart")]
struct Any_product_kernel<T, F>(F, std::marker::PhantomData<T>);

impl<
    T: rt::Element,
    F: Fn(rt::View<'_, T>, rt::View<'_, T>, rt::ViewMut<'_, T>) -> rt::Result<()>,
> Any_product_kernel<T, F> {
    fn run_declared(self, call: &rt::op::KernelCall<'_>) -> rt::Result<()> {
        let kernel = self.0;
        rt::scratch::or_out_of_memory(|| kernel(
            call.view(0),
            call.view(1),
            call.view_mut(0),
        ))
    }
}

/// `product(Tensor self, Tensor mat2) -> Tensor`, declared at spec.yaml:30.
pub static PRODUCT: rt::op::KernelTable = rt::op::KernelTable::new(
    [
        [
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            Some(|call| {
                Any_product_kernel::<
                    f32,
                    _,
                >(product_in_rust::<f32>, std::marker::PhantomData)
                    .run_declared(call)
            }),
            Some(|call| {
                Any_product_kernel::<
                    f64,
                    _,
                >(product_in_rust::<f64>, std::marker::PhantomData)
                    .run_declared(call)
            }),
            None,
            None,
        ],
        [None; rt::DType::COUNT],
    ],
    ["kernel::product", ""],
);

fn largest_kernel(call: &rt::op::KernelCall<'_>) -> rt::Result<()> {
    let mut context = rt::foreign::Context::new(
        "golden_largest",
        "kernels/largest.cc",
        call.device(),
    );
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

/// `largest(Tensor self, int? dim=None) -> (Tensor values, Tensor indices)`, declared at spec.yaml:43.
pub static LARGEST: rt::op::KernelTable = rt::op::KernelTable::new(
    [
        [
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            Some(largest_kernel),
            None,
            None,
            None,
        ],
        [None; rt::DType::COUNT],
    ],
    ["kernels/largest.cc:golden_largest", ""],
);

use crate::kernels::kernel::spread as spread_at_spec_yaml_53;

use spread_at_spec_yaml_53 as spread_in_rust;

/// The type that `crate::kernels::kernel::spread` must have for spec.yaml:53.
fn spread_kernel<T: rt::Element>(
    call: &rt::op::KernelCall<'_>,
    kernel: fn(
        self_: rt::View<'_, T>,
        index: rt::View<'_, i64>,
        size: &[i64],
        out: rt::ViewMut<'_, T>,
    ) -> rt::Result<()>,
) -> rt::Result<()> {
    Any_spread_kernel::<T, _>(kernel, std::marker::PhantomData).run_declared(call)
}

const _: fn(&rt::op::KernelCall<'_>) -> rt::Result<()> = |call| spread_kernel(
    call,
    spread_at_spec_yaml_53::<f32>,
);

#[allow(non_camel_case_types, reason = "names that differ in underscores stay apart")]
struct Any_spread_kernel<T, F>(F, std::marker::PhantomData<T>);

impl<
    T: rt::Element,
    F: Fn(
            rt::View<'_, T>,
            rt::View<'_, i64>,
            &[i64],
            rt::ViewMut<'_, T>,
        ) -> rt::Result<()>,
> Any_spread_kernel<T, F> {
    fn run_declared(self, call: &rt::op::KernelCall<'_>) -> rt::Result<()> {
        let kernel = self.0;
        rt::scratch::or_out_of_memory(|| kernel(
            call.view(0),
            call.view(1),
            call.args()[2].ints(),
            call.view_mut(0),
        ))
    }
}

/// `spread(Tensor self, Tensor index, int[] size) -> Tensor`, declared at spec.yaml:53.
pub static SPREAD: rt::op::KernelTable = rt::op::KernelTable::new(
    [
        [
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            Some(|call| {
                Any_spread_kernel::<
                    f32,
                    _,
                >(spread_in_rust::<f32>, std::marker::PhantomData)
                    .run_declared(call)
            }),
            None,
            None,
            None,
        ],
        [None; rt::DType::COUNT],
    ],
    ["kernel::spread", ""],
);
