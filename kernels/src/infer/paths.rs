//! Shapes of connectionist temporal classification: losses of samples, and states of their labels.

use opsmith_runtime::error::ShapeText;
use opsmith_runtime::layout::checked_numel;
use opsmith_runtime::{Dims, Error, Result, Tensor};

/// A loss for each sample.
///
/// # Errors
/// If `log_probs` has not three dimensions (times, samples, classes), labels are no vector and no rows of samples, or there is another
/// number of lengths, or one that is negative, or longer than there are times or labels.
pub fn ctc_losses(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
) -> Result<Dims> {
    let samples = ctc_samples(log_probs.shape(), targets.shape(), input_lengths, target_lengths)?;
    Ok(Dims::from_slice(&[samples]))
}

/// The number of samples whose logarithms of probabilities and labels have these sizes.
///
/// # Errors
/// As [`ctc_losses`].
pub(crate) fn ctc_samples(
    log_probs: &[i64],
    targets: &[i64],
    input_lengths: &[i64],
    target_lengths: &[i64],
) -> Result<i64> {
    let &[times, samples, _] = log_probs else {
        return Err(Error::shape(format!(
            "logarithms of probabilities are (times, samples, classes), got {}",
            ShapeText(log_probs)
        )));
    };
    for (name, lengths) in [("times", input_lengths), ("labels", target_lengths)] {
        if lengths.len() as i64 != samples {
            return Err(Error::shape(format!(
                "{samples} samples do not have {} numbers of {name}",
                lengths.len()
            ))
            .with_help("give a length for each sample"));
        }
        if let Some(length) = lengths.iter().find(|length| **length < 0) {
            return Err(Error::value(format!("a number of {name} is {length}")));
        }
    }
    if let Some(length) = input_lengths.iter().find(|length| **length > times) {
        return Err(Error::value(format!("a sample has {length} times, and there are {times}")));
    }
    match targets {
        &[labels] => {
            let wanted = target_lengths.iter().fold(0i64, |all, &length| all.saturating_add(length));
            if wanted != labels {
                return Err(Error::shape(format!(
                    "the samples have {wanted} labels, and there are {labels}"
                )));
            }
        }
        &[rows, longest] if rows == samples => {
            if let Some(length) = target_lengths.iter().find(|length| **length > longest) {
                return Err(Error::value(format!("a sample has {length} labels, and its row {longest}")));
            }
        }
        other => {
            return Err(Error::shape(format!(
                "labels are a row for each of {samples} samples, or one vector, got {}",
                ShapeText(other)
            )));
        }
    }
    Ok(samples)
}

/// A state for each sample, each time, and each label of the longest sequence with blanks before, between and after its labels.
///
/// # Errors
/// As [`ctc_losses`].
pub fn ctc_states(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: &[i64],
    target_lengths: &[i64],
) -> Result<Dims> {
    let samples = ctc_losses(log_probs, targets, input_lengths, target_lengths)?[0];
    let longest = target_lengths.iter().copied().max().unwrap_or(0);
    let sizes =
        Dims::from_slice(&[samples, log_probs.shape()[0], longest.saturating_mul(2).saturating_add(1)]);
    checked_numel(&sizes)?;
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros(sizes: &[i64]) -> Tensor {
        Tensor::from_slice(&vec![0i64; sizes.iter().product::<i64>() as usize], sizes).unwrap()
    }

    #[test]
    fn lengths_go_with_times_and_labels() {
        let log_probs = zeros(&[4, 2, 3]);
        let states = |targets: &[i64], inputs: &[i64], labels: &[i64]| {
            ctc_states(&log_probs, &zeros(targets), inputs, labels).map(|sizes| sizes.to_vec())
        };
        assert_eq!(states(&[2, 3], &[4, 0], &[3, 1]).unwrap(), [2, 4, 7]);
        assert_eq!(states(&[4], &[4, 4], &[3, 1]).unwrap(), [2, 4, 7]);
        for (targets, inputs, labels) in [
            (&[2, 3][..], &[5, 1][..], &[3, 1][..]),
            (&[2, 3], &[4, 1], &[4, 1]),
            (&[2, 3], &[4], &[3, 1]),
            (&[2, 3], &[4, 4], &[-1, 1]),
            (&[5], &[4, 4], &[3, 1]),
            (&[3, 3], &[4, 4], &[3, 1]),
        ] {
            assert!(states(targets, inputs, labels).is_err(), "{targets:?} {inputs:?} {labels:?}");
        }
        assert!(ctc_losses(&zeros(&[4, 3]), &zeros(&[2, 3]), &[4, 4], &[3, 1]).is_err());
    }
}
