//! Search of points at which opaque inference accepts a call.
//!
//! In: an operator, arguments and the symbols in their sizes. Out: values of the symbols with the numbers that
//! inference gives, and the groups of symbols that have to be equal. Every symbol is varied alone, and all of them
//! together.

use crate::error::Result;
use crate::infer::symbolic::call::{Outcome, Owned, Run};
use crate::infer::symbolic::symbols::{Symbol, Symbols};
use crate::infer::symbolic::tensor_meta::ArgumentMeta;
use crate::op::OpDef;

/// Initial values for all symbols that have no example.
const STARTS: [i64; 8] = [12, 6, 4, 2, 3, 1, 24, 60];
/// Values tried for each symbol alone.
const PROBES: std::ops::Range<i64> = 0..49;
/// Larger values, which reveal clamping at a bound.
const FAR: [i64; 3] = [64, 96, 131];
/// Points at which all symbols change together.
const MIXED: i64 = 40;

/// A point that inference accepts: the values of the leaves, and the numbers of the results.
pub(in crate::infer::symbolic) struct Point {
    pub values: Vec<i64>,
    pub numbers: Vec<i64>,
    pub ranks: Vec<usize>,
    /// The leaf that differs from the first point, if it is the only one.
    pub alone: Option<usize>,
}

/// The leaves that have to be equal, and those that cannot change.
pub(in crate::infer::symbolic) struct Groups {
    pub equal: Vec<(usize, usize)>,
    pub constants: Vec<usize>,
    /// For each leaf, the first leaf of its group.
    of: Vec<usize>,
}

impl Groups {
    /// Whether a point satisfies the guards, as the first point does.
    pub fn admit(&self, point: &Point, first: &Point) -> bool {
        self.equal.iter().all(|&(a, b)| point.values[a] == point.values[b])
            && self.constants.iter().all(|leaf| point.values[*leaf] == first.values[*leaf])
    }
}

pub(in crate::infer::symbolic) struct Search<'a> {
    op: &'static OpDef,
    run: Run,
    args: Vec<ArgumentMeta<'a>>,
    leaves: &'a [Symbol],
    symbols: &'a Symbols,
    pub first: Outcome,
    pub points: Vec<Point>,
    /// Whether other points give another number of results or dimensions.
    pub several_kinds: bool,
    /// The leaves of which a value of 0 or 1 alone changes the number of dimensions, each with that value.
    pub vanishing: Vec<(usize, i64)>,
    /// The results whose rank changes with those leaves.
    pub of_any_rank: Vec<usize>,
    /// Whether the first point consists of example values, so that points like it are the relevant ones.
    pub has_examples: bool,
}

impl<'a> Search<'a> {
    /// Searches a first point.
    pub fn start(
        op: &'static OpDef,
        run: Run,
        owned: &'a [Owned],
        leaves: &'a [Symbol],
        symbols: &'a Symbols,
    ) -> Result<Option<Search<'a>>> {
        let args: Vec<ArgumentMeta<'a>> = owned.iter().map(Owned::as_argument).collect();
        let examples: Vec<Option<i64>> = leaves.iter().map(|leaf| symbols.example(*leaf)).collect();
        let all_given = examples.iter().all(Option::is_some);
        for (attempt, start) in STARTS.into_iter().enumerate() {
            let clamp = |leaf: Symbol| {
                let range = symbols.range(leaf);
                start.clamp(range.low, range.high.max(range.low))
            };
            let values: Vec<i64> = leaves
                .iter()
                .zip(&examples)
                .map(|(leaf, example)| example.unwrap_or_else(|| clamp(*leaf)))
                .collect();
            match outcome(op, run, &args, leaves, symbols, &values) {
                Some(Ok(first)) => {
                    let mut search = Search {
                        op,
                        run,
                        args,
                        leaves,
                        symbols,
                        first,
                        points: Vec::new(),
                        several_kinds: false,
                        vanishing: Vec::new(),
                        of_any_rank: Vec::new(),
                        has_examples: all_given,
                    };
                    let point = search.point(values, &search.first, None);
                    search.points.push(point);
                    return Ok(Some(search));
                }
                Some(Err(error)) if all_given => return Err(error),
                None if attempt == 0 => return Ok(None),
                _ => {}
            }
        }
        Ok(None)
    }

    fn point(&self, values: Vec<i64>, outcome: &Outcome, alone: Option<usize>) -> Point {
        let mut numbers = Vec::new();
        for (layout, _) in &outcome.outs {
            numbers.extend(layout.sizes.iter().chain(&layout.strides).chain([&layout.offset]));
        }
        Point { values, numbers, ranks: outcome.outs.iter().map(|out| out.0.dim()).collect(), alone }
    }

    /// Tries values, and keeps the point if inference accepts it.
    fn attempt(&mut self, values: Vec<i64>, alone: Option<usize>) -> bool {
        let inside =
            values.iter().zip(self.leaves).all(|(value, leaf)| self.symbols.range(*leaf).contains(*value));
        if !inside {
            return false;
        }
        match outcome(self.op, self.run, &self.args, self.leaves, self.symbols, &values) {
            Some(Ok(outcome)) => {
                let point = self.point(values, &outcome, alone);
                if point.ranks != self.points[0].ranks {
                    // Dimensions of size 1 may vanish; this is not a second kind of result, but must be recorded.
                    self.several_kinds |= point.values.iter().all(|value| *value > 1);
                    if let Some(leaf) = alone.filter(|leaf| point.values[*leaf] <= 1) {
                        self.vanishing.push((leaf, point.values[leaf]));
                        let ranks = point.ranks.iter().zip(&self.points[0].ranks).enumerate();
                        self.of_any_rank.extend(ranks.filter(|(_, (a, b))| a != b).map(|(out, _)| out));
                    }
                    return false;
                }
                self.points.push(point);
                true
            }
            _ => false,
        }
    }

    fn start_values(&self) -> Vec<i64> {
        self.points[0].values.clone()
    }

    /// Varies each leaf alone.
    pub fn vary(&mut self) {
        let start = self.start_values();
        for leaf in 0..start.len() {
            let near = start[leaf] + 1..start[leaf] + 10;
            let probes = PROBES.chain(near.filter(|value| !PROBES.contains(value))).chain(FAR);
            for value in probes.filter(|value| *value != start[leaf]) {
                let mut values = start.clone();
                values[leaf] = value;
                self.attempt(values, Some(leaf));
            }
        }
    }

    /// Finds the leaves that only change together.
    pub fn group(&mut self) -> Groups {
        let start = self.start_values();
        // For sizes 0 or 1, inference may accept values that it rejects in general.
        let moved = |points: &[Point], leaf: usize| {
            points.iter().any(|point| point.alone == Some(leaf) && point.values[leaf] > 1)
        };
        let mut stuck: Vec<usize> = (0..start.len()).filter(|leaf| !moved(&self.points, *leaf)).collect();
        let mut groups = Groups { equal: Vec::new(), constants: Vec::new(), of: (0..start.len()).collect() };
        let together = |search: &mut Self, members: &[usize]| {
            [1, 2, start[members[0]]].into_iter().any(|more| {
                let mut values = start.clone();
                members.iter().for_each(|leaf| values[*leaf] += more);
                search.attempt(values, None)
            })
        };
        while let Some(first) = stuck.first().copied() {
            let alike: Vec<usize> =
                stuck[1..].iter().copied().filter(|other| start[*other] == start[first]).collect();
            let pair = alike.iter().copied().find(|other| together(self, &[first, *other]));
            let mut whole = vec![first];
            whole.extend(&alike);
            let members = match pair {
                Some(other) => vec![first, other],
                None if alike.len() > 1 && together(self, &whole) => whole,
                None => vec![first],
            };
            // It may only be bounded by another leaf, which can change without it.
            let bounded = members.len() == 1
                && (0..start.len()).any(|other| {
                    let free = other != first && start[other] == start[first] && !stuck.contains(&other);
                    free && [3, 5, 9, 20].into_iter().fold(together(self, &[first, other]), |any, more| {
                        let mut values = start.clone();
                        [first, other].into_iter().for_each(|leaf| values[leaf] += more);
                        self.attempt(values, None) || any
                    })
                });
            if bounded {
                stuck.remove(0);
                continue;
            }
            if members.len() == 1 {
                groups.constants.push(first);
            }
            for other in &members[1..] {
                groups.equal.push((first, *other));
                groups.of[*other] = first;
            }
            stuck.retain(|leaf| !members.contains(leaf));
        }
        groups
    }

    /// The smallest value of each leaf that inference accepts, where it rejects all smaller ones independently of the
    /// other leaves.
    pub fn least(&self, groups: &Groups) -> Vec<Option<i64>> {
        let start = self.start_values();
        let accepts = |values: &[i64]| {
            outcome(self.op, self.run, &self.args, self.leaves, self.symbols, values)
                .map(|result| result.is_ok())
        };
        let bound = |leaf: usize| {
            let low = self.symbols.range(self.leaves[leaf]).low;
            let alone: Vec<&Point> = self.points.iter().filter(|point| point.alone == Some(leaf)).collect();
            let least = alone.iter().map(|point| point.values[leaf]).chain([start[leaf]]).min()?;
            let tried = PROBES.filter(|value| *value >= least && *value != start[leaf]);
            let all_above =
                tried.count() == alone.iter().filter(|point| PROBES.contains(&point.values[leaf])).count();
            if least <= low || least >= PROBES.end || !all_above || groups.constants.contains(&leaf) {
                return None;
            }
            // The bound must be the same at other points.
            let mut elsewhere = vec![start.clone()];
            for other in (0..start.len()).filter(|other| *other != leaf) {
                let moved = self.points.iter().filter(|point| point.alone == Some(other));
                let values = moved.map(|point| point.values[other]);
                let extremes = [values.clone().min(), values.max()];
                elsewhere.extend(extremes.into_iter().flatten().map(|value| {
                    let mut values = start.clone();
                    values[other] = value;
                    values
                }));
            }
            let at = |values: &[i64], value: i64| {
                let mut values = values.to_vec();
                values[leaf] = value;
                accepts(&values)
            };
            let refuses_below = (low..least).all(|value| at(&start, value) == Some(false));
            let same =
                |values: &Vec<i64>| at(values, least) == Some(true) && at(values, least - 1) == Some(false);
            (refuses_below && elsewhere.iter().all(same)).then_some(least)
        };
        (0..start.len()).map(bound).collect()
    }

    /// Varies all leaves at once; leaves of a group stay equal.
    pub fn mix(&mut self, groups: &Groups) {
        let start = self.start_values();
        for round in 1..=MIXED {
            let mut values = start.clone();
            for (leaf, value) in values.iter_mut().enumerate() {
                let lead = groups.of[leaf];
                if groups.constants.contains(&leaf) {
                    continue;
                }
                // Steps without a common period.
                let shift = (round * (3 + 2 * lead as i64) + round * round * (lead as i64 + 1)) % 23;
                *value = if round % 4 == 0 { start[lead] * (1 + shift % 3) } else { start[lead] + shift };
            }
            self.attempt(values, None);
        }
    }
}

/// The results of inference for these values of the leaves.
fn outcome(
    op: &'static OpDef,
    run: Run,
    args: &[ArgumentMeta<'_>],
    leaves: &[Symbol],
    symbols: &Symbols,
    values: &[i64],
) -> Option<Result<Outcome>> {
    let given = |symbol| leaves.iter().position(|leaf| *leaf == symbol).map(|at| values[at]);
    run(op, args, &|size| size.evaluate(|symbol| symbols.value(symbol, &given)))
}
