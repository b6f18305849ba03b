//! Connectionist temporal classification (Graves et al. 2006): the likelihood of a sequence of labels, where at each time
//! there is a label or a blank, and a label may last.
//!
//! `log_probs` are logarithms of probabilities, `(times, samples, classes)`; labels are a row a sample, or all in one vector.
//! A sequence of `n` labels has `2 n + 1` states: blanks between labels, before and after them.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::{Element, Error, Result, Scratch, View, ViewMut};

use super::float::Float;
use super::strides::expect_operand;
use crate::infer::ctc_samples;

/// The labels of each sample.
pub struct Labels<'a> {
    labels: Scratch<i64>,
    /// Distance between the rows of samples; labels lie side by side in a vector.
    row: Option<usize>,
    lengths: &'a [i64],
    classes: i64,
    blank: i64,
}

impl<'a> Labels<'a> {
    fn new(targets: &View<'_, i64>, lengths: &'a [i64], classes: i64, blank: i64) -> Result<Labels<'a>> {
        expect_blank(blank, classes)?;
        let row = (targets.dim() == 2).then(|| targets.sizes()[1] as usize);
        let labels = Labels {
            labels: targets.to_contiguous().iter().copied().collect(),
            row,
            lengths,
            classes,
            blank,
        };
        for sample in 0..lengths.len() {
            if let Some(label) = labels.of(sample).iter().find(|label| !(0..classes).contains(*label)) {
                return Err(Error::index(format!(
                    "label {label} of sample {sample} is not one of {} classes",
                    labels.classes
                ))
                .with_help("labels are counted from 0; those after the length of a row may be anything"));
            }
        }
        Ok(labels)
    }

    fn of(&self, sample: usize) -> &[i64] {
        let length = self.lengths[sample] as usize;
        let start = match self.row {
            Some(row) => sample * row,
            None => self.lengths[..sample].iter().sum::<i64>() as usize,
        };
        &self.labels[start..start + length]
    }

    /// The backward variables of a sample's states at one time, from those of the next time, which `beta` holds before.
    fn step_back(&self, labels: &[i64], logarithms: &[f64], is_last: bool, beta: &mut [f64]) {
        let states = beta.len();
        // States are passed in ascending order, so that those after one are still of the next time.
        for state in 0..states {
            let paths = if is_last {
                if state + 2 >= states { 0.0 } else { f64::NEG_INFINITY }
            } else {
                let to = |ahead: usize, open: bool| {
                    if open && state + ahead < states { beta[state + ahead] } else { f64::NEG_INFINITY }
                };
                let over = state + 2 < states && self.skips(labels, state + 2);
                log_sum(&[to(0, true), to(1, true), to(2, over)])
            };
            beta[state] = paths + logarithms[self.class(labels, state)];
        }
    }

    /// The class of a state.
    fn class(&self, labels: &[i64], state: usize) -> usize {
        if state.is_multiple_of(2) { self.blank as usize } else { labels[state / 2] as usize }
    }

    /// Whether a path may go to a state from two states before: over a blank between different labels.
    fn skips(&self, labels: &[i64], state: usize) -> bool {
        state >= 2
            && self.class(labels, state) != self.blank as usize
            && self.class(labels, state) != self.class(labels, state - 2)
    }
}

/// Refuses a blank that is no class.
///
/// # Errors
/// As it says.
pub(crate) fn expect_blank(blank: i64, classes: i64) -> Result<()> {
    match (0..classes).contains(&blank) {
        true => Ok(()),
        false => Err(Error::index(format!("the blank {blank} is not one of {classes} classes"))),
    }
}

/// The logarithm of a sum of exponentials.
fn log_sum(logarithms: &[f64]) -> f64 {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        // All probabilities are zero, or one is no number.
        return logarithms.iter().copied().fold(largest, |sum, each| if each.is_nan() { each } else { sum });
    }
    largest + logarithms.iter().map(|each| (each - largest).exp()).sum::<f64>().ln()
}

/// Sizes that the kernels share.
pub(crate) struct Sizes {
    pub times: usize,
    pub samples: usize,
    pub classes: usize,
    pub states: usize,
}

impl Sizes {
    /// Sizes of operands that go together; those of states may have room for more labels than there are.
    ///
    /// # Errors
    /// If they do not.
    pub fn new(
        log_probs: &[i64],
        targets: &[i64],
        log_alpha: &[i64],
        input_lengths: &[i64],
        target_lengths: &[i64],
    ) -> Result<Sizes> {
        ctc_samples(log_probs, targets, input_lengths, target_lengths)?;
        let longest = target_lengths.iter().copied().max().unwrap_or(0);
        match (log_probs, log_alpha) {
            (&[times, samples, classes], &[rows, steps, states])
                if (rows, steps) == (samples, times) && states > longest.saturating_mul(2) =>
            {
                let [times, samples, classes, states] =
                    [times, samples, classes, states].map(|size| size as usize);
                Ok(Sizes { times, samples, classes, states })
            }
            _ => Err(Error::shape(format!(
                "states are (samples, times, 2 longest + 1), got {} for logarithms of probabilities {} and {longest} labels",
                ShapeText(log_alpha),
                ShapeText(log_probs)
            ))),
        }
    }
}

/// The negative logarithm of each sample's likelihood, `(samples)`, and those of all states' paths from the start, `(samples,
/// times, states)`; states that a sample does not have are impossible.
///
/// # Errors
/// If a label is no class.
pub fn forward<T: Element<Compute: Float>>(
    log_probs: View<'_, T>,
    targets: View<'_, i64>,
    input_lengths: &[i64],
    target_lengths: &[i64],
    blank: i64,
    mut losses: ViewMut<'_, T>,
    mut log_alpha: ViewMut<'_, T>,
) -> Result<()> {
    let sizes =
        Sizes::new(log_probs.sizes(), targets.sizes(), log_alpha.sizes(), input_lengths, target_lengths)?;
    let labels = Labels::new(&targets, target_lengths, sizes.classes as i64, blank)?;
    let logarithms = doubles(&log_probs);
    let mut alpha = Scratch::filled(f64::NEG_INFINITY, sizes.samples * sizes.times * sizes.states);
    let mut found = Scratch::filled(0.0, sizes.samples);
    for sample in 0..sizes.samples {
        let own = labels.of(sample);
        let steps = input_lengths[sample] as usize;
        let rows = &mut alpha[sample * sizes.times * sizes.states..][..sizes.times * sizes.states];
        let states = 2 * own.len() + 1;
        for time in 0..steps {
            let at = |state| {
                logarithms[(time * sizes.samples + sample) * sizes.classes + labels.class(own, state)]
            };
            let (before, now) = rows.split_at_mut(time * sizes.states);
            for (state, logarithm) in now.iter_mut().enumerate().take(states) {
                let paths = match before.len().checked_sub(sizes.states) {
                    None if state < 2 => 0.0,
                    None => f64::NEG_INFINITY,
                    Some(last) => {
                        let from = |back: usize, open: bool| match state.checked_sub(back) {
                            Some(state) if open => before[last + state],
                            _ => f64::NEG_INFINITY,
                        };
                        log_sum(&[from(0, true), from(1, true), from(2, labels.skips(own, state))])
                    }
                };
                *logarithm = paths + at(state);
            }
        }
        found[sample] = match steps.checked_sub(1) {
            None if own.is_empty() => 0.0,
            None => f64::INFINITY,
            Some(last) => -log_sum(&rows[last * sizes.states..][states.saturating_sub(2)..states]),
        };
    }
    losses.write(found.iter().map(|loss| T::from_compute(T::Compute::of(*loss))))?;
    log_alpha.write(alpha.iter().map(|each| T::from_compute(T::Compute::of(*each))))
}

/// The gradient of [`forward`]'s losses by the scores whose logarithms of probabilities `log_probs` are: softmax less the
/// share of paths. That of samples with no possible path is zero with `zero_infinity`, else not a number.
///
/// # Errors
/// As [`forward`].
#[allow(clippy::too_many_arguments, reason = "the arguments are those of the operator")]
pub fn backward<T: Element<Compute: Float>>(
    grad: View<'_, T>,
    log_probs: View<'_, T>,
    targets: View<'_, i64>,
    input_lengths: &[i64],
    target_lengths: &[i64],
    losses: View<'_, T>,
    log_alpha: View<'_, T>,
    blank: i64,
    zero_infinity: bool,
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    let sizes =
        Sizes::new(log_probs.sizes(), targets.sizes(), log_alpha.sizes(), input_lengths, target_lengths)?;
    expect_operand("grad", grad.sizes(), &[sizes.samples as i64])?;
    expect_operand("neg_log_likelihood", losses.sizes(), &[sizes.samples as i64])?;
    let labels = Labels::new(&targets, target_lengths, sizes.classes as i64, blank)?;
    let logarithms = doubles(&log_probs);
    let alpha = doubles(&log_alpha);
    let (grads, losses) = (doubles(&grad), doubles(&losses));
    let mut result = Scratch::filled(0.0, logarithms.len());
    let mut shares = Scratch::filled(0.0, sizes.classes);
    let mut beta = Scratch::filled(0.0, sizes.states);
    for sample in 0..sizes.samples {
        if zero_infinity && losses[sample] == f64::INFINITY {
            continue;
        }
        let own = labels.of(sample);
        let states = 2 * own.len() + 1;
        let steps = input_lengths[sample] as usize;
        for time in (0..steps).rev() {
            let row = (time * sizes.samples + sample) * sizes.classes;
            let is_last = time + 1 == steps;
            labels.step_back(own, &logarithms[row..row + sizes.classes], is_last, &mut beta[..states]);
            shares.fill(f64::NEG_INFINITY);
            let alphas = &alpha[(sample * sizes.times + time) * sizes.states..][..states];
            for (state, alpha) in alphas.iter().enumerate() {
                let class = labels.class(own, state);
                shares[class] = log_sum(&[shares[class], alpha + beta[state]]);
            }
            for (class, share) in shares.iter().enumerate() {
                let logarithm = logarithms[row + class];
                result[row + class] =
                    (logarithm.exp() - (share + losses[sample] - logarithm).exp()) * grads[sample];
            }
        }
    }
    out.write(result.iter().map(|each| T::from_compute(T::Compute::of(*each))))
}

/// Each loss divided by the length of its labels, at least 1.
///
/// # Errors
/// If there is another number of lengths.
pub fn by_length<T: Element<Compute: Float>>(
    losses: View<'_, T>,
    lengths: &[i64],
    mut out: ViewMut<'_, T>,
) -> Result<()> {
    expect_lengths(losses.numel(), lengths)?;
    let losses = doubles(&losses);
    let quotients = losses.iter().zip(lengths).map(|(loss, length)| loss / (*length).max(1) as f64);
    out.write(quotients.map(|each| T::from_compute(T::Compute::of(each))))
}

/// Refuses another number of lengths than of losses.
///
/// # Errors
/// As it says.
pub(crate) fn expect_lengths(losses: usize, lengths: &[i64]) -> Result<()> {
    match losses == lengths.len() {
        true => Ok(()),
        false => Err(Error::shape(format!("{losses} losses do not have {} lengths", lengths.len()))),
    }
}

fn doubles<T: Element<Compute: Float>>(view: &View<'_, T>) -> Scratch<f64> {
    view.iter().map(|element| element.to_compute().double()).collect()
}
