//! The hand-written functions of the spec, with correct types.

use opsmith_runtime::{
    DType, Dims, Element, Error, Generator, Layout, MemoryFormat, MemoryLayout, Result, Scalar, Tensor, View,
    ViewMut,
};

fn nothing<T>() -> Result<T> {
    Err(Error::not_implemented("the golden kernels compute nothing"))
}

pub mod lists;

/// Scalar functions.
pub mod scalar {
    use opsmith_runtime::Element;
    use opsmith_runtime::arith::Arithmetic;

    /// A placeholder for a function of floats.
    pub fn grow<T: Arithmetic>(x: T) -> T {
        x.add(T::ONE)
    }

    /// A placeholder for an absolute value.
    pub fn magnitude<T: Element>(x: T) -> T::Real {
        T::Real::from_scalar(x.to_scalar())
    }

    /// A placeholder for a conjugate.
    pub fn mirror<T: Arithmetic>(x: T) -> T {
        x
    }

    /// A placeholder for a predicate of an integer.
    pub fn odd<T: Element>(x: T) -> bool {
        x.to_scalar().to_i64() % 2 == 1
    }

    /// A placeholder for a function of two arguments.
    pub fn mix<T: Arithmetic>(a: T, b: T) -> T {
        a.add(b)
    }
}

/// Conditions.
pub mod mode_ok {
    use super::*;

    /// A placeholder for a condition.
    pub fn yes(_text: &str, _n: i64) -> Result<bool> {
        Ok(true)
    }
}

/// Rules of inference.
pub mod rules {
    use opsmith_runtime::infer::InferContext;
    use opsmith_runtime::infer::symbolic::{Condition, Size};

    use super::*;

    /// A placeholder for a rule.
    pub fn sizes(tensor: &Tensor, _ints: Option<&[i64]>) -> Result<Dims> {
        Ok(Dims::from_slice(tensor.shape()))
    }

    /// `n` elements and `n` indices; with a negative `n` it leaves the second output unset.
    pub fn decided(context: &mut InferContext<'_>) -> Result<()> {
        let n = context.attribute::<Size>("n")?;
        let dtype = context.dtype("self")?;
        context.set_shape("wide", [n.clone(), context.size("self", 0)?])?;
        context.set_dtype("wide", dtype)?;
        if context.less(&n, &Size::Const(0)) == Condition::True {
            return Ok(());
        }
        let more = i64::from(context.optional_input("other")?.is_some());
        context.set_shape("place", [n + Size::Const(more)])?;
        context.set_dtype("place", DType::I64)
    }

    /// A data-dependent size.
    pub fn counted(tensor: &Tensor) -> Result<Dims> {
        Ok(Dims::from_slice(&[tensor.item()?.to_i64()]))
    }
}

/// Layouts.
pub mod view {
    use super::*;

    /// Swaps two dimensions.
    pub fn flipped(_layout: &Layout, _dim0: i64, _dim1: i64) -> Result<Layout> {
        nothing()
    }

    /// A placeholder for a part.
    pub fn narrowed(_layout: &Layout, _dim: i64) -> Result<Layout> {
        nothing()
    }

    /// One layout for each row.
    pub fn rows(_layout: &Layout) -> Result<Vec<Layout>> {
        nothing()
    }
}

/// Host functions.
pub mod host {
    use super::*;

    /// The only element.
    pub fn item(_tensor: &Tensor) -> Result<Scalar> {
        nothing()
    }

    /// A truth value.
    pub fn is_flat(_tensor: &Tensor, _dim: i64) -> Result<bool> {
        nothing()
    }

    /// A text.
    pub fn type_name(_tensor: &Tensor, _function: &Tensor, _moved: i64) -> Result<String> {
        nothing()
    }

    /// A list.
    pub fn shape_of(tensor: &Tensor) -> Result<Vec<i64>> {
        Ok(tensor.shape().to_vec())
    }
}

/// Kernels.
#[allow(clippy::too_many_arguments, reason = "the signatures have that many")]
pub mod kernel {
    use super::*;
    use opsmith_runtime::{Device, Element, Untyped, View, ViewMut};

    /// Converts.
    pub fn converted<T: Element>(_tensor: Untyped<'_>, _out: ViewMut<'_, T>) -> Result<()> {
        nothing()
    }

    /// Sums to a shape.
    pub fn summed_to<T: Element>(_tensor: View<'_, T>, _size: &[i64], _out: ViewMut<'_, T>) -> Result<()> {
        nothing()
    }

    /// The matrix product.
    pub fn product<T: Element>(_a: View<'_, T>, _b: View<'_, T>, _out: ViewMut<'_, T>) -> Result<()> {
        nothing()
    }

    /// Takes all arguments.
    pub fn many<T: Element>(
        _tensor: View<'_, T>,
        _maybe: Option<View<'_, i64>>,
        _list: &[View<'_, T>],
        _holes: &[Option<View<'_, i64>>],
        _flag: bool,
        _flag_q: Option<bool>,
        _n: i64,
        _n_q: Option<i64>,
        _x: f64,
        _x_q: Option<f64>,
        _s: Scalar,
        _s_q: Option<Scalar>,
        _text: &str,
        _text_q: Option<&str>,
        _ints: &[i64],
        _ints_q: Option<&[i64]>,
        _floats: &[f64],
        _floats_q: Option<&[f64]>,
        _bools: &[bool],
        _scalars: &[Scalar],
        _dtype: DType,
        _dtype_q: Option<DType>,
        _device: Device,
        _device_q: Option<Device>,
        _format: MemoryFormat,
        _format_q: Option<MemoryFormat>,
        _layout: Option<MemoryLayout>,
        _generator: Option<&Generator>,
        _first: ViewMut<'_, f32>,
        _second: ViewMut<'_, T::Real>,
    ) -> Result<()> {
        nothing()
    }

    /// Takes some of the arguments.
    pub fn many_defaults<T: Element>(
        _tensor: View<'_, T>,
        _n: i64,
        _s: Scalar,
        _pair: &[i64],
        _bias: Option<View<'_, T>>,
        _out: ViewMut<'_, T>,
    ) -> Result<()> {
        nothing()
    }

    /// Gives two gradients.
    pub fn many_defaults_backward<T: Element>(
        _grad: View<'_, T>,
        _sizes: &[i64],
        _mask: &[bool],
        _first: ViewMut<'_, T>,
        _second: ViewMut<'_, T>,
    ) -> Result<()> {
        nothing()
    }

    /// Takes attributes of every kind, all read by inference.
    pub fn unusual<T: Element>(
        _tensor: View<'_, T>,
        _other: View<'_, T>,
        _bias: Option<View<'_, T>>,
        _n: i64,
        _x: f64,
        _dims: &[i64],
        _first: ViewMut<'_, f32>,
        _second: ViewMut<'_, f32>,
        _third: ViewMut<'_, f32>,
    ) -> Result<()> {
        nothing()
    }

    /// Twice the elements; the mean moves towards the first; the scale is 2.
    pub fn balanced<T: Element>(
        tensor: View<'_, T>,
        mean: Option<View<'_, T>>,
        momentum: f64,
        mut out: ViewMut<'_, T>,
        mut mean_out: ViewMut<'_, T>,
        mut scale: ViewMut<'_, T>,
    ) -> Result<()> {
        let number = |value: T| value.to_scalar().to_f64();
        let of = |value: f64| T::from_scalar(Scalar::Float(value));
        let first = tensor.iter().next().map_or(0.0, number);
        let before = mean.and_then(|mean| mean.iter().next()).map_or(0.0, number);
        out.write(tensor.iter().map(|value| of(2.0 * number(value))))?;
        mean_out.write([of(before + (first - before) * momentum)])?;
        scale.write(tensor.iter().map(|_| of(2.0)))?;
        Ok(())
    }

    /// Fills each piece with its position.
    pub fn pieces<T: Element>(_tensor: View<'_, T>, count: i64, pieces: &mut [ViewMut<'_, T>]) -> Result<()> {
        assert_eq!(pieces.len() as i64, count, "as many as the length says");
        for (position, piece) in pieces.iter_mut().enumerate() {
            piece.write(vec![T::from_scalar(Scalar::Int(position as i64)); position + 1])?;
        }
        Ok(())
    }

    /// A placeholder that writes arbitrary values.
    pub fn decided<T: Element>(
        _tensor: View<'_, T>,
        _other: Option<View<'_, T>>,
        _n: i64,
        _wide: ViewMut<'_, T>,
        _place: ViewMut<'_, i64>,
    ) -> Result<()> {
        nothing()
    }

    /// A placeholder that writes arbitrary values.
    pub fn counted<T: Element>(
        _tensor: View<'_, T>,
        _found: ViewMut<'_, i64>,
        _rest: ViewMut<'_, T>,
    ) -> Result<()> {
        nothing()
    }

    /// A placeholder that writes arbitrary values.
    pub fn chained<T: Element>(
        _tensor: View<'_, T>,
        _other: View<'_, T>,
        _first: ViewMut<'_, f64>,
        _second: ViewMut<'_, f64>,
        _third: ViewMut<'_, bool>,
    ) -> Result<()> {
        nothing()
    }

    /// The tensor again, where it is positive, and the other tensor.
    pub fn masked<T: Element>(
        tensor: View<'_, T>,
        extra: Option<View<'_, T>>,
        keep: bool,
        mut out: ViewMut<'_, T>,
        mask: Option<ViewMut<'_, bool>>,
        more: Option<ViewMut<'_, T>>,
    ) -> Result<()> {
        assert_eq!((mask.is_some(), more.is_some()), (keep, extra.is_some()), "as the conditions say");
        out.write(tensor.iter())?;
        if let Some(mut mask) = mask {
            mask.write(tensor.iter().map(|value| value.to_scalar().to_f64() > 0.0))?;
        }
        if let (Some(mut more), Some(extra)) = (more, extra) {
            more.write(extra.iter())?;
        }
        Ok(())
    }

    /// Each element times the first weight and a number, and their sum.
    pub fn mixed<A: Element, B: Element, Out: Element, Total: Element>(
        tensor: View<'_, A>,
        weight: View<'_, B>,
        x: f64,
        mut out: ViewMut<'_, Out>,
        mut total: ViewMut<'_, Total>,
    ) -> Result<()> {
        let weight = weight.iter().next().map_or(0.0, |weight| weight.to_scalar().to_f64());
        let values: Vec<f64> = tensor.iter().map(|value| value.to_scalar().to_f64() * weight * x).collect();
        out.write(values.iter().map(|value| Out::from_scalar(Scalar::Float(*value))))?;
        total.write([Total::from_scalar(Scalar::Float(values.iter().sum()))])?;
        Ok(())
    }

    /// The same numbers in a smaller type.
    pub fn narrowed<A: Element, Out: Element>(tensor: View<'_, A>, mut out: ViewMut<'_, Out>) -> Result<()> {
        out.write(tensor.iter().map(|value| Out::from_scalar(value.to_scalar())))?;
        Ok(())
    }

    /// Picks by a mask.
    pub fn picked<T: Element>(_a: View<'_, T>, _mask: View<'_, bool>, _out: ViewMut<'_, T>) -> Result<()> {
        nothing()
    }

    /// Joins rows.
    pub fn joined<T: Element>(_tensors: &[View<'_, T>], _dim: i64, _out: ViewMut<'_, T>) -> Result<()> {
        nothing()
    }
}

/// `scale * (self + Σ rest)` where the mask is true, and how many tensors were added.
///
/// # Errors
/// None.
pub fn scaled_sum<T: Element>(
    self_: View<'_, T>,
    rest: &[View<'_, T>],
    mask: Option<View<'_, bool>>,
    scale: f64,
    mut sum: ViewMut<'_, T>,
    mut count: ViewMut<'_, i64>,
) -> Result<()> {
    let rows: Vec<Vec<f64>> = std::iter::once(&self_)
        .chain(rest)
        .map(|view| view.iter().map(|element| element.to_scalar().to_f64()).collect())
        .collect();
    let shown: Option<Vec<bool>> = mask.map(|mask| mask.iter().collect());
    let total = |at: usize| match shown.as_ref().is_none_or(|shown| shown[at]) {
        true => scale * rows.iter().map(|row| row[at]).sum::<f64>(),
        false => 0.0,
    };
    sum.write((0..rows[0].len()).map(|at| T::from_scalar(total(at).into())))?;
    count.write((0..rows[0].len()).map(|_| rows.len() as i64))
}
