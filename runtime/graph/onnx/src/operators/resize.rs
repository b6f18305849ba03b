//! Images of other sizes, and images at the places of a grid.
//!
//! In: calls. Out: results. Ways to resize that the library's operators have go to them; others are computed along each
//! dimension from the places of its elements.

use opsmith_core::DType;
use opsmith_runtime::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::pointwise::to;
use crate::call::{Call, axes};
use crate::errors::unsupported;
use crate::libraries::run;

/// A dimension with its new size.
struct Axis {
    dim: i64,
    from: i64,
    to: i64,
    /// How many times larger the result is, if the model says it.
    scale: Option<f64>,
    /// The part of the dimension that `tf_crop_and_resize` takes.
    part: (f64, f64),
}

impl Axis {
    /// The new size before it is rounded.
    fn whole(&self) -> f64 {
        self.scale.map_or(self.to as f64, |scale| scale * self.from as f64)
    }
}

/// The attributes.
struct Options {
    mode: String,
    transformation: String,
    rounding: String,
    cubic: f64,
    exclude_outside: bool,
    extrapolation: f64,
    antialias: bool,
}

pub(super) fn resize(call: &Call<'_>) -> Result<Tensor> {
    let x = call.tensor(0)?;
    let options = Options {
        mode: call.text("mode", "nearest")?,
        transformation: call.text("coordinate_transformation_mode", "half_pixel")?,
        rounding: call.text("nearest_mode", "round_prefer_floor")?,
        cubic: call.float("cubic_coeff_a", -0.75)?,
        exclude_outside: call.flag("exclude_outside", false)?,
        extrapolation: call.float("extrapolation_value", 0.0)?,
        antialias: call.flag("antialias", false)?,
    };
    let resized = axes_of(call, &x, &options)?;
    if options.antialias
        && call.varies
        && resized.iter().any(|axis| axis.scale.is_none() && axis.from != axis.to)
    {
        return Err(unsupported("`antialias` with `sizes`, of images whose sizes are symbols")
            .with_help("a filter's length is the scale's: export the model with `scales`, or with sizes that are numbers"));
    }
    if let Some(result) = by_library(&x, &resized, &options)? {
        return Ok(result);
    }
    let float = x.dtype().is_float() || options.mode == "nearest";
    let wide = if float { x.clone() } else { to(&x, DType::F32)? };
    let result = resized
        .iter()
        .filter(|axis| axis.from != axis.to || options.transformation == "tf_crop_and_resize")
        .try_fold(wide, |x, axis| along(&x, axis, &options))?;
    if float { Ok(result) } else { to(&run!("round", &result)?, x.dtype()) }
}

/// The dimensions with their new sizes.
fn axes_of(call: &Call<'_>, x: &Tensor, options: &Options) -> Result<Vec<Axis>> {
    let dims = match call.ints("axes")? {
        Some(given) => axes(&given, x.dim())?,
        None => (0..x.dim() as i64).collect(),
    };
    let count = dims.len();
    let scales =
        call.datum(2).map(|datum| datum.floats("scales")).transpose()?.filter(|scales| !scales.is_empty());
    let sizes = call.numbers(3, "sizes")?.filter(|sizes| !sizes.is_empty());
    let regions = match options.transformation.as_str() {
        "tf_crop_and_resize" => call.given(1)?.floats("roi")?,
        _ => vec![0.0; 2 * count],
    };
    let given = scales.as_ref().map_or(0, Vec::len) + sizes.as_ref().map_or(0, Vec::len);
    if given != count || regions.len() != 2 * count {
        return Err(Error::argument(format!(
            "one of `scales` and `sizes` must have {count} numbers, and `roi` twice as many if it is used"
        )));
    }
    let from = |at: usize| x.shape()[dims[at] as usize];
    let policy = call.text("keep_aspect_ratio_policy", "stretch")?;
    let ratios = || sizes.iter().flatten().enumerate().map(|(at, size)| *size as f64 / from(at) as f64);
    let common = match policy.as_str() {
        "stretch" => None,
        "not_larger" => Some(ratios().fold(f64::INFINITY, f64::min)),
        "not_smaller" => Some(ratios().fold(0.0, f64::max)),
        other => return Err(unsupported(format!("`keep_aspect_ratio_policy` = {other:?}"))),
    };
    let axis = |at: usize| {
        let (to, scale) = match (&scales, &sizes, common) {
            // Sizes are products of floats of 32 bits.
            (Some(scales), ..) => ((from(at) as f32 * scales[at] as f32).floor() as i64, Some(scales[at])),
            (None, Some(sizes), None) => (sizes[at], None),
            (None, Some(_), Some(common)) => ((common * from(at) as f64).round() as i64, Some(common)),
            (None, None, _) => (from(at), None),
        };
        Axis { dim: dims[at], from: from(at), to, scale, part: (regions[at], regions[count + at]) }
    };
    Ok((0..count).map(axis).collect())
}

/// The result of the library's operator for this way to resize, if there is one.
fn by_library(x: &Tensor, resized: &[Axis], options: &Options) -> Result<Option<Tensor>> {
    let space = x.dim().saturating_sub(2);
    let changed = |axis: &&Axis| axis.from != axis.to || axis.scale.is_some_and(|scale| scale != 1.0);
    if !(1..=3).contains(&space)
        || resized.iter().filter(changed).any(|axis| axis.dim < 2)
        || options.exclude_outside
        || options.antialias
    {
        return Ok(None);
    }
    let corners = options.transformation == "align_corners";
    if corners && resized.iter().any(|axis| axis.whole() != axis.to as f64) {
        return Ok(None);
    }
    let middles = matches!(options.transformation.as_str(), "half_pixel" | "pytorch_half_pixel");
    let name = match (options.mode.as_str(), options.transformation.as_str(), options.rounding.as_str()) {
        ("nearest", "asymmetric", "floor") => {
            ["upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"]
        }
        ("nearest", "half_pixel", "round_prefer_ceil") => {
            ["_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"]
        }
        ("linear", ..) if corners || middles => {
            ["upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d"]
        }
        ("cubic", ..) if (corners || middles) && space == 2 && options.cubic == -0.75 => {
            ["", "upsample_bicubic2d", ""]
        }
        _ => return Ok(None),
    }[space - 1];
    let nearest = options.mode == "nearest";
    if !(x.dtype().is_float() || nearest && x.dtype() == DType::U8) {
        return Ok(None);
    }
    let find = |dim: usize| resized.iter().find(|axis| axis.dim as usize == dim);
    let sizes: Vec<i64> = (2..x.dim()).map(|dim| find(dim).map_or(x.shape()[dim], |axis| axis.to)).collect();
    // A single place is the first one for `pytorch_half_pixel`, and the middle for the operators.
    if options.transformation == "pytorch_half_pixel" && sizes.contains(&1) || sizes.contains(&0) {
        return Ok(None);
    }
    let mut args: Vec<Value> = vec![x.into(), sizes.into()];
    if !nearest {
        args.push(corners.into());
    }
    for dim in 2..x.dim() {
        args.push(find(dim).and_then(|axis| axis.scale).map_or(Value::None, Value::Float));
    }
    crate::libraries::one(name, &args, &[]).map(Some)
}

fn number(value: f64) -> Result<Tensor> {
    run!("full", Vec::<i64>::new(), value; "dtype" => DType::F64)
}

/// A size, which may vary, as a tensor.
fn size(value: i64) -> Result<Tensor> {
    run!("full", Vec::<i64>::new(), value; "dtype" => DType::F64)
}

/// The places of a dimension's new elements among its own.
fn coordinates(axis: &Axis, transformation: &str) -> Result<Tensor> {
    let places = run!("arange", axis.to; "dtype" => DType::F64)?;
    let (from, into) = (size(axis.from)?, size(axis.to)?);
    let scale = match axis.scale {
        Some(scale) => number(scale)?,
        None => run!("div.Tensor", &into, &from)?,
    };
    let middles = |places: &Tensor| {
        let middle = run!("div.Tensor", run!("add.Scalar", places, 0.5)?, &scale)?;
        run!("add.Scalar", &middle, -0.5)
    };
    let zeros = || run!("zeros_like", &places);
    match transformation {
        "half_pixel" => middles(&places),
        "pytorch_half_pixel" if axis.to == 1 => zeros(),
        "pytorch_half_pixel" => middles(&places),
        "half_pixel_symmetric" => {
            let adjustment = run!("div.Tensor", &into, run!("mul.Tensor", &scale, &from)?)?;
            let missing = run!("rsub.Scalar", &adjustment, 1.0)?;
            let offset = run!("mul.Tensor", run!("mul.Scalar", &from, 0.5)?, &missing)?;
            run!("add.Tensor", middles(&places)?, &offset)
        }
        "align_corners" if axis.whole() == 1.0 => zeros(),
        "align_corners" => {
            let last = match axis.scale {
                Some(_) => number(axis.whole() - 1.0)?,
                None => size(axis.to - 1)?,
            };
            run!("mul.Tensor", &places, run!("div.Tensor", size(axis.from - 1)?, &last)?)
        }
        "asymmetric" => run!("div.Tensor", &places, &scale),
        "tf_crop_and_resize" => {
            let (start, end) = axis.part;
            let last = size(axis.from - 1)?;
            if axis.to == 1 {
                let middle = run!("mul.Scalar", &last, 0.5 * (start + end))?;
                return run!("add.Tensor", zeros()?, &middle);
            }
            let ratio = run!("div.Tensor", run!("mul.Scalar", &last, end - start)?, size(axis.to - 1)?)?;
            run!("add.Tensor", run!("mul.Tensor", &places, &ratio)?, run!("mul.Scalar", &last, start)?)
        }
        other => Err(unsupported(format!("`coordinate_transformation_mode` = {other:?}"))),
    }
}

/// The weights of neighbours, from the first one's offset on, for places between them.
fn weights(fraction: &Tensor, options: &Options) -> Result<(i64, Vec<Tensor>)> {
    if options.mode == "linear" {
        return Ok((0, vec![run!("rsub.Scalar", fraction, 1.0)?, fraction.clone()]));
    }
    let (near, far) = cubics(options.cubic);
    let rest = run!("rsub.Scalar", fraction, 1.0)?;
    let each = [
        polynomial(&run!("add.Scalar", fraction, 1.0)?, far)?,
        polynomial(fraction, near)?,
        polynomial(&rest, near)?,
        polynomial(&run!("add.Scalar", &rest, 1.0)?, far)?,
    ];
    Ok((-1, each.into()))
}

/// Weights as [`weights`] gives them, of a filter that is as wide as a place if there are less places than elements.
fn filter(fraction: &Tensor, scale: f64, options: &Options) -> Result<(i64, Vec<Tensor>)> {
    let scale = scale.min(1.0);
    let reach = if options.mode == "linear" { 1.0 } else { 2.0 };
    let first = (-reach / scale).floor() + 1.0;
    // An image without places has no scale.
    if first.is_nan() || first <= -4096.0 {
        return Err(unsupported(format!("`antialias` with a scale of {scale}")));
    }
    let first = first as i64;
    let mut factors = (first..2 - first)
        .map(|offset| {
            let apart = run!("abs", run!("rsub.Scalar", fraction, offset as f64)?)?;
            of_distance(&run!("mul.Scalar", &apart, scale)?, options)
        })
        .collect::<Result<Vec<_>>>()?;
    let sum = factors
        .iter()
        .skip(1)
        .try_fold(factors[0].clone(), |sum, factor| run!("add.Tensor", &sum, factor))?;
    for factor in &mut factors {
        *factor = run!("div.Tensor", &*factor, &sum)?;
    }
    Ok((first, factors))
}

/// The weight of elements at a distance: 0 from 1 on, or from 2 on for cubics.
fn of_distance(distance: &Tensor, options: &Options) -> Result<Tensor> {
    if options.mode == "linear" {
        return run!("clamp_min", run!("rsub.Scalar", distance, 1.0)?, 0.0);
    }
    let (near, far) = cubics(options.cubic);
    let (near, far) = (polynomial(distance, near)?, polynomial(distance, far)?);
    let zero = run!("zeros_like", &near)?;
    let beyond = run!("where.self", run!("lt.Scalar", distance, 2.0)?, &far, &zero)?;
    run!("where.self", run!("le.Scalar", distance, 1.0)?, &near, &beyond)
}

/// The polynomial c3 d³ + c2 d² + c1 d + c0 of a distance.
fn polynomial(distance: &Tensor, [c3, c2, c1, c0]: [f64; 4]) -> Result<Tensor> {
    let first = run!("add.Scalar", run!("mul.Scalar", distance, c3)?, c2)?;
    let second = run!("add.Scalar", run!("mul.Tensor", &first, distance)?, c1)?;
    run!("add.Scalar", run!("mul.Tensor", &second, distance)?, c0)
}

/// Coefficients of the cubic's polynomials for distances up to 1 and up to 2.
fn cubics(a: f64) -> ([f64; 4], [f64; 4]) {
    ([a + 2.0, -(a + 3.0), 0.0, 1.0], [a, -5.0 * a, 8.0 * a, -4.0 * a])
}

/// A tensor resized along one dimension.
fn along(x: &Tensor, axis: &Axis, options: &Options) -> Result<Tensor> {
    let places = coordinates(axis, &options.transformation)?;
    let last = axis.from - 1;
    let at = |places: &Tensor| to(&run!("clamp", places, 0i64, last)?, DType::I64);
    let taken = |places: &Tensor| run!("index_select", x, axis.dim, at(places)?);
    let mut shape = vec![1i64; x.dim()];
    shape[axis.dim as usize] = axis.to;
    let result = match options.mode.as_str() {
        "nearest" => {
            let rounded = match options.rounding.as_str() {
                "round_prefer_floor" => run!("ceil", run!("add.Scalar", &places, -0.5)?)?,
                "round_prefer_ceil" => run!("floor", run!("add.Scalar", &places, 0.5)?)?,
                "floor" => run!("floor", &places)?,
                "ceil" => run!("ceil", &places)?,
                other => return Err(unsupported(format!("`nearest_mode` = {other:?}"))),
            };
            taken(&rounded)?
        }
        "linear" | "cubic" => {
            let floor = run!("floor", &places)?;
            let fraction = run!("sub.Tensor", &places, &floor)?;
            let (first, mut factors) = match options.antialias {
                true => filter(&fraction, axis.whole() / axis.from as f64, options)?,
                false => weights(&fraction, options)?,
            };
            let neighbour = |offset: usize| run!("add.Scalar", &floor, first + offset as i64);
            if options.exclude_outside {
                factors = inside(&factors, neighbour, last)?;
            }
            let mut sum: Option<Tensor> = None;
            for (offset, factor) in factors.iter().enumerate() {
                let factor = to(&run!("reshape", factor, shape.clone())?, x.dtype())?;
                let part = run!("mul.Tensor", taken(&neighbour(offset)?)?, &factor)?;
                sum = Some(match sum {
                    Some(sum) => run!("add.Tensor", &sum, &part)?,
                    None => part,
                });
            }
            sum.ok_or_else(|| Error::argument("there are no neighbours"))?
        }
        other => return Err(unsupported(format!("`mode` = {other:?}"))),
    };
    if options.transformation != "tf_crop_and_resize" {
        return Ok(result);
    }
    let below = run!("lt.Scalar", &places, 0i64)?;
    let beyond = run!("logical_or", &below, run!("gt.Scalar", &places, last)?)?;
    let value = run!("full", Vec::<i64>::new(), options.extrapolation; "dtype" => x.dtype())?;
    run!("where.self", run!("reshape", &beyond, shape)?, &value, &result)
}

/// Weights of which those of neighbours outside are 0, and which add up to 1.
fn inside(factors: &[Tensor], neighbour: impl Fn(usize) -> Result<Tensor>, last: i64) -> Result<Vec<Tensor>> {
    let mut kept: Vec<Tensor> = Vec::new();
    for (offset, factor) in factors.iter().enumerate() {
        let place = neighbour(offset)?;
        let low = run!("ge.Scalar", &place, 0i64)?;
        let within = run!("logical_and", &low, run!("le.Scalar", &place, last)?)?;
        kept.push(run!("where.self", &within, factor, run!("zeros_like", factor)?)?);
    }
    let sum =
        kept.iter().skip(1).try_fold(kept[0].clone(), |sum, factor| run!("add.Tensor", &sum, factor))?;
    kept.iter().map(|factor| run!("div.Tensor", factor, &sum)).collect()
}

pub(super) fn grid_sample(call: &Call<'_>) -> Result<Tensor> {
    let (x, grid) = (call.tensor(0)?, call.tensor(1)?);
    let name = match x.dim() {
        4 => "grid_sampler_2d",
        5 => "grid_sampler_3d",
        dims => {
            return Err(
                unsupported(format!("an input of {dims} dimensions")).with_help("images have 4, volumes 5")
            );
        }
    };
    let mode = match call.text("mode", "linear")?.as_str() {
        "linear" | "bilinear" => 0i64,
        "nearest" => 1,
        "cubic" | "bicubic" => 2,
        other => return Err(unsupported(format!("`mode` = {other:?}"))),
    };
    let padding = match call.text("padding_mode", "zeros")?.as_str() {
        "zeros" => 0i64,
        "border" => 1,
        "reflection" => 2,
        other => return Err(unsupported(format!("`padding_mode` = {other:?}"))),
    };
    run!(name, &x, to(&grid, x.dtype())?, mode, padding, call.flag("align_corners", false)?)
}
