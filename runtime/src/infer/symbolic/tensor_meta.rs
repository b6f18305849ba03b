//! Metas of tensors (dtype, shape, strides, device), and attributes that may be sizes: the arguments of inference.

use opsmith_core::DType;

use super::shape::{Shape, Sizes};
use super::size::Size;
use super::symbols::Bindings;
use crate::arg::Arg;
use crate::device::Device;
use crate::layout::{Dims, Layout, contiguous_strides};
use crate::tensor::Tensor;

/// A tensor before it exists.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Its element type.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Shape,
    /// Its strides and offset.
    pub strides: Strides,
    /// Its device.
    pub device: Device,
    /// The tensor itself, if it is a constant whose elements inference may read.
    pub value: Option<Tensor>,
}

/// Strides and offset of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Strides {
    /// Row-major without gaps, at offset 0.
    Contiguous,
    /// Given strides and an offset, in elements.
    Given {
        /// The stride of each dimension.
        strides: Sizes,
        /// The offset of the first element.
        offset: Size,
    },
    /// Unknown.
    Unknown,
}

impl Meta {
    /// A row-major tensor on the host.
    pub fn new(dtype: DType, shape: Shape) -> Meta {
        Meta { dtype, shape, strides: Strides::Contiguous, device: Device::CPU, value: None }
    }

    /// The description of an existing tensor, without its elements.
    pub fn describe(tensor: &Tensor) -> Meta {
        let strides = Strides::of(tensor.layout());
        let shape = Shape::concrete(tensor.shape());
        Meta { dtype: tensor.dtype(), shape, strides, device: tensor.device(), value: None }
    }

    /// A constant: its elements are known when the graph is built.
    pub fn constant(tensor: &Tensor) -> Meta {
        Meta { value: Some(tensor.clone()), ..Meta::describe(tensor) }
    }

    /// Sizes and strides, if all are numbers.
    pub fn layout(&self) -> Option<Layout> {
        let sizes = self.shape.known()?;
        match &self.strides {
            Strides::Contiguous => Some(Layout::contiguous(&sizes)),
            Strides::Given { strides, offset } => {
                let strides = strides.iter().map(Size::known).collect::<Option<Dims>>()?;
                Some(Layout { sizes, strides, offset: offset.known()? })
            }
            Strides::Unknown => None,
        }
    }

    /// As [`Meta::layout`] for these values of symbols; `None` if a size stays unknown. Unknown strides become
    /// row-major.
    pub fn bind(&self, bindings: &Bindings) -> Option<Layout> {
        self.evaluate(&|size| size.bind(bindings))
    }

    pub(super) fn evaluate(&self, value_of: &dyn Fn(&Size) -> Option<i64>) -> Option<Layout> {
        let all = |sizes: &[Size]| sizes.iter().map(value_of).collect::<Option<Dims>>();
        let sizes = all(self.shape.sizes()?)?;
        Some(match &self.strides {
            Strides::Contiguous | Strides::Unknown => Layout::contiguous(&sizes),
            Strides::Given { strides, offset } => {
                Layout { strides: all(strides)?, offset: value_of(offset)?, sizes }
            }
        })
    }
}

impl Strides {
    /// The strides of a layout.
    pub fn of(layout: &Layout) -> Strides {
        if layout.offset == 0 && layout.strides == contiguous_strides(&layout.sizes) {
            return Strides::Contiguous;
        }
        let strides = layout.strides.iter().map(|&stride| Size::Const(stride)).collect();
        Strides::Given { strides, offset: Size::Const(layout.offset) }
    }
}

/// One argument of an operator in inference.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentMeta<'a> {
    /// A tensor.
    Tensor(&'a Meta),
    /// A list of tensors.
    Tensors(&'a [Meta]),
    /// A list of tensors of which some may be absent.
    OptionalTensors(&'a [Option<Meta>]),
    /// An integer that may be symbolic.
    Int(&'a Size),
    /// Integers that may be symbolic.
    Ints(&'a [Size]),
    /// Any other argument, or an absent one. A tensor in it is a constant.
    Plain(Arg<'a>),
}

impl<'a> ArgumentMeta<'a> {
    /// Calls `visit` with each tensor of the argument, in order.
    pub fn for_each_meta(self, mut visit: impl FnMut(&'a Meta)) {
        match self {
            ArgumentMeta::Tensor(meta) => visit(meta),
            ArgumentMeta::Tensors(metas) => metas.iter().for_each(visit),
            ArgumentMeta::OptionalTensors(metas) => metas.iter().flatten().for_each(visit),
            ArgumentMeta::Int(_) | ArgumentMeta::Ints(_) | ArgumentMeta::Plain(_) => {}
        }
    }
}

impl<'a> From<&'a Meta> for ArgumentMeta<'a> {
    fn from(meta: &'a Meta) -> ArgumentMeta<'a> {
        ArgumentMeta::Tensor(meta)
    }
}

impl<'a> From<Arg<'a>> for ArgumentMeta<'a> {
    fn from(arg: Arg<'a>) -> ArgumentMeta<'a> {
        ArgumentMeta::Plain(arg)
    }
}
