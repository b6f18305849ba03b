//! Buffers in memory of outputs, until these are written.
//!
//! In: buffers with their live ranges, and the outputs of a device with the level from which each is used. Out: a place in an
//! output's memory for buffers that would make the arena larger.

use std::cmp::Reverse;

use super::offsets::{Lifetime, LiveBytes, alignment, round_up};

/// Memory that is free until a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Its size.
    pub bytes: usize,
    /// The first level that uses it otherwise.
    pub until: usize,
}

/// Lends rooms to buffers: as long as one that is live at the fullest level fits into a room, the largest such buffer leaves the
/// arena for it. The number of each buffer's room, and the offset there.
pub(crate) fn lend(lifetimes: &[Lifetime], rooms: &[Room]) -> Vec<Option<(usize, usize)>> {
    /// Number of buffers that can be looked at in a few milliseconds.
    const FEW: usize = 100_000;
    let mut lent: Vec<Option<(usize, usize)>> = vec![None; lifetimes.len()];
    let ends = rooms.iter().map(|room| room.until).max().unwrap_or(0);
    if !lifetimes.iter().any(|lifetime| lifetime.last < ends) {
        return lent;
    }
    let mut kept = LiveBytes::new(lifetimes, round_up);
    for _ in 0..FEW / lifetimes.len() {
        let (level, _) = kept.most();
        let is_live =
            |lifetime: &Lifetime| lifetime.bytes > 0 && (lifetime.first..=lifetime.last).contains(&level);
        let mut live: Vec<usize> = (0..lifetimes.len())
            .filter(|&index| lent[index].is_none() && is_live(&lifetimes[index]))
            .collect();
        live.sort_by_key(|&index| Reverse(lifetimes[index].bytes));
        let fits = |index: usize| {
            let mut all = rooms.iter().enumerate();
            all.find_map(|(number, room)| Some((number, gap(index, number, room, lifetimes, &lent)?)))
        };
        let Some((index, place)) = live.into_iter().find_map(|index| Some((index, fits(index)?))) else {
            break;
        };
        lent[index] = Some(place);
        kept.remove(&lifetimes[index], round_up(lifetimes[index].bytes));
    }
    lent
}

/// The first offset at which a buffer fits into a room, beside those that are lent to it and live together with the buffer.
fn gap(
    index: usize,
    number: usize,
    room: &Room,
    lifetimes: &[Lifetime],
    lent: &[Option<(usize, usize)>],
) -> Option<usize> {
    let own = lifetimes[index];
    if own.last >= room.until || own.bytes > room.bytes {
        return None;
    }
    let mut taken: Vec<(usize, usize)> = lifetimes
        .iter()
        .zip(lent)
        .filter_map(|(other, lent)| {
            let (_, offset) = lent.filter(|(room, _)| *room == number)?;
            let together = other.first <= own.last && own.first <= other.last;
            together.then_some((offset, offset + round_up(other.bytes)))
        })
        .collect();
    taken.sort_unstable();
    let mut offset = 0;
    for (start, end) in taken {
        if offset + own.bytes <= start {
            break;
        }
        offset = offset.max(end).next_multiple_of(alignment(own.bytes));
    }
    (offset + own.bytes <= room.bytes).then_some(offset)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::offsets::most_alive;
    use super::*;

    #[test]
    fn the_largest_buffers_of_the_fullest_level_are_lent() {
        let lifetimes = [
            Lifetime { bytes: 100, first: 0, last: 1 },
            Lifetime { bytes: 300, first: 1, last: 2 },
            Lifetime { bytes: 64, first: 2, last: 5 },
            Lifetime { bytes: 10, first: 5, last: 6 },
        ];
        let room = |bytes: usize, until: usize| [Room { bytes, until }];
        assert_eq!(lend(&lifetimes, &room(320, 6)), [None, Some((0, 0)), None, None]);
        // Too small, and used too early.
        assert_eq!(lend(&lifetimes, &room(299, 6)), [Some((0, 0)), None, Some((0, 0)), None]);
        assert_eq!(lend(&lifetimes, &room(320, 2)), [Some((0, 0)), None, None, None]);
        assert_eq!(lend(&lifetimes, &room(320, 1)), [None; 4]);
        assert_eq!(lend(&lifetimes, &[]), [None; 4]);
        let all = [Some((0, 320)), Some((0, 0)), Some((0, 320)), Some((0, 0))];
        assert_eq!(lend(&lifetimes, &room(1000, 7)), all);
    }

    proptest! {
        #[test]
        fn lent_memory_is_free(
            buffers in prop::collection::vec((prop_oneof![0usize..5000, 0usize..70], 0usize..40, 0usize..20), 1..60),
            rooms in prop::collection::vec((0usize..20000, 0usize..60), 0..4),
        ) {
            let lifetimes: Vec<Lifetime> = buffers
                .into_iter()
                .map(|(bytes, first, length)| Lifetime { bytes, first, last: first + length })
                .collect();
            let rooms: Vec<Room> = rooms.into_iter().map(|(bytes, until)| Room { bytes, until }).collect();
            let lent = lend(&lifetimes, &rooms);
            for (a, first) in lifetimes.iter().enumerate() {
                let Some((room, offset)) = lent[a] else { continue };
                prop_assert!(first.last < rooms[room].until && offset + first.bytes <= rooms[room].bytes);
                prop_assert!(offset.is_multiple_of(alignment(first.bytes)));
                for (b, second) in lifetimes.iter().enumerate().take(a) {
                    let Some((_, other)) = lent[b].filter(|(other, _)| *other == room) else { continue };
                    let together = first.first <= second.last && second.first <= first.last;
                    prop_assert!(!together || other + second.bytes <= offset || offset + first.bytes <= other);
                }
            }
            let kept: Vec<Lifetime> =
                lifetimes.iter().zip(&lent).filter(|(_, lent)| lent.is_none()).map(|(own, _)| *own).collect();
            let before = most_alive(&lifetimes, round_up);
            let after = most_alive(&kept, round_up);
            prop_assert!(after <= before);
        }
    }
}
