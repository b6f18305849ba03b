//! Tables of generated code: kernels by dtype, and definitions, as rows.
//!
//! In: names of kernels, dtypes and definitions, or a loop over an expression. Out: the tables. Must know no operator.

/// Kernels in the form of [`KernelTable::with`](crate::op::KernelTable::with): a generic one, declared by
/// [`rust_kernel`](crate::rust_kernel), for the Rust type of each dtype: `kernels_of!(add_kernel of add: F32 F64)`.
#[doc(hidden)]
#[macro_export]
macro_rules! kernels_of {
    ($declared:ident of $kernel:ident: $($dtype:ident)*) => {
        [$(($crate::DType::$dtype, {
            // A function, not a closure, which would be compiled with another function around it.
            fn kernel(call: &$crate::op::KernelCall<'_>) -> $crate::Result<()> {
                type T = $crate::element::named::$dtype;
                $declared::Any($kernel::<T>, std::marker::PhantomData::<(T,)>).run_declared(call)
            }
            kernel as $crate::op::KernelFn
        })),*]
    };
}

/// The declaration of a kernel, generic unless it is one of a device: the type that it must have, and its arguments from a call, whose own have the names
/// behind it in signature order. A function of the
/// declaration's name takes the kernel at its exact type; the struct `Any` in the module of that name takes whatever
/// kernel is given, for [`Misfit`](crate::generated::declared::Misfit) to find one of another type.
#[doc(hidden)]
#[macro_export]
macro_rules! rust_kernel {
    (
        fn $declared:ident $(<$($T:ident),*>)? ($($arg:ident: $ty:ty),* $(,)?) -> $result:ty =
            |$call:ident $(, [$($name:tt),* $(,)?])? $(,)?| [$($value:expr),* $(,)?];
    ) => {
        fn $declared $(<$($T: $crate::Element),*>)? (
            $call: &$crate::op::KernelCall<'_>,
            kernel: fn($($arg: $ty),*) -> $result,
        ) -> $crate::Result<()> {
            $declared::Any(kernel, std::marker::PhantomData::<($($($T,)*)?)>).run_declared($call)
        }

        mod $declared {
            use super::*;

            pub struct Any<T, F>(pub F, pub std::marker::PhantomData<T>);

            impl<$($($T: $crate::Element,)*)? F: Fn($($ty),*) -> $result> Any<($($($T,)*)?), F> {
                #[inline(always)]
                pub fn run_declared(self, $call: &$crate::op::KernelCall<'_>) -> $crate::Result<()> {
                    $(let [$($name),*] = $crate::generated::arguments($call);)?
                    (self.0)($($value),*)
                }
            }
        }
    };
}

/// A table of loops over an expression, one for the Rust type of each dtype. The names in brackets are those of the call's
/// arguments in signature order. With `; F32 for F16 BF16` the one for `f32`
/// serves those dtypes, too.
#[doc(hidden)]
#[macro_export]
macro_rules! pointwise_kernels {
    (
        $(#[$attribute:meta])*
        pub static $table:ident: KernelTable =
            of![$($dtype:ident)* $(; $one:ident for $($also:ident)*)?] $(.$part:ident($($args:tt)*))*;
        fn kernel($call:ident: &KernelCall<'_>, $arguments:tt: Arguments<'_> $(,)?) -> $result:ty $body:block
    ) => {
        $(#[$attribute])*
        pub static $table: $crate::op::KernelTable = $crate::op::KernelTable::cpu("pointwise", &{
            $(const ONE: $crate::op::KernelFn = $crate::__pointwise_kernel!($one $call $arguments $result, $body);)?
            [
                $(($crate::DType::$dtype, $crate::__pointwise_kernel!($dtype $call $arguments $result, $body)),)*
                $(($crate::DType::$one, ONE), $(($crate::DType::$also, ONE),)*)?
            ]
        })
        $(.$part($($args)*))*;
    };
}

/// The loop for one dtype, whose elements are computed as `C`, with results of type `R`.
#[doc(hidden)]
#[macro_export]
macro_rules! __pointwise_kernel {
    ($dtype:ident $call:ident $arguments:tt $result:ty, $body:block) => {{
        #[allow(unused, reason = "an expression need not use everything")]
        fn kernel($call: &$crate::op::KernelCall<'_>) -> $crate::Result<()> {
            type T = $crate::element::named::$dtype;
            type C = <T as $crate::Element>::Compute;
            type R = $result;
            let $arguments = $crate::generated::arguments($call);
            $body
        }
        kernel as $crate::op::KernelFn
    }};
}

/// Kernels in the form of [`KernelTable::with`](crate::op::KernelTable::with): a function with the dtype as a parameter.
#[doc(hidden)]
#[macro_export]
macro_rules! kernels_of_dtypes {
    ($kernel:ident of $($dtype:ident)*) => {
        [$(($crate::DType::$dtype, {
            fn kernel(call: &$crate::op::KernelCall<'_>) -> $crate::Result<()> {
                $kernel(call, $crate::DType::$dtype)
            }
            kernel as $crate::op::KernelFn
        })),*]
    };
}

/// Kernels in the form of [`KernelTable::with`](crate::op::KernelTable::with): one function, which finds the dtype in its
/// tensors.
#[doc(hidden)]
#[macro_export]
macro_rules! same_kernel {
    ($kernel:ident of $($dtype:ident)*) => {
        $crate::op::same_kernel($kernel, [$($crate::DType::$dtype),*])
    };
}

/// The kernels of a generated definition: table and definition come from one entry, which fulfils the promise of
/// [`Kernels::of`](crate::op::Kernels::of). For generated code only, whose crates may forbid `unsafe`.
#[doc(hidden)]
#[macro_export]
macro_rules! __kernels_of_entry {
    ($table:path) => {
        // SAFETY: the generator wrote the table for this definition, whose signature and inference its kernels expect.
        unsafe { $crate::op::Kernels::of(&$table) }
    };
}

/// The loops of a generated definition on devices: text, inputs and constants come from one expression, which fulfils the
/// promise of [`DeviceLoop::new`](crate::generated::device_loop::DeviceLoop::new).
#[doc(hidden)]
#[macro_export]
macro_rules! device_source {
    ($name:literal, $headers:expr, $($line:literal)*) => {{
        // SAFETY: the generator wrote the text for the calls beside it.
        static LOOP: $crate::generated::device_loop::DeviceLoop =
            unsafe { $crate::generated::device_loop::DeviceLoop::new($name, $headers, concat!($($line, "\n"),*)) };
        &LOOP
    }};
}

/// Definitions by their names in the module `defs`.
#[doc(hidden)]
#[macro_export]
macro_rules! definitions {
    ($($name:ident)*) => {
        &[$(&defs::$name),*]
    };
}
