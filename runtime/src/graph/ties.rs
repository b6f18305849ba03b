//! Unifies data-dependent sizes that must be equal for the trace to succeed.
//!
//! In: how many such sizes there are, and how far the function gets where some of them are equal. Out: which of them
//! have to be. Two selections by one mask have as many elements, which shapes alone do not tell; while a function is
//! traced every such size is another number, so it stops where it needs two to be equal. A run compares them.

/// For each size the first one it is equal to, itself if no other. None if no choice lets the function reach its end.
///
/// `steps` says after how many steps the function stops, or nothing if it reaches its end. Of all pairs that could be
/// equal, one that lets it get further is taken each time, so sizes are not taken to be equal without need.
pub(super) fn find(count: usize, steps: &dyn Fn(&[usize]) -> Option<usize>) -> Option<Vec<usize>> {
    let mut ties: Vec<usize> = (0..count).collect();
    while let Some(reached) = steps(&ties) {
        let mut furthest: Option<(usize, Vec<usize>)> = None;
        for (first, second) in pairs(&ties) {
            let tied: Vec<usize> = ties.iter().map(|&tie| if tie == second { first } else { tie }).collect();
            match steps(&tied) {
                None => return Some(tied),
                Some(after) if after > furthest.as_ref().map_or(reached, |(steps, _)| *steps) => {
                    furthest = Some((after, tied));
                }
                Some(_) => {}
            }
        }
        ties = furthest?.1;
    }
    Some(ties)
}

/// Two sizes that are not equal yet, each the first of those it is equal to.
fn pairs(ties: &[usize]) -> Vec<(usize, usize)> {
    let firsts: Vec<usize> = (0..ties.len()).filter(|&size| ties[size] == size).collect();
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
        move |ties| needs.iter().position(|(a, b)| ties[*a] != ties[*b])
    }

    #[test]
    fn only_what_has_to_be_equal_is() {
        assert_eq!(find(3, &stops(&[])), Some(vec![0, 1, 2]));
        assert_eq!(find(4, &stops(&[(0, 2), (1, 3)])), Some(vec![0, 1, 0, 1]));
        assert_eq!(find(4, &stops(&[(2, 3), (1, 3)])), Some(vec![0, 1, 1, 1]));
        assert_eq!(find(2, &|_| Some(5)), None);
    }
}
