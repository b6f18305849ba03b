//! Boxes and regions of images, and convolutions whose windows are moved.
//!
//! In: calls. Out: results.

use opsmith_core::DType;
use opsmith_runtime::Value;
use opsmith_runtime::error::{Error, Result};
use opsmith_runtime::tensor::Tensor;

use super::convolution::{Windows, space};
use super::pointwise::to;
use crate::call::Call;
use crate::errors::unsupported;
use crate::libraries::{run, tensors};

/// A number that is known, of an operand with one element.
fn known(call: &Call<'_>, position: usize, what: &str) -> Result<Option<f64>> {
    match call.datum(position).map(|datum| datum.floats(what)).transpose()?.as_deref() {
        None => Ok(None),
        Some([only]) => Ok(Some(*only)),
        Some(several) => {
            Err(Error::argument(format!("`{what}` is one number, and {} are given", several.len())))
        }
    }
}

/// Boxes as the lowest and the highest place along two dimensions.
fn corners(boxes: &Tensor, by_centre: bool) -> Result<Tensor> {
    let first = run!("slice.Tensor", boxes, -1i64, 0i64, 2i64)?;
    let second = run!("slice.Tensor", boxes, -1i64, 2i64, 4i64)?;
    let (low, high) = match by_centre {
        false => (run!("minimum", &first, &second)?, run!("maximum", &first, &second)?),
        true => {
            let half = run!("mul.Scalar", &second, 0.5)?;
            (run!("sub.Tensor", &first, &half)?, run!("add.Tensor", &first, &half)?)
        }
    };
    run!("cat", vec![low, high], -1i64)
}

/// For each sample and class, the boxes that overlap no better one that is kept: sample, class and box of each.
pub(super) fn non_max_suppression(call: &Call<'_>) -> Result<Tensor> {
    let (boxes, scores) = (call.tensor(0)?, call.tensor(1)?);
    let (&[samples, count, 4], &[_, classes, _]) = (boxes.shape(), scores.shape()) else {
        return Err(Error::shape("boxes are (samples, boxes, 4), and scores (samples, classes, boxes)"));
    };
    let most = call.number(2, "max_output_boxes_per_class")?.unwrap_or(0);
    let threshold = known(call, 3, "iou_threshold")?.unwrap_or(0.0);
    call.opens_sizes.set(true);
    let descending = [("stable", true.into()), ("dim", (-1i64).into()), ("descending", true.into())];
    let sorted = tensors("sort.stable", &[(&scores).into()], &descending)?;
    let [scores, order] = &sorted[..] else { return Err(Error::argument("a sort without places")) };
    // Boxes of each class in the order of its scores.
    let shape = vec![samples, classes, count, 4];
    let all = corners(&boxes, call.flag("center_point_box", false)?)?;
    let all = run!("expand", run!("unsqueeze", &all, 1i64)?, shape.clone())?;
    let places = run!("expand", run!("unsqueeze", order, -1i64)?, shape)?;
    let mut kept = run!("_kept_boxes", run!("gather", &all, 2i64, &places)?, threshold)?;
    if let Some(least) = known(call, 4, "score_threshold")? {
        kept = run!("logical_and", &kept, run!("gt.Scalar", scores, least)?)?;
    }
    let number = run!("cumsum", &kept, -1i64; "dtype" => DType::I64)?;
    kept = run!("logical_and", &kept, run!("le.Scalar", &number, most)?)?;
    let found = run!("nonzero", &kept)?;
    let part = |at: i64| run!("select.int", &found, 1i64, at);
    let parts = [part(0)?, part(1)?, part(2)?];
    let chosen = run!("index.Tensor", order, parts.iter().cloned().map(Some).collect::<Vec<_>>())?;
    let [sample, class, _] = parts;
    run!("stack", vec![sample, class, chosen], 1i64)
}

pub(super) fn roi_align(call: &Call<'_>) -> Result<Tensor> {
    let (x, rois, samples) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let aligned = match call.text("coordinate_transformation_mode", "half_pixel")?.as_str() {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return Err(unsupported(format!("`coordinate_transformation_mode` = {other:?}"))),
    };
    let largest = match call.text("mode", "avg")?.as_str() {
        "avg" => false,
        "max" => true,
        other => return Err(unsupported(format!("`mode` = {other:?}"))),
    };
    let samples = run!("unsqueeze", to(&samples, x.dtype())?, -1i64)?;
    let rois = run!("cat", vec![samples, to(&rois, x.dtype())?], 1i64)?;
    run!(
        "_roi_cells",
        &x,
        &rois,
        call.float("spatial_scale", 1.0)?,
        call.int("output_height", 1)?,
        call.int("output_width", 1)?,
        call.int("sampling_ratio", 0)?,
        aligned,
        largest
    )
}

pub(super) fn deform_conv(call: &Call<'_>) -> Result<Tensor> {
    let (x, weight, offset) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    if x.dim() != 4 || weight.dim() != 4 {
        return Err(unsupported(format!("an input of {} dimensions", x.dim())).with_help("images have 4"));
    }
    let windows = Windows::of(call, &space(&x)?, weight.shape()[2..].to_vec())?;
    let bias = match call.maybe(3)? {
        Some(bias) => bias,
        None => run!("zeros", vec![weight.shape()[0]]; "dtype" => x.dtype())?,
    };
    let mask = call.maybe(4)?;
    let mut args: Vec<Value> = vec![(&x).into(), (&weight).into(), (&offset).into()];
    args.extend([mask.as_ref().unwrap_or(&offset).into(), (&bias).into()]);
    // The offsets have a place for each of the result, so that zeros behind the input need no number.
    for pair in [&windows.strides, &windows.before, &windows.dilations] {
        args.extend(pair.iter().map(|number| Value::from(*number)));
    }
    args.extend([call.int("group", 1)?.into(), call.int("offset_group", 1)?.into(), mask.is_some().into()]);
    crate::libraries::one("deform_conv2d", &args, &[])
}
