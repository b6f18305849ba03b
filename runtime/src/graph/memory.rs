//! Where in one piece of memory each buffer lies.
//!
//! In: how large buffers are and from which to which step they are needed. Out: an offset for each, such
//! that buffers that are needed at the same time do not overlap.

/// Offsets are multiples of this, so that a tensor of any dtype can start there.
pub(super) const ALIGNMENT: usize = 64;

/// One buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lifetime {
    /// How large it is.
    pub bytes: usize,
    /// The first step that needs it.
    pub first: usize,
    /// The last step that needs it.
    pub last: usize,
}

/// Where buffers lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Placement {
    /// The offset of each buffer in bytes.
    pub offsets: Vec<usize>,
    /// How much memory they take together.
    pub bytes: usize,
}

/// Places the largest buffers first, each where the gap that it leaves is smallest.
pub(super) fn place(lifetimes: &[Lifetime]) -> Placement {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(lifetimes[index].bytes), lifetimes[index].first));
    let mut offsets = vec![0; lifetimes.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0;
    for index in order {
        let lifetime = lifetimes[index];
        if lifetime.bytes == 0 {
            continue;
        }
        let size = round_up(lifetime.bytes);
        let (mut best, mut gap_of_best, mut end) = (None, usize::MAX, 0);
        // `placed` is kept in the order of offsets.
        for &other in &placed {
            let neighbour = lifetimes[other];
            if neighbour.last < lifetime.first || lifetime.last < neighbour.first {
                continue;
            }
            if offsets[other] >= end + size && offsets[other] - end < gap_of_best {
                (best, gap_of_best) = (Some(end), offsets[other] - end);
            }
            end = end.max(offsets[other] + round_up(neighbour.bytes));
        }
        let offset = best.unwrap_or(end);
        offsets[index] = offset;
        total = total.max(offset + size);
        let position = placed.partition_point(|&other| offsets[other] <= offset);
        placed.insert(position, index);
    }
    Placement { offsets, bytes: total }
}

fn round_up(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}
