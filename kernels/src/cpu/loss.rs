//! Losses that are more than an expression of each element.

use opsmith_runtime::arith::Arithmetic;
use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Dims, Element, Error, Result, Scratch, Untyped, View, ViewMut};

use super::strides::expect_operand;

/// Scores of classes `(classes)` or `(samples, classes, places…)`, seen as samples, classes and places.
pub(crate) struct Scores {
    pub samples: usize,
    pub classes: usize,
    pub places: usize,
}

impl Scores {
    pub(crate) fn new(scores: &[i64], target: &[i64], weight: Option<&[i64]>) -> Result<Scores> {
        let (samples, classes, places) = match scores {
            [] => return Err(Error::shape("scores without dimensions have no classes")),
            [classes] => (&[][..], *classes, &[][..]),
            [samples, classes, places @ ..] => (std::slice::from_ref(samples), *classes, places),
        };
        let wanted: Dims = samples.iter().chain(places).copied().collect();
        if target != &wanted[..] {
            return Err(Error::shape(format!(
                "scores {} need classes {}, got {}",
                ShapeText(scores),
                ShapeText(&wanted),
                ShapeText(target)
            ))
            .with_help("classes are dimension 1 of the scores, or the only one"));
        }
        if let Some(weight) = weight {
            expect_operand("weight", weight, &[classes])?;
        }
        let count = |sizes: &[i64]| sizes.iter().product::<i64>() as usize;
        Ok(Scores { samples: count(samples), classes: classes as usize, places: count(places) })
    }

    /// Calls `body` with the number of each target that counts, its class, and the place of its score.
    fn for_each_counted(
        &self,
        target: &[i64],
        ignored: i64,
        mut body: impl FnMut(usize, usize, usize),
    ) -> Result<()> {
        for (number, &class) in target.iter().enumerate() {
            if class == ignored {
                continue;
            }
            let class =
                usize::try_from(class).ok().filter(|class| *class < self.classes).ok_or_else(|| {
                    Error::index(format!("class {class} is not one of {}", self.classes))
                        .with_help("classes are counted from 0; `ignore_index` marks those that do not count")
                })?;
            let (sample, place) = (number / self.places.max(1), number % self.places.max(1));
            body(number, class, (sample * self.classes + class) * self.places + place);
        }
        Ok(())
    }
}

fn weights<T: Element<Compute: Arithmetic>>(
    weight: Option<View<'_, T>>,
    classes: usize,
) -> Scratch<T::Compute> {
    match weight {
        Some(weight) => weight.iter().map(T::to_compute).collect(),
        None => Scratch::filled(T::Compute::ONE, classes),
    }
}

/// The negative log likelihood of the classes in `target`, and the sum of the weights that a mean divides by.
///
/// `reduction` is 0 for a loss each (and no sum), 1 for their mean, 2 for their sum. Wants all operands
/// contiguous.
///
/// # Errors
/// If the shapes do not go together, or a class does not exist.
pub fn nll_loss_forward<T: Element<Compute: Arithmetic>>(
    self_: View<'_, T>,
    target: View<'_, i64>,
    weight: Option<View<'_, T>>,
    reduction: i64,
    ignore_index: i64,
    mut out: ViewMut<'_, T>,
    mut total_weight: ViewMut<'_, T>,
) -> Result<()> {
    let shape = Scores::new(self_.sizes(), target.sizes(), weight.as_ref().map(|weight| weight.sizes()))?;
    let (scores, target) = (self_.to_contiguous(), target.to_contiguous());
    let weights = weights(weight, shape.classes);
    let each =
        |class: usize, at: usize| Arithmetic::neg(Arithmetic::mul(weights[class], scores[at].to_compute()));
    let mut total = T::Compute::ZERO;
    if reduction == 0 {
        let mut losses = Scratch::filled(T::default(), target.len());
        shape.for_each_counted(&target, ignore_index, |number, class, at| {
            losses[number] = T::from_compute(each(class, at));
            // As in PyTorch, scores without samples have a total even where nothing is reduced.
            if self_.dim() == 1 {
                total = weights[class];
            }
        })?;
        out.write(losses)?;
    } else {
        let mut sum = T::Compute::ZERO;
        shape.for_each_counted(&target, ignore_index, |_, class, at| {
            sum = Arithmetic::add(sum, each(class, at));
            total = Arithmetic::add(total, weights[class]);
        })?;
        let loss = if reduction == 1 { Arithmetic::div(sum, total) } else { sum };
        out.write([T::from_compute(loss)])?;
    }
    total_weight.write([T::from_compute(total)])
}

/// The gradient of [`nll_loss_forward`] by the scores.
///
/// # Errors
/// As [`nll_loss_forward`].
#[allow(clippy::too_many_arguments, reason = "the signature is the operator's")]
pub fn nll_loss_backward<T: Element<Compute: Arithmetic>>(
    grad_output: View<'_, T>,
    self_: Untyped<'_>,
    target: View<'_, i64>,
    weight: Option<View<'_, T>>,
    reduction: i64,
    ignore_index: i64,
    total_weight: View<'_, T>,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let shape = Scores::new(self_.sizes(), target.sizes(), weight.as_ref().map(|weight| weight.sizes()))?;
    expect_operand("grad_output", grad_output.sizes(), if reduction == 0 { target.sizes() } else { &[] })?;
    let (grads, target) = (grad_output.to_contiguous(), target.to_contiguous());
    let weights = weights(weight, shape.classes);
    let total = total_weight.iter().next().map_or(T::Compute::ONE, T::to_compute);
    let mut gradients = Scratch::filled(T::default(), shape.samples * shape.classes * shape.places);
    shape.for_each_counted(&target, ignore_index, |number, class, at| {
        let grad = grads[if reduction == 0 { number } else { 0 }].to_compute();
        let share = if reduction == 1 { Arithmetic::div(grad, total) } else { grad };
        gradients[at] = T::from_compute(Arithmetic::neg(Arithmetic::mul(weights[class], share)));
    })?;
    out.write(gradients)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_and_places_are_counted_row_by_row() {
        let shape = Scores::new(&[2, 3, 2], &[2, 2], None).unwrap();
        let mut seen = Vec::new();
        shape
            .for_each_counted(&[0, 2, -100, 1], -100, |number, class, at| seen.push((number, class, at)))
            .unwrap();
        assert_eq!(seen, [(0, 0, 0), (1, 2, 5), (3, 1, 9)]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(Scores::new(&[], &[], None).is_err());
        assert!(Scores::new(&[2, 3], &[3], None).is_err());
        assert!(Scores::new(&[2, 3], &[2], Some(&[2])).is_err());
        let shape = Scores::new(&[3], &[], None).unwrap();
        let error = shape.for_each_counted(&[3], -100, |_, _, _| ()).unwrap_err();
        assert!(error.to_string().starts_with("class 3 is not one of 3"), "{error}");
    }
}
