//! The number of boxes that are kept, which their numbers decide.

use opsmith_runtime::{DType, Dims, Element, Error, Result, Tensor, View, bf16, f16};

use crate::cpu::detection::best_boxes;
use crate::cpu::float::Float;

/// The number of boxes that overlap no better one that is kept.
///
/// # Errors
/// If the dtypes differ or are no floats, the shapes do not go together, or the elements cannot be read.
pub fn nms(dets: &Tensor, scores: &Tensor, iou_threshold: f64) -> Result<Dims> {
    let found = match dets.dtype() {
        DType::F16 => kept::<f16>(dets, scores, iou_threshold),
        DType::BF16 => kept::<bf16>(dets, scores, iou_threshold),
        DType::F32 => kept::<f32>(dets, scores, iou_threshold),
        DType::F64 => kept::<f64>(dets, scores, iou_threshold),
        other => return Err(Error::dtype(format!("boxes of {other} are no floats"))),
    };
    Ok(Dims::from_slice(&[found?]))
}

fn kept<T: Element<Compute: Float>>(dets: &Tensor, scores: &Tensor, threshold: f64) -> Result<i64> {
    dets.with_view(|dets: View<'_, T>| {
        scores.with_view(|scores: View<'_, T>| {
            let (_, kept) = best_boxes(&dets, &scores, threshold)?;
            Ok(kept.iter().filter(|kept| **kept).count() as i64)
        })
    })??
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_boxes_come_first() {
        let boxes =
            Tensor::from_slice(&[0.0f32, 0.0, 4.0, 4.0, 1.0, 0.0, 5.0, 4.0, 2.0, 0.0, 6.0, 4.0], &[3, 4]);
        let found = |scores: [f32; 3], threshold: f64| {
            nms(boxes.as_ref().unwrap(), &Tensor::of(&scores), threshold).unwrap()[0]
        };
        // The middle one overlaps both others by 3/5.
        assert_eq!(found([0.1, 0.9, 0.5], 0.5), 1);
        assert_eq!(found([0.9, 0.1, 0.5], 0.5), 2);
        assert_eq!(found([0.9, f32::NAN, 0.5], 0.5), 1);
        assert_eq!(found([0.9, 0.1, 0.5], 0.7), 3);
        assert!(nms(boxes.as_ref().unwrap(), &Tensor::of(&[1.0f32]), 0.5).is_err());
        assert!(nms(&Tensor::of(&[1i64]), &Tensor::of(&[1.0f32]), 0.5).is_err());
    }
}
