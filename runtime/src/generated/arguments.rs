//! Arguments of a kernel's call, by name.
//!
//! In: a call, and a name for each argument in signature order: `let [self_, _, alpha] = arguments(call);`. Out: the value or
//! the elements of each. Must know no operator.

use std::array;
use std::ops::Deref;

use crate::arg::Arg;
use crate::device_view::DeviceView;
use crate::element::Element;
use crate::op::KernelCall;
use crate::scratch::Scratch;
use crate::untyped::Untyped;
use crate::view::View;

/// An argument of a call: its value, as [`Arg`] has it, or views of its elements, as the call gives them.
#[derive(Clone, Copy)]
pub struct KernelArgument<'c, 'a> {
    call: &'c KernelCall<'a>,
    /// The position in the operator's signature.
    pub position: usize,
}

/// The arguments of a call, in signature order, to be bound to their names.
#[inline(always)]
pub fn arguments<'c, 'a, const COUNT: usize>(call: &'c KernelCall<'a>) -> [KernelArgument<'c, 'a>; COUNT] {
    array::from_fn(|position| KernelArgument { call, position })
}

impl<'a> Deref for KernelArgument<'_, 'a> {
    type Target = Arg<'a>;

    #[inline(always)]
    fn deref(&self) -> &Arg<'a> {
        &self.call.args()[self.position]
    }
}

macro_rules! elements {
    ($($name:ident $(<$T:ident>)? => $result:ty;)*) => {
        impl<'a> KernelArgument<'_, 'a> {$(
            #[doc = concat!("As [`KernelCall::", stringify!($name), "`].")]
            #[inline(always)]
            pub fn $name $(<$T: Element>)? (&self) -> $result {
                self.call.$name(self.position)
            }
        )*}
    };
}

elements! {
    view<T> => View<'a, T>;
    optional_view<T> => Option<View<'a, T>>;
    views<T> => Scratch<View<'a, T>>;
    optional_views<T> => Scratch<Option<View<'a, T>>>;
    untyped => Untyped<'a>;
    optional_untyped => Option<Untyped<'a>>;
    all_untyped => Scratch<Untyped<'a>>;
    optional_all_untyped => Scratch<Option<Untyped<'a>>>;
    device_view => DeviceView<'a>;
    optional_device_view => Option<DeviceView<'a>>;
    device_views => Scratch<DeviceView<'a>>;
    optional_device_views => Scratch<Option<DeviceView<'a>>>;
}
