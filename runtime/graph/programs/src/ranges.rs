//! Ranges of symbols that conditions on inputs leave.
//!
//! In: inputs, the conditions of the exporter, and the values at which it exported. Out: the inputs with narrower bounds, so
//! that a program is traced only at sizes that it accepts. The conditions themselves are evaluated for each run.

use crate::conditions;
use crate::inputs::ProgramInput;
use crate::sizes::ProgramSize;

/// Sizes that are tried before a symbol is narrowed.
const TRIED: [i64; 9] = [2, 3, 5, 6, 7, 11, 64, 1023, 4096];
/// The greatest size that is tried.
const GREATEST: i64 = 1 << 40;

/// Narrows the bounds of symbols whose example is known.
pub(crate) fn narrow(inputs: &mut [ProgramInput], guards: &[String], example: &dyn Fn(&str) -> Option<i64>) {
    if guards.is_empty() {
        return;
    }
    for name in crate::inputs::symbols(inputs) {
        let Some(middle) = example(&name) else { continue };
        let accepts = |value: i64| {
            let size = |input: &str, dim: Option<usize>| {
                let input = inputs.iter().find(|known| known.name == input)?;
                match input.sizes.get(dim?)? {
                    ProgramSize::Fixed(size) => Some(*size),
                    ProgramSize::Symbol { name: known, .. } if *known == name => Some(value),
                    // A condition on several symbols bounds none of them alone.
                    ProgramSize::Symbol { .. } | ProgramSize::Sum { .. } => None,
                }
            };
            guards.iter().all(|guard| conditions::holds(guard, &size) != Some(false))
        };
        if !accepts(middle) || TRIED.into_iter().all(accepts) {
            continue;
        }
        let range = accepted(middle, &accepts);
        for size in inputs.iter_mut().flat_map(|input| &mut input.sizes) {
            if let ProgramSize::Symbol { name: known, multiple_of, least, most } = size
                && *known == name
                && *multiple_of == 1
            {
                *multiple_of = range.step;
                *least = (*least).max(range.least);
                *most = [*most, range.most].into_iter().flatten().min();
            }
        }
    }
}

/// Multiples of a step between bounds.
#[derive(PartialEq, Debug)]
struct Accepted {
    step: i64,
    least: i64,
    most: Option<i64>,
}

/// The multiples around a value that are accepted, with the least step that has a neighbour.
fn accepted(middle: i64, accepts: &dyn Fn(i64) -> bool) -> Accepted {
    let has_neighbour = |step: &i64| accepts(middle + step) || middle > *step && accepts(middle - step);
    let step = (1..=middle).filter(|step| middle % step == 0).find(has_neighbour);
    let Some(step) = step else { return Accepted { step: 1, least: middle, most: Some(middle) } };
    // The number of steps that are accepted in a direction, all of those before being so, too.
    let reach = |limit: i64, at: &dyn Fn(i64) -> i64| {
        let mut ahead = 1;
        while ahead <= limit && accepts(at(ahead)) {
            ahead *= 2;
        }
        let (mut low, mut high) = (ahead / 2, ahead.min(limit + 1));
        while high - low > 1 {
            let between = low + (high - low) / 2;
            match accepts(at(between)) {
                true => low = between,
                false => high = between,
            }
        }
        low
    };
    let above = reach((GREATEST - middle) / step, &|steps| middle + steps * step);
    let below = reach(middle / step, &|steps| middle - steps * step);
    let (least, most) = (middle - below * step, middle + above * step);
    // Sizes 0 and 1 are specialised when a program is exported, and accepted when it runs.
    let least = if least <= 2 { 0 } else { least };
    Accepted { step, least, most: (most + step < GREATEST).then_some(most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_accepted_around_a_value_is_found() {
        let of = |middle, accepts: &dyn Fn(i64) -> bool| {
            let Accepted { step, least, most } = accepted(middle, accepts);
            (step, least, most)
        };
        assert_eq!(of(9, &|size| size <= 2048), (1, 0, Some(2048)));
        assert_eq!(of(9, &|size| size >= 5), (1, 5, None));
        assert_eq!(of(16, &|size| size % 8 == 0), (8, 0, None));
        assert_eq!(of(16, &|size| size % 8 == 0 && (16..=40).contains(&size)), (8, 16, Some(40)));
        assert_eq!(of(7, &|size| size == 7), (1, 7, Some(7)));
    }
}
