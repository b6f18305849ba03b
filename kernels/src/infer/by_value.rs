//! Shapes that the elements of tensors decide, for sizes that are numbers or not known yet.
//!
//! In: an inference context. Out: shapes and dtypes of the results, set in it. The elements are those of inputs that the
//! spec declares in `value_depends`.

use std::collections::HashSet;

use opsmith_runtime::element::named;
use opsmith_runtime::infer::InferContext;
use opsmith_runtime::infer::symbolic::{Shape, Size};
use opsmith_runtime::{DType, Dims, Element, Error, Result, Scalar, Tensor, View, with_dtype};

use crate::cpu::by_value::count_different;

/// `self` in the shape that the elements of `shape` are; one of them may be -1.
///
/// # Errors
/// If the number of elements differs, or cannot be shared out.
pub fn reshape_by_tensor(context: &mut InferContext<'_>) -> Result<()> {
    let wanted = known_elements(context, "shape")?;
    let numel = context.shape("self")?.numel();
    let refused = |why: &str| Error::shape(format!("{numel} elements cannot have the shape {wanted:?}{why}"));
    if wanted.iter().filter(|size| **size == -1).count() > 1 || wanted.iter().any(|size| *size < -1) {
        return Err(refused("").with_help("sizes are 0 or more; one may be -1"));
    }
    let known =
        wanted.iter().filter(|size| **size != -1).try_fold(1i64, |product, size| product.checked_mul(*size));
    let known = Size::Const(known.ok_or_else(|| refused(", which is too large"))?);
    let rest = match wanted.contains(&-1) {
        true if known == 0 => return Err(refused(": -1 may be anything")),
        true => context.symbols().quotient(&numel, &known),
        false => Size::Const(1),
    };
    let equal = context.equal(&(&rest * &known), &numel);
    context.require(equal, &refused("").to_string())?;
    let sizes = wanted.into_iter().map(|size| if size == -1 { rest.clone() } else { Size::Const(size) });
    context.set_shape(0, sizes.collect::<Vec<_>>())?;
    follow(context)
}

/// `self` repeated as often along each dimension as the elements of `repeats` say.
///
/// # Errors
/// If there are fewer repetitions than dimensions, or one is negative.
pub fn repeat_by_tensor(context: &mut InferContext<'_>) -> Result<()> {
    let repeats = known_elements(context, "repeats")?;
    let shape = match context.shape("self")?.sizes() {
        None => Shape::UnknownRank,
        Some(sizes) => {
            let new =
                repeats.len().checked_sub(sizes.len()).filter(|_| repeats.iter().all(|count| *count >= 0));
            let Some(new) = new else {
                return Err(Error::value(format!("{repeats:?} cannot repeat {} dimensions", sizes.len()))
                    .with_help("give a number, 0 or more, for each dimension; more come first"));
            };
            let old = std::iter::repeat_n(Size::Const(1), new).chain(sizes.iter().cloned());
            old.zip(&repeats).map(|(size, count)| size * Size::Const(*count)).collect()
        }
    };
    context.set_whole_shape(0, shape)?;
    follow(context)
}

/// The numbers from `start` to before `end`.
///
/// # Errors
/// As [`super::arange`].
pub fn arange_by_tensor(context: &mut InferContext<'_>) -> Result<()> {
    let [start, end, step] = ["start", "end", "step"].map(|name| one(context, name));
    let sizes = super::arange(Scalar::Int(start?), Scalar::Int(end?), Scalar::Int(step?), None)?;
    context.set_shape(0, sizes.into_iter().map(Size::Const))?;
    follow_dtype(context, "end")
}

/// As a slice whose ends are the elements of `start` and `end`.
///
/// # Errors
/// If there is no such dimension or the step is not positive.
pub fn slice_by_tensor(context: &mut InferContext<'_>) -> Result<()> {
    let (start, end) = (one(context, "start")?, one(context, "end")?);
    let (dim, step) = (context.attribute::<i64>("dim")?, context.attribute::<i64>("step")?);
    if step <= 0 {
        return Err(Error::value(format!("the step is {step}, but must be positive")));
    }
    let shape = match context.shape("self")?.sizes() {
        None => Shape::UnknownRank,
        Some(sizes) => {
            let at = opsmith_runtime::layout::wrap_dim(dim, sizes.len())?;
            let mut sizes = sizes.to_vec();
            let Some(size) = sizes.get_mut(at) else {
                return Err(Error::shape("a tensor without dimensions cannot be sliced"));
            };
            let zero = Size::Const(0);
            // Ends count from the back if negative, and are cut at the ends of the dimension.
            let cut = |context: &mut InferContext<'_>, end: i64, size: &Size| {
                let end = if end < 0 { size + &Size::Const(end) } else { Size::Const(end) };
                let symbols = context.symbols();
                let least = symbols.greater(&end, &zero);
                symbols.smaller(&least, size)
            };
            let (from, to) = (cut(context, start, size), cut(context, end, size));
            let symbols = context.symbols();
            let length = symbols.greater(&(to - from), &zero);
            *size = symbols.quotient(&(length + Size::Const(step - 1)), &Size::Const(step));
            sizes.into_iter().collect()
        }
    };
    context.set_whole_shape(0, shape)?;
    follow(context)
}

/// The number of elements that differ, as the size of the vector of them.
///
/// # Errors
/// If the elements cannot be read.
pub fn unique(self_: &Tensor) -> Result<Dims> {
    // Sorted keys are counted faster than a table of those that were seen.
    macro_rules! sorted {
        ($($variant:ident),*) => {
            match self_.dtype() {
                $(DType::$variant => self_.with_view(|view: View<'_, named::$variant>| count_different(&view)),)*
                other => with_dtype!(other, T => self_.with_view(|view: View<'_, T>| different(view))),
            }
        };
    }
    let found = sorted!(Bool, U8, U16, U32, U64, I8, I16, I32, I64, F16, BF16, F32, F64)?;
    Ok(Dims::from_slice(&[found as i64]))
}

/// The sum of repetitions, as the size of the vector of repeated positions; `output_size` if that is given.
///
/// # Errors
/// If one is negative, the sum is too large, or the elements cannot be read.
pub fn repeated_positions(repeats: &Tensor, output_size: Option<i64>) -> Result<Dims> {
    if let Some(size) = output_size {
        return match size {
            0.. => Ok(Dims::from_slice(&[size])),
            _ => {
                Err(Error::value(format!("`output_size` is {size}"))
                    .with_help("give the sum of the repetitions"))
            }
        };
    }
    let counts = match repeats.dtype() {
        DType::I32 => repeats.to_vec::<i32>()?.into_iter().map(i64::from).collect(),
        _ => repeats.to_vec::<i64>()?,
    };
    if let Some(negative) = counts.iter().find(|count| **count < 0) {
        return Err(Error::value(format!("nothing can be repeated {negative} times")));
    }
    let sum = counts.iter().try_fold(0i64, |sum, count| sum.checked_add(*count));
    let sum = sum.ok_or_else(|| Error::value("the sum of the repetitions is too large"))?;
    Ok(Dims::from_slice(&[sum]))
}

/// Number of elements that differ from all before them.
fn different<T: Element>(view: View<'_, T>) -> usize {
    let mut seen = HashSet::new();
    let is_new = |element: &T| {
        let (key, is_nan) = match element.to_scalar() {
            Scalar::Bool(value) => ((u64::from(value), 0), false),
            Scalar::Int(value) => ((value as u64, 0), false),
            // Adding zero makes -0 equal to 0.
            Scalar::Float(value) => (((value + 0.0).to_bits(), 0), value.is_nan()),
            Scalar::Complex(value) => {
                let key = ((value.re + 0.0).to_bits(), (value.im + 0.0).to_bits());
                (key, value.re.is_nan() || value.im.is_nan())
            }
        };
        // NaN differs from everything, itself included.
        is_nan || seen.insert(key)
    };
    view.iter().filter(is_new).count()
}

/// How often each dimension was repeated to get from one shape to another.
pub fn repeats_between(from: &[i64], to: &[i64]) -> Result<Dims> {
    let new = to.len().saturating_sub(from.len());
    let count = |(dim, &size): (usize, &i64)| match dim.checked_sub(new).map(|old| from[old]) {
        None => size,
        Some(0) => 1,
        Some(old) => size / old,
    };
    Ok(to.iter().enumerate().map(count).collect())
}

/// The elements of a tensor of `int64`.
///
/// # Errors
/// If it is of another dtype.
pub fn elements(tensor: &Tensor) -> Result<Dims> {
    Ok(Dims::from_vec(tensor.to_vec::<i64>()?))
}

/// The elements of an input whose value must be known.
fn known_elements(context: &InferContext<'_>, name: &str) -> Result<Vec<i64>> {
    if let Some(rank @ 2..) = context.shape(name)?.rank() {
        return Err(
            Error::shape(format!("`{name}` has {rank} dimensions")).with_help("give a list of integers")
        );
    }
    context
        .value::<i64>(name)?
        .ok_or_else(|| Error::value(format!("the elements of `{name}` are not known before the run")))
}

/// The only element of an input.
fn one(context: &InferContext<'_>, name: &str) -> Result<i64> {
    match known_elements(context, name)?.as_slice() {
        [only] => Ok(*only),
        several => {
            Err(Error::shape(format!("`{name}` has {} elements", several.len())).with_help("give one"))
        }
    }
}

/// The result has the dtype of `self`.
fn follow(context: &mut InferContext<'_>) -> Result<()> {
    follow_dtype(context, "self")
}

fn follow_dtype(context: &mut InferContext<'_>, name: &str) -> Result<()> {
    let dtype = context.dtype(name)?;
    context.set_dtype(0, dtype)
}
