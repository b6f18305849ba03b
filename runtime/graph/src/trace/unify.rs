//! Unifies data-dependent sizes that must be equal for the trace to succeed.
//!
//! In: the number of such sizes, and the progress of the trace if some of them are equal. Out: the class of each. Two
//! selections by one mask have equal sizes, which shapes alone do not show: while tracing each such size is a distinct
//! number, so the trace fails where it needs two to be equal. Each run checks the equalities.

/// For each size its representative, the first size equal to it. `None` if no choice lets the trace succeed.
///
/// `steps` gives the number of nodes before the trace stops, or `None` if it succeeds. Each round unifies the pair that
/// lets the trace get furthest, so sizes are not unified without need.
pub(crate) fn find(count: usize, steps: &dyn Fn(&[usize]) -> Option<usize>) -> Option<Vec<usize>> {
    let mut unified: Vec<usize> = (0..count).collect();
    while let Some(reached) = steps(&unified) {
        let mut furthest: Option<(usize, Vec<usize>)> = None;
        for (first, second) in pairs(&unified) {
            let tied: Vec<usize> =
                unified.iter().map(|&tie| if tie == second { first } else { tie }).collect();
            match steps(&tied) {
                None => return Some(tied),
                Some(after) if after > furthest.as_ref().map_or(reached, |(steps, _)| *steps) => {
                    furthest = Some((after, tied));
                }
                Some(_) => {}
            }
        }
        unified = furthest?.1;
    }
    Some(unified)
}

/// Pairs of representatives that are not unified yet.
fn pairs(unified: &[usize]) -> Vec<(usize, usize)> {
    let firsts: Vec<usize> = (0..unified.len()).filter(|&size| unified[size] == size).collect();
    firsts
        .iter()
        .enumerate()
        .flat_map(|(position, &first)| firsts[position + 1..].iter().map(move |&second| (first, second)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::find;

    /// A function that needs pairs to be equal, at some of its steps.
    fn stops(needs: &'static [(usize, usize)]) -> impl Fn(&[usize]) -> Option<usize> {
        move |unified| needs.iter().position(|(a, b)| unified[*a] != unified[*b])
    }

    #[test]
    fn only_what_has_to_be_equal_is() {
        assert_eq!(find(3, &stops(&[])), Some(vec![0, 1, 2]));
        assert_eq!(find(4, &stops(&[(0, 2), (1, 3)])), Some(vec![0, 1, 0, 1]));
        assert_eq!(find(4, &stops(&[(2, 3), (1, 3)])), Some(vec![0, 1, 1, 1]));
        assert_eq!(find(2, &|_| Some(5)), None);
    }
}
